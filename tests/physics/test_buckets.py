"""A token bucket passes its burst at full rate and then its baseline, for one link or for several interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from probes import FULL, Probe, measured

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

BUCKETS = {
    "spent": Probe(
        "{rate: 8mbit, queue: 20pkt, bucket: {baseline: 1mbit, burst: 175KB}}",
        packets=1600,
        interval="1ms",
        packet=FULL,
    ),
}


def test_a_bucket_gives_its_burst_at_the_rate_then_its_baseline(run_trial: RunTrial) -> None:
    """12 Mbit/s arrive. 175 KB last for 175e3 * 8 / (8e6 - 1e6) = 200 ms at 8 Mbit/s; then 1 Mbit/s pass."""
    arrivals, _ = measured(run_trial, BUCKETS)
    times = [time - arrivals["spent"].sent[0] for time in arrivals["spent"].received if time is not None]

    def passed(begin_us: int, end_us: int) -> float:
        return sum(begin_us <= time < end_us for time in times) * 1514 * 8e6 / (end_us - begin_us)

    assert passed(10_000, 190_000) == pytest.approx(8e6, rel=0.01)
    assert passed(230_000, 1_500_000) == pytest.approx(1e6, rel=0.02)
    until_empty = sum(time < 200_000 for time in times) * 1514
    assert until_empty == pytest.approx(8e6 * 0.2 / 8, rel=0.02)


def two_links(bucket: str, flows: str) -> str:
    return f"""
title: Two interfaces, one bucket
network:
  hosts:
    a: {{bucket: {bucket}}}
    b: {{}}
  links:
    a-b: {{rate: 20mbit, delay: 1ms}}
    a-b#2: {{rate: 20mbit, delay: 1ms}}
traffic:
{flows}
sample: 100ms
"""


def udp(link: str, start: str, duration: str, back: bool = False) -> str:
    ends = "from: b, to: a" if back else "from: a, to: b"
    return (
        f"  - udp: {{{ends}, via: {link}, packet: {FULL}B, every: 800us, start: {start}, duration: {duration}, "
        "start_jitter: 0s}"
    )


def test_a_shared_bucket_is_one_for_both_links_and_is_refilled(run_trial: RunTrial) -> None:
    """Tokens are taken by both, also by who comes later, and come back in silence.

    30 Mbit/s arrive over two links. 250 KB last for 250e3 * 8 / (12e6 - 2e6) = 200 ms at the peak of 12 Mbit/s;
    then both together get 2 Mbit/s, also a flow that begins when the bucket is empty; a second of silence brings
    2e6 / 8 = 250 KB again, which last for another 200 ms. The other direction has a bucket of its own.
    """
    flows = [
        udp("a-b", "0s", "1s"),
        udp("a-b#2", "0s", "1s"),
        udp("a-b", "3s", "1s"),
        udp("a-b#2", "500ms", "500ms", back=True),
    ]
    ran = run_trial(
        two_links("{baseline: 2mbit, peak: 12mbit, burst: 250KB, queue: 20pkt}", "\n".join(flows))
    )

    def passed(numbers: list[int], begin_us: int, end_us: int) -> float:
        rows = ran.tables["messages"].filter(
            pl.col("flow").is_in(numbers) & pl.col("received_us").is_between(begin_us, end_us, closed="left")
        )
        return rows.height * 1514 * 8e6 / (end_us - begin_us)

    assert passed([0, 1], 10_000, 190_000) == pytest.approx(12e6, rel=0.01)
    assert passed([0, 1], 240_000, 1_000_000) == pytest.approx(2e6, rel=0.02)
    assert passed([2], 3_010_000, 3_190_000) == pytest.approx(12e6, rel=0.01)
    assert passed([2], 3_240_000, 4_000_000) == pytest.approx(2e6, rel=0.03)
    assert passed([3], 510_000, 690_000) == pytest.approx(12e6, rel=0.01)
    last_sample = ran.series("queues", queue="a out").row(-1, named=True)
    assert last_sample["kind"] == "bucket"
    assert last_sample["sent_bytes"] == pytest.approx(
        sum(ran.series("links", link=link)["sent_bytes"][-1] for link in ("a->b", "a->b#2")), rel=0.01
    )


def rates_mbps(ran: Ran) -> dict[str, float]:
    """Return the goodput of each transfer, by its name."""
    rows = ran.tables["flows"].iter_rows(named=True)
    return {row["name"]: row["received_bytes"] * 8 / (row["end_us"] - row["start_us"]) for row in rows}


def test_a_cloud_instance_has_its_burst_allowance(run_trial: RunTrial) -> None:
    """With tokens, two paths of 10 Mbit/s bring nearly twice one; without, both get the 5 Mbit/s that flow in."""
    tcp, mptcp = (rates_mbps(run_trial("cloud-burst", case=case)) for case in (0, 1))
    share = 1448 / 1514
    for name in ("full", "rested"):
        assert tcp[name] == pytest.approx(10 * share, rel=0.02)
        assert mptcp[name] > 1.85 * tcp[name]
    assert tcp["spent"] == pytest.approx(5 * share, rel=0.03)
    assert mptcp["spent"] == pytest.approx(tcp["spent"], rel=0.03)
    assert tcp["spent"] < 0.55 * tcp["full"]
