"""Each kernel of a scenario gets an engine of its own, and a wrong one is refused where the file names it."""

from __future__ import annotations

import pytest

from fake_engine import FakeEngine
from plait.engine.factory import make_engine
from plait.errors import RequestError, ScenarioError
from plait.scenario import parse
from plait.study.engines import StudyEngines, make_engines
from plait.study.study import plan_study
from scenario_samples import TWO


def engines_of(text: str) -> StudyEngines:
    study = plan_study(parse(TWO + text, "t.yaml"), "test")
    return StudyEngines.named(make_engines(study.cases, lambda _: FakeEngine()))


def test_cases_with_one_kernel_share_an_engine() -> None:
    engines = engines_of("vary:\n  kernel: [6.12, patched]\n  transport: [tcp, mptcp]\n")
    assert list(engines.by_name) == ["virtual@6.12", "virtual@patched"]
    assert [fact.name for fact in engines.facts()] == ["virtual@6.12", "virtual@patched"]


def test_all_unknown_kernels_are_refused_at_their_places() -> None:
    study = plan_study(parse(TWO + "vary:\n  kernel: [none-1, none-2]\n", "t.yaml"), "test")
    with pytest.raises(ScenarioError) as refused:
        make_engines(study.cases, make_engine)
    lines = str(refused.value).splitlines()
    assert [line.partition(": kernel none")[0].rpartition(" ")[2] for line in lines] == [
        "vary.kernel.0", "vary.kernel.1"
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["host", "remote"])
def test_hosts_keep_their_kernels(engine: str) -> None:
    with pytest.raises(RequestError, match=f"the engine {engine} runs on the kernels that its hosts have"):
        make_engine(f"{engine}@6.12")
