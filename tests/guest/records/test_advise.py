"""`plait advise` finds a setting that was planted, and says that nothing helps where nothing does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plait.advice.candidates import candidates
from plait.advice.goals import GOALS
from plait.advice.search import AdviceRequest, search
from plait.advice.words import commands, sentences
from plait.scenario import parse

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.virtual.trial import VirtualEngine

pytestmark = pytest.mark.guest

BLOATED = """\
title: A cable with a deep queue
network:
  hosts: [home, vps]
  links:
    home-vps: {label: "cable (eth0)", forward: {rate: 5mbit, delay: 7ms, queue: 125KB},
               backward: {rate: 20mbit, delay: 7ms, queue: 1MB}}
    home-vps#2: {label: "lte (wwan0)", rate: 10mbit, delay: 25ms, queue: 50KB}
traffic: [{bulk: {from: vps, to: home, reverse: true, duration: 10s}}]
"""
CLEAN = """\
title: Two equal lines
network:
  hosts: [home, vps]
  links: {home-vps: {rate: 10mbit, delay: 10ms, queue: 30KB}, home-vps#2: {rate: 10mbit, delay: 10ms, queue: 30KB}}
traffic: [{bulk: {from: vps, to: home, reverse: true, duration: 10s}}]
"""
NO_TIME = 0.001
"""Minutes: the first round and the first worse line run all the same."""


def test_a_shaper_helps_a_call_on_a_line_with_a_deep_queue(engine: VirtualEngine, tmp_path: Path) -> None:
    advice = search(
        parse(BLOATED, "lines.yaml", ()), AdviceRequest((GOALS["call"],), NO_TIME, tmp_path), lambda _: engine
    )
    (goal,) = advice.goals
    assert goal.best == "shape-cable"
    now, best = goal.named("now"), goal.named("shape-cable")
    assert now.mean is not None
    assert best.mean is not None
    assert best.mean < 25_000
    assert now.mean > 100_000
    assert goal.cut_short
    assert goal.shifted[0].words == "cable (eth0) 30 % slower"
    assert json.loads(json.dumps(advice.as_json()))["goals"][0]["best"] == "shape-cable"
    printed = list(commands(advice, "shape-cable", "home"))
    assert "tc qdisc add dev eth0 root handle 7a17: cake bandwidth 4750kbit" in printed
    assert printed.index("# to undo it:") < printed.index("tc qdisc delete dev eth0 root handle 7a17:")


def test_nothing_helps_a_download_that_fills_two_equal_lines(engine: VirtualEngine, tmp_path: Path) -> None:
    advice = search(
        parse(CLEAN, "lines.yaml", ()),
        AdviceRequest((GOALS["download"],), NO_TIME, tmp_path),
        lambda _: engine,
    )
    (goal,) = advice.goals
    assert goal.best is None, goal
    assert not goal.shifted
    text = " ".join(sentences(goal))
    assert "Nothing that you can change helps by more than 3 %." in text
    assert {row.name for row in goal.tried if row.against_now and row.against_now.verdict == "worse"} >= {
        "tcp"
    }


@pytest.mark.parametrize("name", ["upload", "video", "pages"])
def test_every_other_goal_measures_its_metric(
    name: str, engine: VirtualEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`pages` failed, because the flows of a page have names of their own. The tests above try all candidates."""
    monkeypatch.setattr("plait.advice.search.candidates", lambda situation: candidates(situation)[:3])
    request = AdviceRequest((GOALS[name],), NO_TIME, tmp_path)
    (goal,) = search(parse(BLOATED, "lines.yaml", ()), request, lambda _: engine).goals
    assert len(goal.tried) == 3
    now = goal.named("now")
    assert now.trials == 4
    assert now.mean is not None
