"""Tables of a terminal have a column for each factor, fit 80 columns, and name what does not fit."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest

from case_samples import crossed
from plait.analysis.compare.factors import PLAIN, Design
from plait.analysis.compare.studies import compare_studies
from plait.analysis.compare.summary import summarise
from plait.errors import RequestError
from plait.report.terminal.comparison import show_comparison
from plait.report.terminal.summary import Screen, show

if TYPE_CHECKING:
    from pathlib import Path

    from plait.analysis.rows import CaseRows

SCHEDULERS = ("default", "minrtt", "roundrobin", "redundant", "blest", "capped")
CONTROLS = ("cubic", "reno", "bbr", "lia", "olia")


def printed(folder: Path, cases: tuple[CaseRows, ...], *wanted: str, design: Design = PLAIN) -> str:
    summary = summarise(cases, scenario="phone", digest="sha256:00", baseline=cases[0].name, design=design)
    (folder / "summary.json").write_text(summary.model_dump_json())
    file = io.StringIO()
    show(folder, file=file, wanted=wanted)
    return file.getvalue()


def table_lines(text: str) -> list[str]:
    """Return the lines of the table below its heading."""
    lines = text.splitlines()
    rule = next(
        number for number, line in enumerate(lines) if line.startswith("\N{BOX DRAWINGS LIGHT HORIZONTAL}")
    )
    return lines[rule + 1 : lines.index("", rule)]


def test_each_factor_has_a_column_and_no_level_is_cut_or_broken(tmp_path: Path) -> None:
    text = printed(tmp_path, crossed({"scheduler": SCHEDULERS, "congestion_control": CONTROLS}))
    lines = table_lines(text)
    assert [tuple(line.split()[:2]) for line in lines[:30]] == list(product(SCHEDULERS, CONTROLS))
    assert max(map(len, text.splitlines()[:-1])) <= 80
    heading = text[: text.index("\N{BOX DRAWINGS LIGHT HORIZONTAL}")].split()
    assert {"scheduler", "congestion", "control", "page", "load"} <= set(heading)


def test_rows_are_in_groups_of_one_network(tmp_path: Path) -> None:
    """Rows of three networks alternated, where the network was not the first factor."""
    factors = {"scheduler": SCHEDULERS, "network": ("wifi-lte", "equal"), "congestion_control": CONTROLS[:2]}
    lines = table_lines(printed(tmp_path, crossed(factors), design=Design(strata=("network",))))
    rules = [
        number for number, line in enumerate(lines) if set(line) <= set("\N{BOX DRAWINGS LIGHT HORIZONTAL} ")
    ]
    assert len(rules) == 1
    first, second = lines[: rules[0]], lines[rules[0] + 1 :]
    assert {line.split()[1] for line in first} == {"wifi-lte"}
    assert {line.split()[1] for line in second[: len(first)]} == {"equal"}


def test_the_only_case_of_a_network_is_no_winner(tmp_path: Path) -> None:
    """The headline said: Of one cases, network wifi-lte has the highest goodput."""
    text = printed(
        tmp_path, crossed({"network": ("wifi-lte", "equal", "dc")}), design=Design(strata=("network",))
    )
    assert "Of one" not in text
    assert "wifi-lte: The page load time is " in text.replace("\n", " ")


def test_what_goes_along_with_a_network_has_no_column_and_a_metric_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a zip of nine fields the table showed four constants and no metric, also in 120 columns."""
    monkeypatch.setenv("COLUMNS", "120")
    fields = {
        f"network.links.client-{end}.{name}": number
        for number, (end, name) in enumerate(product("ab", ("rate", "delay", "queue", "loss")))
    }
    cases = tuple(
        replace(case, name=f"{level},{case.name}", settings={
            **{field: f"{level + number}mbit" for field, number in fields.items()}, **case.settings,
        })
        for level in (1, 2, 30)
        for case in crossed({"scheduler": SCHEDULERS, "congestion_control": CONTROLS})
    )  # fmt: skip
    text = printed(tmp_path, cases)
    heading = text[: text.index("\N{BOX DRAWINGS LIGHT HORIZONTAL}")].split()
    assert {"scheduler", "page", "load"} <= set(heading)
    assert [word for word in heading if word in {"rate", "delay", "queue", "loss"}] == ["rate"]
    assert max(map(len, table_lines(text)[:90])) > 80
    assert "No room for: rate" not in text


def test_a_metric_has_room_before_the_last_factor_has(tmp_path: Path) -> None:
    names = {f"field{number}": (f"{'x' * 14}{number}", f"{'y' * 14}{number}") for number in range(5)}
    lines = table_lines(printed(tmp_path, crossed(names)))
    assert all("\N{PLUS-MINUS SIGN}" in line for line in lines[:32])


def test_the_ratio_says_of_what(tmp_path: Path) -> None:
    text = printed(tmp_path, crossed({"scheduler": SCHEDULERS, "congestion_control": CONTROLS}))
    heading = text[: text.index("\N{BOX DRAWINGS LIGHT HORIZONTAL}")]
    assert {"load,", "\N{MULTIPLICATION SIGN}", "of", "default"} <= set(heading.split())


def test_every_judged_value_has_its_interval(tmp_path: Path) -> None:
    text = printed(tmp_path, crossed({"scheduler": SCHEDULERS, "congestion_control": CONTROLS}))
    assert all("\N{PLUS-MINUS SIGN}" in line for line in table_lines(text)[:30])


def test_what_has_no_room_is_named(tmp_path: Path) -> None:
    factors = {
        "network.links.wifi.rate": ("5mbit", "10mbit"),
        "network.links.lte.rate": ("7mbit", "20mbit"),
        "scheduler": ("default", "roundrobin"),
        "congestion_control": ("cubic", "reno"),
    }
    folder = tmp_path / f"a folder {'with a long name ' * 6}"
    folder.mkdir()
    text = printed(folder, crossed(factors))
    assert "No room for: paths. Choose columns with\n" in text
    command = text.split("Choose columns with\n")[1].splitlines()[0]
    assert shlex.split(command) == ["plait", "report", str(folder), "--columns", "NAME,.."]
    assert {"wifi.rate", "lte.rate"} <= set(text.split("\N{BOX DRAWINGS LIGHT HORIZONTAL}")[0].split())
    assert all(line.split()[0] in {"5mbit", "10mbit"} for line in table_lines(text)[:16])


def test_a_word_that_is_longer_than_a_line_stays_whole() -> None:
    file = io.StringIO()
    path = f"/a/{'long/' * 20}path"
    Screen(file).line(f"The first case has a table in {path}, and this sentence goes on after it.")
    assert f"{path}," in file.getvalue().split()


def test_a_level_that_is_wider_than_the_screen_leaves_numbered_rows(tmp_path: Path) -> None:
    long = tuple(f"{letter * 90}" for letter in "ab")
    text = printed(tmp_path, crossed({"program": long, "scheduler": ("default", "minrtt")}))
    lines = table_lines(text)
    assert [line.split()[:2] for line in lines[:4]] == [
        [str(number), scheduler] for number, scheduler in enumerate(("default", "minrtt") * 2, 1)
    ]
    assert "No room for: program" in text


def test_columns_are_chosen_by_name(tmp_path: Path) -> None:
    cases = crossed({"scheduler": SCHEDULERS, "congestion_control": CONTROLS})
    text = printed(tmp_path, cases, "congestion_control", "retransmits", "lte.path_share")
    assert table_lines(text)[0].split()[0] == "cubic"
    assert "retransmitted" in text
    assert "goodput" not in text.split("\N{BOX DRAWINGS LIGHT HORIZONTAL}")[0]


def test_chosen_columns_without_a_factor_follow_those_of_all_factors(tmp_path: Path) -> None:
    cases = crossed({"scheduler": SCHEDULERS, "congestion_control": CONTROLS})
    lines = table_lines(printed(tmp_path, cases, "retransmits"))
    assert [tuple(line.split()[:2]) for line in lines] == list(product(SCHEDULERS, CONTROLS))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("speed", r"no such column; choose from scheduler, page_load_s"),
        ("second_subflow", r"no such column; did you mean 'second_subflow_s'\?"),
        ("stall_max_s", r"no trial measured it"),
    ],
)
def test_an_unknown_column_is_refused_with_what_to_ask_for(tmp_path: Path, name: str, why: str) -> None:
    with pytest.raises(RequestError, match=f"--columns {name}: .*{why}"):
        printed(tmp_path, crossed({"scheduler": SCHEDULERS}), name)


def test_a_comparison_of_studies_has_a_column_for_each_factor() -> None:
    factors = {"scheduler": SCHEDULERS, "congestion_control": CONTROLS}
    comparison = compare_studies(
        crossed(factors), crossed(factors, slower=1.5), metrics=("page_load_s", "goodput_bps"), tolerance=0.0
    )
    file = io.StringIO()
    show_comparison(comparison, [], file)
    lines = table_lines(file.getvalue())
    assert [line.partition(" worse")[0].split() for line in lines[:30]] == [
        [*case, "page", "load"] for case in product(SCHEDULERS, CONTROLS)
    ], "the metric has the heading of the table of cases"
    assert [tuple(line.split()[:3]) for line in lines[30:60]] == [
        (*case, "goodput") for case in product(SCHEDULERS, CONTROLS)
    ]
    assert all("worse" in line and "+50.0 %" in line for line in lines[:30])
    assert json.loads(comparison.model_dump_json())["cases"][0]["settings"] == {
        "scheduler": "default",
        "congestion_control": "cubic",
    }
