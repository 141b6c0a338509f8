"""What plait does besides trials grows with a network's links and flows, not with their product."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from fake_tables import fake_tables
from plait.analysis.metrics.ideal import payload_ratio
from plait.explain import explain_trial
from plait.plan.case_plan import resolve_case
from plait.plan.lint.lint import lint
from plait.plan.model.plan import Plan
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.study.estimate import expected_work

FAT_TREE = """\
title: A fat tree
network: {{generator: fat-tree, k: {k}, rate: 100mbit, delay: 500us, queue: 400pkt}}
sample: 20ms
traffic: [{{permutation: {{seed: 1, each: {{bulk: {{duration: 100ms}}}}}}}}]
"""
SMALL, LARGE = 4, 6
MORE = (LARGE / SMALL) ** 3
"""How many more flows and links the larger fat tree has: k^3 / 4 hosts send, and 3 k^3 / 4 links connect them."""


def steps(work: Callable[[], object]) -> int:
    """Return the lines that Python executes, each turn of a loop counted again."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def _linted(k: int) -> Callable[[], object]:
    (case,) = expand(parse(FAT_TREE.format(k=k), "test.yaml"))
    planned = resolve_case(case)
    return lambda: lint(planned, 1)


def _plan(k: int) -> Plan:
    (case,) = expand(parse(FAT_TREE.format(k=k), "test.yaml"))
    return resolve_case(case).plan(1)


def _estimated(k: int) -> Callable[[], object]:
    plan = _plan(k)
    return lambda: expected_work(plan)


def _measured(k: int) -> Callable[[], object]:
    plan = _plan(k)
    return lambda: [payload_ratio(plan, flow, transport="mptcp") for flow in plan.flows]


def _explained(k: int) -> Callable[[], object]:
    plan = _plan(k)
    tables = fake_tables(plan)
    return lambda: explain_trial(plan, tables)


@pytest.mark.parametrize("of", [_linted, _estimated, _measured, _explained])
def test_the_work_grows_with_the_network_and_not_with_its_square(of: Callable[[int], Any]) -> None:
    small, large = steps(of(SMALL)), steps(of(LARGE))
    assert large < 1.5 * MORE * small
