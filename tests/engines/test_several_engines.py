"""Studies on several engines, and on one whose clock is real."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from fake_engine import FakeEngine
from plait.cli.run import _engines
from plait.dataset.provenance import read_provenance
from plait.dataset.study_file import read_study_file
from plait.engine.support import Unsupported, Use
from plait.errors import RequestError, ScenarioError
from plait.report import build
from plait.scenario import load, parse
from plait.study.perform import Options, perform
from plait.study.progress import silent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plait.engine.engine import Clock, Engine, Job
    from plait.plan.model.plan import Plan
    from plait.study.study import StudyOutcome

TEXT = """\
title: Two hosts
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, delay: 5ms}
traffic:
  - bulk: {from: a, to: b, duration: 1s}
repeat: 3
"""


class RealTimeEngine(FakeEngine):
    """A fake engine that cannot repeat itself, runs one trial at a time, and lacks captures."""

    name = "real"
    repeatable = False
    clock: Clock = "real"
    max_jobs: int | None = 1

    def __init__(self) -> None:
        super().__init__()
        self._running = threading.Semaphore(1)

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        captures = plan.monitors.captures
        return [Unsupported(Use("captures", "monitors"), "keeps no packets") for _ in captures[:1]]

    def execute(self, job: Job) -> None:
        assert self._running.acquire(blocking=False), "two trials at once"
        try:
            job.note("lateness_us", 12)
            super().execute(job)
        finally:
            self._running.release()


def study(engines: Mapping[str, Engine], text: str, out: Path) -> StudyOutcome:
    scenario = parse(text, "t.yaml")
    _, outcome = perform(
        scenario, "t", engines.__getitem__, Options(jobs=4), folder=out, watch=silent, notify=lambda _: None
    )
    return outcome


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))


def test_trials_in_real_time_run_one_by_one_and_are_never_reused(tmp_path: Path) -> None:
    engine = RealTimeEngine()
    assert study({"virtual": engine}, TEXT, tmp_path / "out").reused == 0
    assert study({"virtual": engine}, TEXT, tmp_path / "out").reused == 0
    assert engine.calls == 6, "every repeat ran, twice: no store, and no check by a second trial alone"
    kept = read_provenance(tmp_path / "out/trials/default/000").host
    assert {"started", "host", "host_kernel", "load_1min"} <= set(kept)
    assert kept["lateness_us"] == 12


def test_a_repeatable_engine_keeps_of_this_machine_only_its_processors(tmp_path: Path) -> None:
    study({"virtual": FakeEngine()}, TEXT, tmp_path / "out")
    assert set(read_provenance(tmp_path / "out/trials/default/000").host) <= {"processor", "processors"}


def test_a_feature_that_an_engine_lacks_is_refused_in_its_place(tmp_path: Path) -> None:
    text = TEXT + "monitors:\n  capture: {on: [a]}\n"
    with pytest.raises(ScenarioError) as caught:
        study({"virtual": RealTimeEngine()}, text, tmp_path / "out")
    assert "t.yaml:9:1: monitors: the engine real keeps no packets; use --engine virtual" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_an_unknown_engine_is_refused_with_those_that_exist() -> None:
    with pytest.raises(RequestError, match="--engine fast: unknown engine; write one of: virtual"):
        _engines("two-paths", ["fast"])
    with pytest.raises(ScenarioError, match="engine: 'fast'"):
        parse(TEXT + "engine: fast\n", "t.yaml")


def test_one_engine_is_a_setting_and_the_varied_field_stays_varied() -> None:
    chosen = _engines("two-paths", ["virtual"])
    assert load("two-paths", ["repeat=2", *chosen]).engine == "virtual"
    varied = load("two-paths", ["vary.engine=[virtual, machine]", *chosen])
    assert varied.vary["engine"] == ["virtual"]
    assert load("two-paths", ("engine=virtual",)).engine == "virtual"


def test_study_json_and_the_page_name_the_engine(tmp_path: Path) -> None:
    study({"virtual": RealTimeEngine()}, TEXT, tmp_path / "out")
    about = read_study_file(tmp_path / "out")
    assert (about.engine, about.engines) == ("fake", ())
    assert "engines" not in json.loads((tmp_path / "out/study.json").read_text())
    build(tmp_path / "out")
    assert "fake engine" in (tmp_path / "out/report.html").read_text()
