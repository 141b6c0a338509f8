"""`plait advise --verify`: the twin against real hosts, which have their settings again at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from guest_runs import NEEDS_SSHD, in_guest, netem, tbf
from plait.advice.candidates import candidates
from plait.advice.changes.model import NOW
from plait.advice.goals import GOALS
from plait.advice.search import AdviceRequest
from plait.advice.situation import Situation
from plait.advice.verify import RealLines, agreements
from plait.engine.factory import make_engine
from plait.scenario import load

if TYPE_CHECKING:
    from plait.engine.virtual.trial import VirtualEngine

pytestmark = [pytest.mark.guest, NEEDS_SSHD]

SCENARIO = """\
title: Two lines, of which the hosts use one
network:
  hosts: {h1: {congestion_control: cubic}, h2: {congestion_control: cubic}}
  links:
    h1-h2: {label: "cable (l1)", rate: 10mbit, delay: 10ms, queue: 60KB}
    h1-h2#2: {label: "lte (l2)", rate: 5mbit, delay: 20ms, queue: 60KB}
mptcp:
  limits: {h1: {subflows: 4, add_addr_accepted: 4}, h2: {subflows: 4, add_addr_accepted: 0}}
  endpoints: {h1: [], h2: []}
traffic: [{bulk: {from: h2, to: h1, reverse: true, duration: 10s}}]
"""
LINES: list[Any] = [
    ["h1-h2", [netem(10), tbf(10)], [netem(10), tbf(10)]],
    ["h1-h2#2", [netem(20), tbf(5)], [netem(20), tbf(5)]],
]


def test_the_twin_agrees_with_the_lines_before_and_after_the_change(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    """A guest has no clock of this machine, so the hosts measure what the lines allow."""
    (tmp_path / "lines.yaml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "out").mkdir()
    before = [
        ["h1", "ip", "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4"],
        ["h2", "ip", "mptcp", "limits", "set", "subflows", "4"],
    ]
    request = {
        "lines": LINES,
        "limits": "rate: 100mbit, bytes: 1GB, time: 1h",
        "program": str(Path(__file__).with_name("verify_in_guest.py")),
        "command": ["{folder}/lines.yaml", "{hosts}", "{ssh_config}", "{folder}/out", "use-lte"],
        "before": before,
    }
    in_guest(tmp_path, request)
    assert json.loads((tmp_path / "out" / "left.json").read_text()) == {"h1": [], "h2": []}
    situation = Situation.of(load(tmp_path / "lines.yaml"))
    change = next(candidate for candidate in candidates(situation) if candidate.name == "use-lte")
    advice = AdviceRequest((GOALS["download"],), 1, tmp_path / "out")
    twin = RealLines(situation, advice, {}, make_engine)
    twin.run(GOALS["download"], [NOW, change], 2, lambda _: engine)
    rows = list(agreements(GOALS["download"], tmp_path / "out", [NOW, change], situation.lines))
    assert {row.metric for row in rows} == {"goodput_bps", "rtt_median_us", "retransmitted_share"}
    assert {(row.change, row.line) for row in rows if row.line} == {
        ("now", "cable"),
        ("use-lte", "cable"),
        ("use-lte", "lte"),
    }
    assert [row for row in rows if row.verdict == "differ"] == []
    gain = next(row.lines_against_now for row in rows if row.lines_against_now is not None)
    assert gain.ratio is not None
    assert 1.3 < gain.ratio < 1.6
