"""The page of a study that is a round of `plait advise` says what would help."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from pages.browser import MISSING, TOO_WIDE
from pages.view_visitor import Visitor, served
from plait.advice.result import Gain, GoalAdvice, Tried
from plait.view.site import StudySite
from result_folders import two_paths, write_study

if TYPE_CHECKING:
    from pathlib import Path

    from selenium.webdriver import Chrome

GOAL = GoalAdvice(
    "download",
    "goodput_bps",
    (
        Tried("now", "the settings as they are", 16, 8e6, (7.9e6, 8.1e6), None, "the receive buffer"),
        Tried("buffers", "larger buffers", 16, 12e6, (11.9e6, 12.1e6), Gain(1.5, (1.48, 1.52), "better")),
    ),
    "buffers",
    (),
    (),
)


@pytest.fixture
def rounds(tmp_path: Path) -> Path:
    """The folder of an advice with the last round, and a study beside it that is none."""
    folder = tmp_path / "lines-advice"
    for name in ("download-3", "download"):
        write_study(folder / name, two_paths(), repeat=1)
    write(folder, asdict(GOAL))
    return folder


def write(folder: Path, *goals: dict[str, Any]) -> None:
    (folder / "advice.json").write_text(json.dumps({"scenario": "lines", "goals": goals}))


def advices(root: Path) -> dict[str, Any]:
    site = StudySite([root], live=False)
    return {study.folder.name: site.study_view(study.id)["advice"] for study in site.refresh()}


def test_a_round_has_the_advice_of_its_goal_and_no_other_study_has_it(rounds: Path) -> None:
    views = advices(rounds)
    assert views["download"] is None
    advice = views["download-3"]
    assert [(row["name"], row["best"]) for row in advice["rows"]] == [("now", False), ("buffers", True)]
    assert advice["rows"][1]["value"] == "12.0 \N{PLUS-MINUS SIGN} 0.1 Mbit/s"
    assert advice["rows"][1]["against"] == "+50.0 % [+48.0, +52.0]"
    assert advice["sentences"][0] == "Now, the first cause is the receive buffer."
    assert advice["sentences"][1].startswith("Best: buffers, larger buffers (+50.0 %")


def test_a_round_that_is_named_alone_shows_no_file_beside_it(rounds: Path) -> None:
    assert advices(rounds / "download-3") == {"download-3": None}


@pytest.mark.parametrize(
    "damage", [{"best": "nobody"}, {"metric": "speed"}, {"tried": []}, {"tried": 3}], ids=str
)
def test_a_damaged_advice_is_a_problem_of_its_section_alone(rounds: Path, damage: dict[str, Any]) -> None:
    write(rounds, asdict(GOAL) | damage)
    problem = advices(rounds)["download-3"]["problem"]
    assert "advice.json" in problem
    assert "repeat `plait advise`" in problem


def test_a_number_that_is_not_finite_is_refused(rounds: Path) -> None:
    damaged = asdict(GOAL)
    damaged["tried"][1]["against_now"]["ratio"] = float("inf")
    write(rounds, damaged)
    assert "not finite" in advices(rounds)["download-3"]["problem"]


@pytest.mark.skipif(
    bool(MISSING), reason=f"needs {', '.join(MISSING)}: `tools/system-packages test` installs them"
)
@pytest.mark.parametrize("width", [360, 1280])
def test_the_section_is_on_the_page_without_a_button(rounds: Path, chromium: Chrome, width: int) -> None:
    with served(rounds) as server:
        visitor = Visitor(chromium, server.address)
        visitor.size(width)
        study = next(study.id for study in StudySite([rounds], live=False).refresh() if "-3" in study.name)
        visitor.go(f"s/{study}")
        text = visitor.text("#advice")
        assert text.startswith("What would help")
        assert "+50.0" in text
        assert visitor.run("return document.querySelectorAll('#advice button').length") == 0
        visitor.settles(TOO_WIDE, 0)
        assert visitor.messages() == []
