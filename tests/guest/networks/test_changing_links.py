"""Links change at the planned times while traffic runs, and no transfer loses data for good."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Ran, RunTrial
    from plait.engine.virtual.trial import VirtualEngine

pytestmark = pytest.mark.guest

TWO = """
title: Two paths
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 10mbit, delay: 5ms}
    h1-h2#2: {rate: 10mbit, delay: 5ms}
"""
FRAME = 1514


def rate_bps(ran: Ran, link: str, start_us: int, end_us: int) -> float:
    """Return what left through a direction between two samples, in bit/s."""
    frame = ran.series("links", link=link)
    first, last = (frame.filter(pl.col("t_us") == t)["sent_bytes"][0] for t in (start_us, end_us))
    return (last - first) * 8e6 / (end_us - start_us)


@pytest.mark.parametrize("how", ["down", "cut"])
@pytest.mark.parametrize("back", [True, False], ids=["comes back", "stays away"])
def test_a_link_that_dies_in_mid_transfer_loses_no_byte(
    engine: VirtualEngine, tmp_path: Path, how: str, back: bool
) -> None:
    content = random.Random(3).randbytes(8_000_000)
    (tmp_path / "content.bin").write_bytes(content)
    up = "  - {at: 4s, up: h1-h2}\n" if back else ""
    (tmp_path / "dies.yaml").write_text(
        f"{TWO}traffic: [transfer: {{from: h1, to: h2, file: content.bin}}]\n"
        f"events:\n  - {{at: 1s, {how}: h1-h2}}\n{up}"
    )
    scenario = load(tmp_path / "dies.yaml")
    plan = resolve(expand(scenario)[0].scenario, 1)
    job = tmp_path / "job"
    job.mkdir()
    engine.execute(Job(plan, scenario.input_files(), job))
    tables = convert(job / "data", job / "tables")
    flow = tables["flows"].row(0, named=True)
    assert (flow["completed"], flow["error"]) == (True, None)
    assert flow["received_bytes"] == len(content)
    assert flow["received_sha256"] == flow["sent_sha256"] == plan.flows[0].application.file.sha256
    dead = tables["links"].filter(
        (pl.col("link") == "h1->h2") & pl.col("t_us").is_between(1_200_000, 4_000_000)
    )
    assert dead["sent_bytes"].n_unique() == 1, "nothing passes a dead link"
    # two paths would take 3.4 s; one alone takes 6.7 s
    assert flow["end_us"] > 4_000_000
    link_events = tables["events"].filter(pl.col("event").str.starts_with("link_"))
    expected = [(1_000_000, "h1-h2", f"link_{how}")] + ([(4_000_000, "h1-h2", "link_up")] if back else [])
    assert link_events.select("t_us", "node", "event").rows() == expected
    if back:
        subflow = tables["subflows"].filter((pl.col("subflow") == 0) & (pl.col("side") == "client"))
        carried = subflow.sort("t_us").filter(pl.col("t_us") > 4_000_000)["acked_bytes"]
        assert carried[-1] > carried[0], "the subflow goes on when its link is back"


def test_a_link_without_alternative_that_comes_back_completes_the_transfer(run_trial: RunTrial) -> None:
    ran = run_trial(
        TWO + "traffic: [transfer: {from: h1, to: h2, bytes: 4MB, transport: tcp}]\n"
        "events: [{at: 1s, down: h1-h2}, {at: 3s, up: h1-h2}]\n"
    )
    flow = ran.tables["flows"].row(0, named=True)
    assert (flow["completed"], flow["received_bytes"]) == (True, 4_000_000)
    assert rate_bps(ran, "h1->h2", 1_100_000, 3_000_000) == 0


def test_conditions_change_at_their_time_and_each_direction_on_its_own(run_trial: RunTrial) -> None:
    ran = run_trial(
        TWO + "traffic:\n"
        "  - bulk: {from: h1, to: h2, transport: tcp, start_jitter: 0s, duration: 6s}\n"
        "  - bulk: {from: h2, to: h1, transport: tcp, start_jitter: 0s, duration: 6s, via: h1-h2#2}\n"
        "events:\n"
        "  - {at: 3s, set: {h1-h2: {forward: {rate: 4mbit}}, h1-h2#2: {delay: 25ms}}}\n"
    )
    assert rate_bps(ran, "h1->h2", 1_000_000, 3_000_000) == pytest.approx(10e6, rel=0.005)
    # a bucket of two frames is all that the change may add
    assert rate_bps(ran, "h1->h2", 3_000_000, 6_000_000) == pytest.approx(4e6, rel=0.005)
    queued = ran.series("links", link="h1->h2").filter(pl.col("t_us") == 3_000_000)["queue_packets"][0]
    assert queued > 0, "there was something in the queue to lose"
    least = ran.series("subflows", flow=1, side="client").filter(pl.col("t_us") > 4_000_000)["rtt_us"].min()
    assert isinstance(least, int)
    assert least >= 50_000


def test_a_handover_moves_the_traffic(run_trial: RunTrial) -> None:
    ran = run_trial(
        TWO + "traffic: [bulk: {from: h1, to: h2, duration: 8s}]\n"
        "events:\n"
        "  - {at: 1s, down: h1-h2#2}\n"
        "  - {at: 4s, handover: {from: h1-h2, to: h1-h2#2, gap: 100ms, set: {rate: 6mbit}}}\n"
    )
    assert rate_bps(ran, "h1->h2", 2_000_000, 4_000_000) == pytest.approx(10e6, rel=0.01)
    assert rate_bps(ran, "h1->h2#2", 1_100_000, 4_100_000) == 0
    assert rate_bps(ran, "h1->h2", 4_100_000, 8_000_000) == 0
    # the subflow that was silent for three seconds has backed off; it is probed again within twice that
    assert rate_bps(ran, "h1->h2#2", 7_000_000, 8_000_000) == pytest.approx(6e6, rel=0.01)


def test_the_same_events_give_the_same_bytes(run_trial: RunTrial) -> None:
    text = (
        TWO + "traffic: [bulk: {from: h1, to: h2, duration: 2s}]\n"
        "events:\n"
        "  - {at: 500ms, set: {h1-h2: {loss: 1%}}}\n"
        "  - {at: 1s, cut: h1->h2#2}\n"
        "  - {at: 1.5s, set: {h1-h2: {rate: 3mbit}}}\n"
    )
    assert run_trial(text).digest == run_trial(text).digest


def test_a_shaper_passes_its_burst_at_once_and_then_its_rate_also_after_a_change(run_trial: RunTrial) -> None:
    """Two requests of five frames: they wait for no rate if the shaper's bucket holds them."""
    took, rates = {}, {}
    for bucket in ("", ", bucket: {burst: 9kB}"):
        ran = run_trial(
            "title: A shaper\n"
            f"network: {{hosts: [h1, h2], links: {{h1-h2: {{rate: 2mbit, delay: 20ms{bucket}}}}}}}\n"
            "traffic:\n"
            "  - request: {from: h1, to: h2, response: 6kB, requests: 2, gap: 400ms, transport: tcp}\n"
            "  - bulk: {from: h1, to: h2, start: 2s, start_jitter: 0s, duration: 4s, transport: tcp}\n"
            "events: [{at: 4s, set: {h1-h2: {rate: 4mbit}}}]\n"
        )
        times = ran.tables["messages"].filter(pl.col("flow") == 0)
        took[bucket] = times["received_us"][-1] - times["sent_us"][-1]
        rates[bucket] = [rate_bps(ran, "h1->h2", t, t + 1_000_000) for t in (3_000_000, 5_000_000)]
    plain, shaped = took.values()
    assert plain - shaped == pytest.approx(4 * FRAME * 8 / 2, rel=0.1), took
    for before, after in rates.values():
        assert [before, after] == pytest.approx([2e6, 4e6], rel=0.01)
