"""Conditions act together on one link and separately per direction; MTU and ECN marks change frames as specified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from probes import FULL, Arrivals, Probe, binomial, measured, transmission_us

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

ETHERNET = 14
HEADERS = 20 + 20 + 12
"""IPv4, TCP, and its time stamps."""


@pytest.mark.parametrize("mtu", [600, 1500, 9000])
def test_segments_fill_the_mtu_and_nothing_is_larger(run_trial: RunTrial, mtu: int) -> None:
    """200 full segments, byte for byte; beside them the handshake, the end, ARP, and nothing else of the sender."""
    count = 200
    text = f"""
title: One transfer
network:
  hosts: [a, b]
  links:
    a-b: {{rate: 100mbit, delay: 1ms, queue: 400pkt, mtu: {mtu}}}
traffic:
  - transfer: {{from: a, to: b, bytes: {count * (mtu - HEADERS)}B, transport: tcp}}
"""
    last = run_trial(text).series("links", link="a->b").row(-1, named=True)
    # ARP 42, SYN 74, ACK 66, FIN 66, and again where a probe or an acknowledgement was in order
    assert 3 <= last["sent_packets"] - count <= 6
    assert last["dropped_packets"] == 0
    rest = last["sent_bytes"] - count * (mtu + ETHERNET)
    assert 42 + 74 + 66 <= rest <= 42 * 2 + 74 + 66 * 3


ECN = """
title: A marking queue
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, delay: 10ms, queue: 200pkt, aqm: AQM}
sysctls: {net.ipv4.tcp_ecn: 1}
traffic:
  - bulk: {from: a, to: b, duration: 10s, transport: tcp}
"""
MARKING = {
    "red": "{red: {min: 15pkt, max: 60pkt, probability: 10%, weight_log: 7, ecn: true}}",
    "plait_red": "{red: {points: {15pkt: 0%, 40pkt: 10%, 90pkt: 100%}, weight_log: 7, ecn: true}}",
    "codel": "{codel: {ecn: true}}",
    "fq_codel": "{fq_codel: {ecn: true}}",
}


@pytest.mark.parametrize("kind", MARKING)
def test_marks_take_the_place_of_drops_and_every_one_arrives(run_trial: RunTrial, kind: str) -> None:
    """The queue counts what it marks, the receiver's IP what arrives marked; the sender is told, and slows down."""
    ran = run_trial(ECN.replace("AQM", MARKING[kind]))
    queue = ran.series("queues", queue="a->b").row(-1, named=True)
    assert queue["kind"] == kind
    assert queue["marked_packets"] > 3
    assert queue["managed_packets"] == queue["overflow_packets"] == 0
    assert ran.series("links", link="a->b").row(-1, named=True)["dropped_packets"] == 0
    assert ran.series("subflows", side="client")["retransmitted_segments"].max() == 0
    assert counted(ran, "b", "IpExtInCEPkts") == queue["marked_packets"]
    (flow,) = ran.tables["flows"].to_dicts()
    assert flow["received_bytes"] * 8 / 10 > 0.9 * 10e6 * (1500 - HEADERS) / 1514


def counted(ran: Ran, node: str, counter: str) -> int:
    """Return what a counter of the kernel has counted during the trial."""
    for row in ran.tables["counters"].filter(node=node, counter=counter).to_dicts():
        return int(row["after"] - row["before"])
    return 0


PACKETS = 4000
FORWARD = (
    "rate: 8mbit, delay: 20ms, loss: {ratio: 2%, burst: 3pkt}, bucket: {baseline: 4mbit, burst: 250KB}, "
    "aqm: {codel: {target: 20ms, interval: 100ms}}"
)
BACKWARD = "rate: 20mbit, delay: 7ms, jitter: 1ms, loss: 5%, queue: 30pkt, aqm: droptail"


@pytest.fixture(scope="module")
def combined(run_trial: RunTrial) -> tuple[Arrivals, Arrivals, Ran]:
    """12 Mbit/s of full frames into a bucket of 8 and 4 Mbit/s; against it, small packets now and then."""
    probe = Probe(f"{{{FORWARD}, backward: {{{BACKWARD}}}}}", packets=PACKETS, interval="1ms", packet=FULL)
    back = (
        "  - udp: {from: b, to: a, packet: 100B, every: 5ms, duration: 10s, start: 500ms, start_jitter: 0s}"
    )
    arrivals, ran = measured(run_trial, {"there": probe}, flows=back)
    return arrivals["there"], Arrivals(ran, 2), ran


def passed_bps(arrivals: Arrivals, begin_us: int, end_us: int) -> float:
    times = [time - arrivals.sent[0] for time in arrivals.received if time is not None]
    return sum(begin_us <= time < end_us for time in times) * 1514 * 8e6 / (end_us - begin_us)


def test_burst_and_baseline_hold_with_loss_and_a_managed_queue(
    combined: tuple[Arrivals, Arrivals, Ran],
) -> None:
    """250 KB last for 250e3 * 8 / (8e6 - 4e6) = 500 ms at 8 Mbit/s; then 4 Mbit/s pass."""
    there = combined[0]
    assert passed_bps(there, 40_000, 500_000) == pytest.approx(8e6, rel=0.01)
    assert passed_bps(there, 600_000, 4_000_000) == pytest.approx(4e6, rel=0.01)
    assert there.delays[0] == pytest.approx(20_000 + transmission_us(1514, 8e6), abs=10)


def test_each_cause_of_loss_is_counted_on_its_own(combined: tuple[Arrivals, Arrivals, Ran]) -> None:
    """Bursts of 3 make the interval of the share wider by sqrt(2 * 3 - 1), as a Markov chain's is."""
    there, _, ran = combined
    link = ran.series("links", link="a->b").row(-1, named=True)
    queue = ran.series("queues", queue="a->b").row(-1, named=True)
    assert queue["managed_packets"] > 0
    by_chance = link["dropped_packets"] - queue["managed_packets"] - queue["overflow_packets"]
    assert abs(by_chance / PACKETS - 0.02) <= 5**0.5 * binomial(0.02, PACKETS)
    assert sum(there.lost) == link["dropped_packets"]


def test_conditions_of_one_direction_do_not_affect_the_other(
    combined: tuple[Arrivals, Arrivals, Ran],
) -> None:
    """No bucket, no queue, its own loss and delay: 7 ms and at most 1 ms of jitter either way."""
    _, back, ran = combined
    assert abs(back.loss - 0.05) <= binomial(0.05, len(back.lost))
    assert 5_990 <= min(back.delays) < 6_100
    assert 7_900 < max(back.delays) <= 8_100
    assert ran.series("links", link="b->a").row(-1, named=True)["overflow_packets"] == 0
    assert "b->a" not in ran.tables["queues"]["queue"].unique().to_list()
