"""A study resolves each case once, and every trial's plan follows from that."""

from __future__ import annotations

import pytest

from fake_engine import FakeEngine
from plait.plan import case_plan
from plait.plan.case_plan import resolve_case
from plait.plan.identity import plan_bytes
from plait.plan.resolve import resolve, without_seed
from plait.scenario import load
from plait.scenario.vary.cases import expand
from plait.study.engines import StudyEngines
from plait.study.estimate import work_per_case
from plait.study.perform import is_steady
from plait.study.study import describe, plan_study

NAMES = ("two-paths", "khalili-a", "topology-a", "behind-nat", "regions", "source-flapping")


@pytest.mark.parametrize("name", NAMES)
def test_the_plans_of_a_case_are_those_of_its_scenario(name: str) -> None:
    for case in expand(load(name))[:2]:
        planned = resolve_case(case)
        for seed in (0, 1, 2**53 - 1):
            assert plan_bytes(planned.plan(seed)) == plan_bytes(resolve(case.scenario, seed))


def test_a_study_resolves_each_case_once(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = []

    def counted(scenario: object) -> object:
        resolved.append(scenario)
        return without_seed(scenario)

    monkeypatch.setattr(case_plan, "without_seed", counted)
    scenario = load("two-paths", ("vary={'network.links.h1-s1.rate': '1mbit..20mbit step 1mbit'}",))
    study = plan_study(scenario, "x", repeat=4)
    describe(scenario, study, StudyEngines.named({"virtual": FakeEngine()}), "")
    work_per_case(study)
    is_steady(study)
    for case, _ in study.keys():  # noqa: SIM118 - no mapping
        case.plan(1)
    assert len(resolved) == len(study.cases) == 20
