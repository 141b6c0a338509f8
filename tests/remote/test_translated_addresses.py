"""Real sshd in a guest, with h1 behind a home's router and h2 behind a cloud's 1:1 address translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from guest_runs import NEEDS_SSHD, measure, netem, run_scenario, tbf
from plait.scenario import load

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.guest, NEEDS_SSHD]


def translated(name: str, there_mbit: float, back_mbit: float, delay_ms: float = 10) -> list[Any]:
    return [name, [netem(delay_ms), tbf(there_mbit)], [netem(delay_ms), tbf(back_mbit)], True]


def goodputs(folder: Path) -> dict[str, float]:
    """Return Mbit/s by the name of the flow, of the only trial."""
    (trial,) = (folder / "out" / "trials").glob("*/000")
    flows = pl.read_parquet(trial / "flows.parquet")
    assert flows["completed"].all(), flows
    assert flows["error"].null_count() == len(flows), flows
    lasts_us = flows["end_us"] - flows["start_us"]
    return dict(zip(flows["name"], flows["received_bytes"] * 8 / lasts_us, strict=True))


@pytest.mark.users  # root boots this guest in another way; what the other tests show lies inside of it
def test_data_and_calls_flow_both_ways_where_only_one_side_can_connect(tmp_path: Path) -> None:
    text = (
        "title: Up and down\nnetwork: {hosts: [h1, h2], links: {h1-h2: {}}}\n"
        "traffic:\n  - transfer: {from: h1, to: h2, bytes: 1MB, name: up}\n"
        "  - transfer: {from: h2, to: h1, bytes: 4MB, name: down, after: up}\n"
        "  - request: {from: h2, to: h1, response: 20KB, every: 200ms, requests: 5, name: asked}\n"
        "  - udp: {from: h2, to: h1, rate: 80kbit, packet: 200B, duration: 2s, back: true, after: down}\n"
        "transport: tcp\nrepeat: 1\n"
    )
    run_scenario(tmp_path, text, [translated("h1-h2", 2, 8)])
    mbit = goodputs(tmp_path)
    assert 1.2 < mbit["up"] < 2
    assert 5 < mbit["down"] < 8
    (trial,) = (tmp_path / "out" / "trials").glob("*/000")
    calls = pl.read_parquet(trial / "flows.parquet").filter(pl.col("kind") == "udp")["flow"]
    messages = pl.read_parquet(trial / "messages.parquet")
    arrived = messages.group_by("flow").agg(pl.col("received_us").is_not_null().sum())
    of_calls = arrived.filter(pl.col("flow").is_in(calls.implode()))
    assert of_calls["received_us"].to_list() == [100, 100]


@pytest.mark.parametrize("way", ["from: h1, to: h2", "from: h2, to: h1"])
def test_mptcp_uses_two_translated_lines_in_both_directions(tmp_path: Path, way: str) -> None:
    text = (
        "title: Two lines\nnetwork: {hosts: [h1, h2], links: {h1-h2: {}, h1-h2#2: {}}}\n"
        f"traffic: [{{transfer: {{{way}, bytes: 6MB}}}}]\ntransport: mptcp\nrepeat: 1\n"
    )
    lines = [translated("h1-h2", 8, 8), translated("h1-h2#2", 8, 8)]
    metrics = run_scenario(tmp_path, text, lines, "--configure")
    shares = {name: value["mean"] for name, value in metrics.items() if name.endswith(".path_share")}
    assert len(shares) == 2, metrics
    assert all(0.4 < share < 0.6 for share in shares.values()), shares
    assert 1.5 * 8e6 < metrics["goodput_bps"]["mean"] < 2 * 8e6 * 1448 / 1514


def test_measure_works_through_address_translation(tmp_path: Path) -> None:
    measure(tmp_path, [translated("h1-h2", 2, 8)], "20mbit")
    link = load(tmp_path / "lines.yaml").network.links["h1-h2"]
    rates = [float(link.conditions(forward=way).rate or 0) for way in (True, False)]
    assert rates == pytest.approx([2e6, 8e6], rel=0.01)
