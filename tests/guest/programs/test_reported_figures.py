"""A program reports numbers of its own in the last line of its output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conftest import run_plan
from plait.engine.engine import Job
from plait.errors import TrialError
from plait.plan.resolve import resolve
from plait.scenario import parse

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.virtual.trial import VirtualEngine
    from plait.plan.model.plan import Plan

pytestmark = pytest.mark.guest

SCENARIO = """\
title: Figures
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit}}}
programs:
  - {name: one, node: h1, wait: true, result: json, run: "echo begun; echo '%s'"}
"""


def plan(line: str) -> Plan:
    return resolve(parse(SCENARIO % line, "t.yaml"), 1)


def test_the_last_line_gives_the_figures(engine: VirtualEngine, tmp_path: Path) -> None:
    ran = run_plan(engine, plan('{\\"completion_us\\": 1200, \\"lost\\": 0}'), tmp_path)
    assert ran.tables["program_figures"].rows() == [("one", "completion_us", 1200), ("one", "lost", 0)]


def test_another_last_line_fails_the_trial(engine: VirtualEngine, tmp_path: Path) -> None:
    with pytest.raises(
        TrialError, match=r"program one .* in h1: parsing the last line of its output"
    ) as failed:
        engine.execute(Job(plan('{\\"share\\": 0.5}'), {}, tmp_path))
    assert "`share` is no whole number" in str(failed.value)
