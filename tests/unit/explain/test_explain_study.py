"""Explaining a study reports failed trials, explains the others, and answers wrong requests with the choices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import plait
from plait.cli import app
from plait.errors import RequestError
from result_folders import FakeCase, two_paths, write_study

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a study of TCP, with two of three trials failed, and MPTCP."""
    tcp, mptcp = two_paths()
    broken = FakeCase(tcp.name, tcp.settings, tcp.plan, failed={0: "the guest died", 2: "the guest died"})
    write_study(tmp_path, (broken, mptcp), repeat=3)
    return tmp_path


def test_failed_trials_are_reported_and_the_others_explained(folder: Path) -> None:
    explanation = plait.open(folder).explain()
    assert [(case.case, case.trial, case.trials) for case in explanation.cases] == [
        ("transport=tcp", 1, 1),
        ("transport=mptcp", explanation.cases[1].trial, 3),
    ]
    assert [line.split(":")[0] for line in explanation.failed] == ["transport=tcp #0", "transport=tcp #2"]


def test_the_command_prints_what_the_json_holds_in_80_columns(folder: Path) -> None:
    shown = CliRunner().invoke(app, ["explain", str(folder)], standalone_mode=False).output
    assert max(map(len, shown.splitlines())) <= 80
    assert "Not explained, because the trial failed" in shown
    printed = CliRunner().invoke(app, ["explain", str(folder), "--json"], standalone_mode=False).output
    data = json.loads(printed)
    assert data["schema"] == 2
    for case in data["cases"]:
        for flow in case["flows"]:
            assert flow["sentences"][0].split(" reached ")[0] == flow["flow"]
            assert sum(share["time"] for share in flow["shares"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ({"case": "transport=tpc"}, "transport=tcp"),
        ({"flow": "nobody"}, "no completed trial has such a flow that can be explained; use one of: "),
        ({"case": "transport=tcp", "trial": 0}, "the guest died"),
        ({"trial": 9}, "there is no completed trial; `plait run` runs"),
    ],
)
def test_a_wrong_request_is_refused_with_the_choices(
    folder: Path, chosen: dict[str, object], says: str
) -> None:
    with pytest.raises(RequestError, match=says):
        plait.open(folder).explain(**chosen)


def test_the_reasons_of_failed_trials_are_counted_where_not_all_are_given(tmp_path: Path) -> None:
    tcp, _ = two_paths()
    dead = FakeCase(tcp.name, tcp.settings, tcp.plan, failed=dict.fromkeys(range(5), "the guest died"))
    write_study(tmp_path, (dead,), repeat=5)
    with pytest.raises(RequestError, match=r"(the guest died.*){3}; and 2 more failed trials$"):
        plait.open(tmp_path).explain()
