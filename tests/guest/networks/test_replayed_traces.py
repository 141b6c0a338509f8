"""A link that replays a trace sends one full packet per opportunity and applies each row in its interval."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest

from conftest import Ran, run_plan
from plait import kernel as kernels
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.virtual.trial import VirtualEngine
    from plait.plan.model.plan import Plan

pytestmark = pytest.mark.guest

SCENARIO = """
title: A link that follows a trace
network: {{hosts: [a, b], links: {{a-b: {{{link}}}}}}}
traffic: [bulk: {{from: a, to: b, transport: {transport}, start_jitter: 0s, duration: {duration}}}]
sample: {sample}
"""


def planned(folder: Path, link: str, *, duration: str, sample: str) -> tuple[Plan, dict[str, Path]]:
    path = folder / "t.yaml"
    path.write_text(SCENARIO.format(link=link, transport="tcp", duration=duration, sample=sample))
    scenario = load(path)
    return resolve(expand(scenario)[0].scenario, 1), scenario.input_files()


@pytest.fixture
def replays(engine: VirtualEngine) -> VirtualEngine:
    """Return the engine, where its kernel has plait_trace."""
    if b"plait_trace" not in kernels.ensure().binary.read_bytes():
        pytest.skip("this kernel was built before plait_trace; build it anew with plait kernel build")
    return engine


@pytest.mark.parametrize("loop", [True, False])
def test_a_trace_is_replayed_to_the_packet(replays: VirtualEngine, tmp_path: Path, *, loop: bool) -> None:
    draw = random.Random(1)
    times, t = [], 0
    while t < 800:
        t += draw.choice([0, 0, 1, 1, 2, 5])
        times.append(t)
    (tmp_path / "x.trace").write_text("".join(f"{t}\n" for t in times))
    link = f"delay: 2ms, forward: {{queue: 500pkt, trace: {{file: x.trace, loop: {str(loop).lower()}}}}}"
    plan, inputs = planned(tmp_path, link, duration="2s", sample="1ms")
    ran = run_with(replays, plan, inputs, tmp_path / "job")
    period, offered = times[-1], Counter(times)
    sent = ran.series("links", link="a->b").with_columns(packets=pl.col("sent_packets").diff())
    queued = dict(sent.select("t_us", "queue_packets").rows())
    compared = 0
    for t_us, packets in sent.select("t_us", "packets").rows()[1:]:
        ms = t_us // 1000
        if t_us % 1000 or (queued[t_us - 1000] or 0) < 20:
            continue  # an empty queue has nothing to send
        inside = (ms - 1) % period + 1
        expected = offered[inside] + (offered[0] if inside == period else 0) if loop else offered[ms]
        assert packets == expected, f"in millisecond {ms}"
        compared += 1
    assert compared > (1000 if loop else 500)


def test_a_table_of_rates_and_delays_holds_row_by_row(engine: VirtualEngine, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("time [s],rate [mbit],delay [ms]\n0,10,5\n2,4,20\n4,8,10\n6,10,5\n")
    plan, inputs = planned(tmp_path, "trace: {file: x.csv}, queue: 60pkt", duration="10s", sample="100ms")
    ran = run_with(engine, plan, inputs, tmp_path / "job")
    sent = dict(ran.series("links", link="a->b").select("t_us", "sent_bytes").rows())
    for begin, end, mbit in ((1, 2, 10), (2, 4, 4), (4, 6, 8), (6, 8, 10), (8, 10, 4)):
        measured = (sent[end * 10**6] - sent[begin * 10**6]) * 8 / (end - begin) / 1e6
        assert measured == pytest.approx(mbit, rel=0.01), f"from {begin} s to {end} s"
    steps = ran.tables["events"].filter(pl.col("event") == "trace_step")
    assert steps.filter(pl.col("node") == "a->b")["t_us"].to_list()[:4] == [
        2_000_000,
        4_000_000,
        6_000_000,
        8_000_000,
    ]


def run_with(engine: VirtualEngine, plan: Plan, inputs: dict[str, Path], folder: Path) -> Ran:
    folder.mkdir()
    return run_plan(engine, plan, folder, inputs)
