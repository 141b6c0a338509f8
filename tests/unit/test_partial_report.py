"""A finished study always gives a report: from recorded files that are gone, and when an analysis raises."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import plait
from plait import scenario as scenarios
from plait.errors import ScenarioError
from plait.explain.possible import possible_of_case
from plait.plan.resolve import resolve
from plait.testing.engine import FakeEngine

if TYPE_CHECKING:
    from pathlib import Path

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
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that scenarios name, and a cache."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt").write_text("x" * 1000)
    (tmp_path / "t.csv").write_text("time,rate\n0s,5mbit\n1s,2mbit\n")
    return tmp_path


@pytest.mark.parametrize("form", FORMS)
def test_missing_paths_are_derived_from_a_recorded_scenario_whose_files_are_gone(
    place: Path, form: str
) -> None:
    (place / "s.yaml").write_text(FORMS[form])
    asked = scenarios.load(place / "s.yaml")
    plan = resolve(asked, 1)
    kept = json.loads(json.dumps(asked.model_dump(mode="json", exclude_none=True)))
    found = possible_of_case(kept, "default", plan)
    assert [path.name for path in plan.flows[0].paths] == ["h1-h2"]
    assert [path.name for path in found[0].paths] == ["h1-h2#2"]


def test_a_study_with_given_endpoints_and_a_programs_file_ends_in_a_report(place: Path) -> None:
    (place / "s.yaml").write_text(FORMS["a program's file"])
    study = plait.run(scenarios.load(place / "s.yaml"), engine=FakeEngine(), progress=False)
    assert study.report.is_file()
    assert study.explain().cases


def test_a_plan_of_a_scenario_whose_files_were_not_read_names_the_field(place: Path) -> None:
    text = FORMS["a program's file"]
    with pytest.raises(
        ScenarioError, match=r"programs\.0\.files\.x\.txt\.input: the file 'x\.txt' has not been read"
    ):
        resolve(scenarios.parse(text, "s.yaml", ()), 1)
