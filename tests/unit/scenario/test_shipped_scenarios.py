"""Every shipped scenario is valid, states its purpose, resolves to a plan, and warns only of its subject."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.cautions import Code
from plait.plan.case_plan import resolve_case
from plait.plan.lint.lint import lint_cases
from plait.plan.resolve import resolve
from plait.plan.shell.script import to_shell
from plait.scenario import load
from plait.scenario.generators.kinds import KINDS
from plait.scenario.read.library import names
from plait.scenario.vary.cases import expand

NAMES = names()
# What a scenario is about may be what lint warns of.
MEANT: dict[str, set[Code]] = {
    "khalili-a": {Code.SHARED_BOTTLENECK},  # both paths cross the server's link: nothing to gain
    "fat-tree": {Code.SINGLE_PATH},  # one subflow is what the others are compared with
    "khalili-b": {Code.SHARED_BOTTLENECK},
    "shared-bottleneck": {Code.SAME_PATH},
    "large-buffers": {Code.RECEIVE_BUFFER},  # large ones are compared with the kernel's own default
    "simult-flows": {Code.QUEUE},  # short queues are what the kernel's self-test has
    "topology-a": {Code.SHARED_BOTTLENECK, Code.SAME_PATH},
    "behind-nat": {Code.NO_SIGNAL},  # addresses that are not announced are one of its cases
    "two-layer-tree": {Code.SINGLE_PATH},
    "window-size": {Code.RECEIVE_BUFFER, Code.SEND_BUFFER},  # buffers that are too small are what varies
    "wireless-wired": {Code.RECEIVE_BUFFER},  # a small buffer is one of its cases
    "path-rates-buffers": {Code.RECEIVE_BUFFER, Code.SEND_BUFFER},  # as there
}


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_scenario_can_be_planned_and_warns_of_nothing_that_it_is_not_about(name: str) -> None:
    scenario = load(name)
    assert len(scenario.title) <= 78
    assert len(scenario.description) >= 40
    cases = [resolve_case(case) for case in expand(scenario)]
    codes = {caution.code for caution in lint_cases(cases, scenario.seed)}
    assert codes <= MEANT.get(name, set())


def test_every_generator_has_a_shipped_scenario() -> None:
    assert set(KINDS) <= set(NAMES)


@pytest.mark.parametrize("name", [name for name in NAMES if name in KINDS])
def test_a_generators_scenario_uses_it(name: str) -> None:
    asked = load(name).model_dump(mode="json")["network"]
    assert asked["generator"] == name


def test_the_readme_states_the_number_of_shipped_scenarios() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    assert f"{len(NAMES)} scenarios to start from" in readme


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_scenario_can_be_written_as_commands(name: str) -> None:
    case = expand(load(name))[0]
    assert to_shell(resolve(case.scenario, 1)).startswith("#!/bin/sh")
