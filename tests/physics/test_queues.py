"""Queues overflow at the right packet, and each queue management drops as its algorithm specifies."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import polars as pl
import pytest
from probes import DEVICES, FULL, Arrivals, Probe, binomial, measured

from plait import kernel as kernels

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

BURSTS = {
    "packets": Probe("{rate: 1mbit, queue: 20pkt}", packets=60, interval="20us", packet=FULL),
    "bytes": Probe("{rate: 1mbit, queue: 30280B}", packets=150, interval="10us", packet=500),
    "bdp": Probe("{rate: 10mbit, delay: 12112us, queue: 2bdp}", packets=150, interval="7us", packet=FULL),
    "rate": Probe("{rate: 5mbit, queue: 50pkt, delay: 3ms}", packets=4000, interval="2ms", packet=FULL),
    "loss and rate": Probe(
        "{rate: 5mbit, queue: 50pkt, loss: 3%, delay: 9ms, jitter: 1ms}",
        packets=4000,
        interval="2ms",
        packet=FULL,
    ),
}


@pytest.fixture(scope="module")
def bursts(run_trial: RunTrial) -> tuple[dict[str, Arrivals], Ran]:
    return measured(run_trial, BURSTS)


@pytest.mark.parametrize(
    ("name", "number", "tokens", "queued"),
    [
        ("packets", 1, 2, 20),  # the bucket of a chain holds two full frames, the queue twenty packets
        ("bytes", 2, 5, 55),  # frames of 542 bytes: 5 in 3028, 55 in 30 280
        ("bdp", 3, 2, 40),  # twice 10 Mbit/s * 24.224 ms = 30 280 bytes, 20 full frames
    ],
)
def test_a_queue_overflows_at_the_right_packet(
    bursts: tuple[dict[str, Arrivals], Ran], name: str, number: int, tokens: int, queued: int
) -> None:
    """The queue of a device holds what its limit says, beside the one packet that the line is sending."""
    fit = queued + (1 if DEVICES else tokens)
    arrivals, ran = bursts
    received = [not lost for lost in arrivals[name].lost]
    assert received == [True] * fit + [False] * (len(received) - fit)
    direction = "a->b" if number == 1 else f"a->b#{number}"
    last = ran.series("links", link=direction).row(-1, named=True)
    assert last["overflow_packets"] == last["dropped_packets"] == len(received) - fit
    assert last["sent_packets"] >= fit


def throughput_bps(arrivals: Arrivals) -> float:
    """Return the throughput of full frames over the second half of the arrivals."""
    arrived = [time for time in arrivals.received if time is not None]
    half = arrived[len(arrived) // 2 :]
    return (len(half) - 1) * 1514 * 8e6 / (half[-1] - half[0])


@pytest.mark.parametrize("name", ["rate", "loss and rate"])
def test_a_rate_is_right_within_half_a_percent(bursts: tuple[dict[str, Arrivals], Ran], name: str) -> None:
    """6 Mbit/s arrive at a rate of 5; with 3 % of loss there are still enough."""
    assert abs(throughput_bps(bursts[0][name]) / 5e6 - 1) < 0.005


def test_random_loss_and_overflow_are_counted_separately(bursts: tuple[dict[str, Arrivals], Ran]) -> None:
    last = bursts[1].series("links", link="a->b#5").row(-1, named=True)
    random = last["dropped_packets"] - last["overflow_packets"]
    assert abs(random / 4000 - 0.03) <= binomial(0.03, 4000)
    assert last["sent_packets"] + last["dropped_packets"] == pytest.approx(4000, abs=2)  # and ARP


FRAME_US = 1514 * 8 / 10
"""At 10 Mbit/s."""


def overload(share: float) -> str:
    """Return the interval of full frames of which a link of 10 Mbit/s must drop this share."""
    return f"{round(FRAME_US * (1 - share) * 1000)}ns"


def steady(ran: Ran, table: str, column: str, **where: object) -> float:
    """Return the mean of a column over the second half of the traffic."""
    ends = [
        flow.start_us + flow.application.duration_us
        for flow in ran.plan.flows
        if flow.application.kind == "bulk"
    ]
    end_us = max(ends) if ends else int(ran.tables["messages"]["sent_us"].max())
    rows = ran.series(table, **where).filter(pl.col("t_us").is_between(end_us // 2, end_us))
    return float(rows[column].mean())


def test_red_drops_as_linux_says(run_trial: RunTrial) -> None:
    """Where a share d must be dropped, the average queue is where the curve says so.

    Linux spaces drops uniformly over 1 .. 1/p packets (net/red.h; Floyd and Jacobson's second method), so that a
    curve's p drops the share 2p / (1 + p).
    """
    share = 0.08
    p = share / (2 - share)
    expected = 25 + 50 * p / 0.10
    probe = Probe(
        "{rate: 10mbit, queue: 200pkt, aqm: {red: {min: 25pkt, max: 75pkt, probability: 10%, weight_log: 7}}}",
        packets=10_000,
        interval=overload(share),
        packet=FULL,
    )
    _, ran = measured(run_trial, {"red": probe}, "100ms")
    assert steady(ran, "links", "queue_packets", link="a->b") == pytest.approx(expected, rel=0.08)
    last = ran.series("queues", queue="a->b").row(-1, named=True)
    assert last["kind"] == "red"
    assert last["overflow_packets"] == last["marked_packets"] == 0
    links = ran.series("links", link="a->b").row(-1, named=True)
    assert links["dropped_packets"] == last["managed_packets"] > 500
    assert links["overflow_packets"] == 0


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.05, 25 + 25 * 0.05 / 0.10), (0.20, 50 + 50 * (0.20 - 0.10) / 0.90)],
)
def test_both_slopes_of_red_are_as_drawn(run_trial: RunTrial, share: float, expected: float) -> None:
    """Khalili's curve: 0 below 25 packets, 10 % at 50, 100 % at 100. Each drop is drawn on its own."""
    if b"plait_red" not in kernels.ensure().binary.read_bytes():
        pytest.skip("this kernel was built before plait_red was part of it")
    curve = "{red: {points: {25pkt: 0%, 50pkt: 10%, 100pkt: 100%}, weight_log: 7}}"
    probe = Probe(
        f"{{rate: 10mbit, queue: 200pkt, aqm: {curve}}}",
        packets=10_000,
        interval=overload(share),
        packet=FULL,
    )
    _, ran = measured(run_trial, {"red": probe}, "100ms")
    average = steady(ran, "queues", "average_millipackets", queue="a->b") / 1000
    assert average == pytest.approx(expected, rel=0.05)
    last = ran.series("queues", queue="a->b").row(-1, named=True)
    assert last["overflow_packets"] == 0
    assert last["managed_packets"] == pytest.approx(10_000 * share, rel=0.1)


@pytest.fixture(scope="module")
def codels(run_trial: RunTrial) -> tuple[dict[str, Arrivals], Ran]:
    probes = {
        "codel": Probe("{rate: 10mbit, aqm: codel}", packets=700, interval=overload(0.05), packet=FULL),
        "slow": Probe(
            "{rate: 10mbit, aqm: {codel: {target: 20ms, interval: 200ms}}}",
            packets=1200,
            interval=overload(0.05),
            packet=FULL,
        ),
    }
    return measured(run_trial, probes)


@pytest.mark.parametrize(
    ("name", "target_us", "interval_us"), [("codel", 5000, 100_000), ("slow", 20_000, 200_000)]
)
def test_codel_drops_at_its_intervals_above_the_target(
    codels: tuple[dict[str, Arrivals], Ran], name: str, target_us: int, interval_us: int
) -> None:
    """RFC 8289, 5.3: the first drop an interval after the target was passed, the next ones interval / sqrt(n) later.

    Linux approximates 1 / sqrt(n) by one step of Newton's method from the value before (codel_impl.h).
    """
    arrivals = codels[0][name]
    pairs = list(zip(arrivals.sent, arrivals.received, strict=True))
    passed_us = next(r for s, r in pairs if r is not None and r - s > target_us + FRAME_US)
    left = [next(r for _, r in pairs[i:] if r is not None) for i, (_, r) in enumerate(pairs) if r is None]
    assert left[0] - passed_us == pytest.approx(interval_us, abs=3 * FRAME_US)
    gaps = [second - first for first, second in pairwise(left)][:4]
    roots = [1.0]
    for n in range(2, 5):
        roots.append(roots[-1] / 2 * (3 - n * roots[-1] ** 2))
    assert gaps == pytest.approx([interval_us * root for root in roots], abs=2 * FRAME_US)


def test_fq_codel_spares_the_flow_that_does_not_fill_the_queue(run_trial: RunTrial) -> None:
    """A packet now and then waits for a frame or two, and is never lost, whatever the other flow does."""
    heavy = Probe("{rate: 10mbit, aqm: fq_codel}", packets=4000, interval=overload(0.3), packet=FULL)
    flow = "  - udp: {from: a, to: b, packet: 100B, every: 13ms, duration: 3s, start: 1s, start_jitter: 0s}"
    arrivals, ran = measured(run_trial, {"heavy": heavy}, flows=flow)
    light = Arrivals(ran, 2)
    assert not any(light.lost)
    assert max(light.delays) < 3 * FRAME_US
    assert median(arrivals["heavy"].delays) > 10 * FRAME_US


def test_codel_keeps_the_delay_of_tcp_near_its_target(run_trial: RunTrial) -> None:
    """A drop-tail queue of 100 packets takes 121 ms; CoDel's target is 5 ms."""
    text = """
title: One flow
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, delay: 10ms, queue: 100pkt, aqm: AQM}
traffic:
  - bulk: {from: a, to: b, duration: 10s, transport: tcp}
"""
    waits = {}
    for aqm in ("droptail", "codel"):
        ran = run_trial(text.replace("AQM", aqm))
        waits[aqm] = steady(ran, "links", "queue_bytes", link="a->b") * 8 / 10
    assert waits["codel"] < 2 * 5000
    assert waits["droptail"] > 40_000
