"""A finished study always gives a report, also without recorded files or when an analysis raises."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from markupsafe import escape
from polars.exceptions import PanicException
from typer.testing import CliRunner

import plait
from fake_engine import FakeEngine
from plait.analysis.gaps import part
from plait.cautions import ANALYSIS_FAILED
from plait.cli import app
from plait.errors import DataError, ScenarioError
from plait.explain.unrestricted_paths import unrestricted_paths_of_case
from plait.plan.resolve import resolve
from plait.report import build
from plait.scenario import load as load_scenario
from plait.scenario import parse as parse_scenario
from result_folders import fresh_cache, two_paths, write_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RAISERS: dict[str, tuple[str, str]] = {
    "a metric": ("plait.analysis.metrics.trial.share_metrics", "metrics of the split over paths"),
    "the findings": ("plait.analysis.cautions.observations.findings", "findings of MPTCP"),
    "the connections of programs": (
        "plait.analysis.metrics.programs._with_programs",
        "connections of programs",
    ),
    "a statistic": ("plait.analysis.compare.summary.describe", "statistics of goodput_bps"),
    "the comparison": ("plait.analysis.compare.summary.compare", "comparisons of cases"),
    "an explanation": ("plait.report.representatives.explain_trial", "explanation of case transport=tcp"),
    "a series": ("plait.report.representatives.trial_series", "figures over time of case transport=tcp"),
    "a drawing": ("plait.report.figures.study_figures.draw", "figure network"),
    "a chart of cases": ("plait.report.figures.kinds.cases.cases_spec", "figure goodput"),
    "the renderer": ("plait.report.render.render._pdf", "figure goodput"),
    "the data of a figure": (
        "plait.report.figures.kinds.over_time.number",
        "data of figure goodput-over-time",
    ),
    "a section": ("plait.report.page.tables.cases", "section table of the page"),
}
"""What raises, and the part of the report that is missing then."""

TWO = """
title: One endpoint for two paths
network:
  hosts: [h1, h2]
  links:
    h1-h2: {{delay: 5ms, {first}}}
    h1-h2#2: {{rate: 5mbit, delay: 5ms, queue: 20pkt}}
mptcp: {{endpoints: {{h1: [{{link: h1-h2, flags: [subflow]}}], h2: []}}}}
traffic:
  - transfer: {{from: h1, to: h2, {transfer}}}
{more}
"""
RATE, BYTES = "rate: 5mbit", "bytes: 1MB"
PROGRAM = "programs: [{node: h1, run: [cat, x.txt], files: {x.txt: {input: x.txt}}}]"
FORMS = {
    "a program's file": TWO.format(first=RATE, transfer=BYTES, more=PROGRAM),
    "a transferred file": TWO.format(first=RATE, transfer="file: x.txt", more=""),
    "a trace": TWO.format(first="trace: {file: t.csv}, queue: 20pkt", transfer=BYTES, more=""),
}


@pytest.fixture
def scenario_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the files that scenarios name, and a cache."""
    fresh_cache(monkeypatch, tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt").write_text("x" * 1000)
    (tmp_path / "t.csv").write_text("time,rate\n0s,5mbit\n1s,2mbit\n")
    return tmp_path


@pytest.mark.parametrize("form", FORMS)
def test_missing_paths_are_derived_from_a_recorded_scenario_whose_files_are_gone(
    scenario_files: Path, form: str
) -> None:
    (scenario_files / "s.yaml").write_text(FORMS[form])
    asked = load_scenario(scenario_files / "s.yaml")
    plan = resolve(asked, 1)
    kept = json.loads(json.dumps(asked.model_dump(mode="json", exclude_none=True)))
    unrestricted = unrestricted_paths_of_case(kept, "default", plan)
    assert [path.name for path in plan.flows[0].paths] == ["h1-h2"]
    assert [path.name for path in unrestricted[0].paths] == ["h1-h2#2"]


def test_a_study_with_given_endpoints_and_a_programs_file_ends_in_a_report(scenario_files: Path) -> None:
    (scenario_files / "s.yaml").write_text(FORMS["a program's file"])
    study = plait.run(load_scenario(scenario_files / "s.yaml"), engine=FakeEngine(), progress=False)
    assert study.report.is_file()
    assert study.explain().cases


def test_a_plan_of_a_scenario_whose_files_were_not_read_names_the_field(scenario_files: Path) -> None:
    text = FORMS["a program's file"]
    with pytest.raises(
        ScenarioError, match=r"programs\.0\.files\.x\.txt\.input: the file 'x\.txt' has not been read"
    ):
        resolve(parse_scenario(text, "s.yaml", ()), 1)


@pytest.fixture
def folder(scenario_files: Path) -> Path:
    """Return a finished study of TCP and MPTCP."""
    write_study(scenario_files / "study", two_paths(), repeat=2)
    return scenario_files / "study"


def raising(error: BaseException) -> Callable[..., object]:
    """Return what raises the error, whatever it is given."""

    def raise_it(*_: object, **__: object) -> object:
        raise error

    return raise_it


@pytest.mark.parametrize("function", RAISERS)
def test_whatever_an_analysis_raises_the_rest_of_the_report_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    target, missing = RAISERS[function]
    monkeypatch.setattr(target, raising(KeyError("x.txt")))
    cautions = build(folder)
    messages = [caution.message for caution in cautions if caution.code == ANALYSIS_FAILED]
    assert any(text.startswith(f"{missing}: missing") and "KeyError: 'x.txt'" in text for text in messages), (
        messages
    )
    assert json.loads((folder / "summary.json").read_text())["cases"]
    page = (folder / "report.html").read_text()
    assert all(str(escape(text)) in page for text in messages)
    assert list((folder / "figures").glob("*.svg")) or function == "the renderer"  # it draws every figure


def test_a_partial_report_ends_with_exit_code_1_and_says_why_on_the_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["report", str(folder)]
    assert CliRunner().invoke(app, arguments, standalone_mode=False).return_value == 0
    monkeypatch.setattr(
        "plait.analysis.metrics.trial.share_metrics", raising(ZeroDivisionError("division by zero"))
    )
    monkeypatch.setattr(
        "plait.results.reduce.code_of_rows", lambda: "another version"
    )  # or the cache has the metrics
    shown = CliRunner().invoke(app, arguments, standalone_mode=False)
    assert shown.return_value == 1
    assert "ZeroDivisionError" in shown.output


def test_a_python_study_opens_without_what_could_not_be_computed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plait.analysis.metrics.trial.share_metrics", raising(PanicException("polars")))
    study = plait.open(folder)
    assert [caution.code for caution in study.cautions] == [ANALYSIS_FAILED]
    assert "path_share_window_max" not in study.trials.columns
    assert study.trials["goodput_bps"].null_count() == 0


def test_damaged_data_and_a_full_disk_are_no_gaps(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (DataError("damaged"), OSError(28, "No space left on device")):
        monkeypatch.setattr("plait.analysis.metrics.trial.share_metrics", raising(error))
        with pytest.raises(type(error)):
            build(folder)


def test_outside_a_report_errors_propagate() -> None:
    with pytest.raises(KeyError):
        part("anything", raising(KeyError("x")), None)
