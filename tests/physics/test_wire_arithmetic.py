"""The kernel's goodput agrees with the arithmetic of what the wire allows.

A full TCP segment with time stamps carries 1448 bytes in a frame of 1514 (14 Ethernet + 20 IP + 32 TCP), and
links count frames as tc does, without FCS. So a saturated link of rate r gives a goodput of r * 1448 / 1514.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from probes import transmission_us

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

PAYLOAD_SHARE = 1448 / 1514


def one_link(rate: str, delay: str, duration: str) -> str:
    return f"""
title: One link
network:
  hosts: [h1, h2]
  links:
    h1-h2: {{rate: {rate}, delay: {delay}}}
traffic:
  - bulk: {{from: h1, to: h2, duration: {duration}, transport: tcp}}
"""


def steady_goodput_bps(ran: Ran) -> float:
    """Return goodput at the receiver over the second half of the only flow."""
    rows = ran.series("connections", side="server")
    end_us = ran.tables["flows"]["end_us"][0]
    rows = rows.filter((rows["t_us"] >= end_us // 2) & (rows["t_us"] <= end_us))
    first, last = rows.row(0, named=True), rows.row(-1, named=True)
    return (last["received_bytes"] - first["received_bytes"]) * 8e6 / (last["t_us"] - first["t_us"])


@pytest.mark.guest
@pytest.mark.parametrize(
    ("rate", "bps", "duration"),
    [
        ("1mbit", 1e6, "30s"),
        ("5mbit", 5e6, "20s"),
        ("10mbit", 10e6, "20s"),
        ("33mbit", 33e6, "10s"),
        ("100mbit", 100e6, "10s"),
        ("250mbit", 250e6, "6s"),
        ("1gbit", 1e9, "4s"),
    ],
)
def test_steady_goodput_is_the_rate_times_the_payload_share(
    run_trial: RunTrial, rate: str, bps: float, duration: str
) -> None:
    ran = run_trial(one_link(rate, "5ms", duration))
    expected = bps * PAYLOAD_SHARE
    measured = steady_goodput_bps(ran)
    assert abs(measured / expected - 1) < 0.005, f"{measured:.0f} bit/s, the wire allows {expected:.0f}"


@pytest.mark.guest
@pytest.mark.parametrize(
    ("delay", "us"), [("1ms", 1000), ("10ms", 10_000), ("137500us", 137_500), ("0ms", 0)]
)
@pytest.mark.parametrize(("rate", "bps"), [("1mbit", 1e6), ("1gbit", 1e9)])
def test_idle_rtt_is_the_sum_of_the_delays(
    run_trial: RunTrial, rate: str, bps: float, delay: str, us: int
) -> None:
    """On a device, packets also need their own times: at least two short ones, at most a full one between two."""
    ran = run_trial(one_link(rate, delay, "1s"))
    first = ran.series("subflows", side="client")["min_rtt_us"].drop_nulls()
    least = 2 * us + max(0, int(transmission_us(66 + 66, bps)) - 1)
    most = 2 * us + transmission_us(66 + 1514 + 66, bps) + 10
    assert least <= first[-1] <= most, f"{first[-1]} us over a link of {delay} each way"


@pytest.mark.guest
def test_a_link_never_carries_more_than_its_rate(run_trial: RunTrial) -> None:
    ran = run_trial(one_link("10mbit", "3ms", "5s"))
    rows = ran.series("links", link="h1->h2")
    sent = rows["sent_bytes"].diff().drop_nulls()
    spans = rows["t_us"].diff().drop_nulls()
    burst = 2 * 1514
    for size, span in zip(sent, spans, strict=True):
        assert size * 8 <= 10 * span + 8 * burst, f"{size} bytes in {span} us"
