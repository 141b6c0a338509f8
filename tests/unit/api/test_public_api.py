"""`import plait` offers typed names, frames with factors, and explanations as text."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

import plait
from plait.errors import RequestError, ScenarioError
from plait.report.table import chosen
from plait.results.long_table import factor_column
from plait.units import Duration, Rate
from result_folders import two_paths, write_study

if TYPE_CHECKING:
    from pathlib import Path

BULK = {"bulk": {"from": "a", "to": "b", "duration": "1s"}}
SCRIPT = """
from pathlib import Path

import plait

scenario: plait.Scenario = plait.load("two-paths", repeat=5)
study: plait.Study = plait.run(scenario, out=Path("results"), jobs=2)
again = plait.open("results")
goodput: float | None = again.summary.cases[0].metrics["goodput_bps"].mean
figure: plait.Figure = again.figures["goodput"]
figure.save("goodput.pdf")
text: str = str(again.explain(case=again.cases[0]))
rows: int = again.trials.height
verdict: str = plait.compare(study, again, tolerance=0.02).verdict
made: plait.Scenario = plait.scenario({"title": "t", "network": {"generator": "two-wans"}})
"""


def checked(script: str, folder: Path) -> str:
    path = folder / "script.py"
    path.write_text(script, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), str(path)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return done.stdout


@pytest.mark.slow  # mypy reads every dependency
def test_a_script_of_a_user_is_checked_by_types(tmp_path: Path) -> None:
    assert "Success: no issues found" in checked(SCRIPT, tmp_path)
    wrong = checked(SCRIPT + 'plait.run("two-paths", repeat="five")\nagain.sumary\nplait.runn\n', tmp_path)
    for error in ('incompatible type "str"', 'has no attribute "sumary"', 'has no attribute "runn"'):
        assert error in wrong, wrong


def test_the_package_shows_what_it_offers() -> None:
    assert dir(plait) == [
        *(
            "Figure",
            "Scenario",
            "Study",
            "__version__",
            "advise",
            "compare",
            "load",
            "open",
            "run",
            "scenario",
        )
    ]
    for name in plait.__all__:
        assert getattr(plait, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'runn'"):
        _ = plait.runn


def test_python_values_make_the_scenario_of_the_same_file(tmp_path: Path) -> None:
    network = {"hosts": ["a", "b"], "links": {"a-b": {"rate": Rate(10**7), "trace": None}}}
    made = plait.scenario({"title": "t", "network": network, "traffic": [BULK]})
    text = "title: t\nnetwork: {hosts: [a, b], links: {a-b: {rate: 10mbit, trace: null}}}\n"
    text += "traffic: [{bulk: {from: a, to: b, duration: 1s}}]\n"
    (tmp_path / "t.yaml").write_text(text)
    assert made.model_dump() == plait.load(tmp_path / "t.yaml").model_dump()
    assert plait.load(tmp_path / "t.yaml", set={"repeat": 3}, seed=7, sample=Duration(10**7)).seed == 7
    with pytest.raises(ScenarioError, match=r"^network\.links\.a-c: no node is called 'c'"):
        plait.scenario(
            {"title": "t", "network": {"hosts": ["a", "b"], "links": {"a-c": {}}}, "traffic": [BULK]}
        )


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> plait.Study:
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, two_paths(), repeat=2)
    return plait.open(folder)


def test_frames_have_a_column_per_factor(study: plait.Study) -> None:
    assert study.trials.columns[:4] == ["case", "transport", "trial", "seed"]
    assert study.metrics.columns[:3] == ["case", "transport", "metric"]
    assert study.table("subflows").columns[:3] == ["case", "transport", "trial"]
    for frame in (study.trials, study.metrics, study.table("subflows")):
        assert (frame["case"] == "transport=" + frame["transport"]).all()


def test_the_name_that_a_table_shows_leads_to_the_column(tmp_path: Path) -> None:
    field = "network.links.h1-s2.delay"
    cases = [
        replace(case, name=f"{case.name},{field}={delay}", settings={**case.settings, field: delay})
        for case in two_paths()
        for delay in ("5ms", "9ms")
    ]
    write_study(tmp_path, tuple(cases), repeat=1)
    study = plait.open(tmp_path)
    assert study.factors == {"transport": "transport", "delay": field}
    assert set(study.trials[study.factors["delay"]]) == {"5ms", "9ms"}
    with pytest.raises(RequestError, match="no such factor; did you mean 'delay'"):
        study.factors["dealy"]
    for name in ("delay", field):
        columns = chosen(study.summary, [name, "goodput_bps", name])
        assert [column.name for column in columns] == ["delay", "goodput_bps"]


def test_a_column_that_a_table_has_already_is_not_replaced(study: plait.Study) -> None:
    flows = study.table("flows")
    assert flows.columns.count("transport") == 1
    assert flows.columns[:2] == ["case", "trial"]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([1, None, 3], pl.Series([1, None, 3], dtype=pl.Int64)),
        ([1, 2.5], pl.Series([1.0, 2.5])),
        ([True, False], pl.Series([True, False])),
        (["5mbit", 3], pl.Series(["5mbit", "3"])),
        ([["a", "b"], None], pl.Series(["['a', 'b']", None])),
    ],
)
def test_factors_keep_numbers_and_truth_values(values: list[object], column: pl.Series) -> None:
    assert factor_column(values).equals(column, check_dtypes=True, null_equal=True)


def test_frames_convert_to_pandas(study: plait.Study) -> None:
    frame = study.trials.to_pandas()
    assert list(frame["transport"]) == list(study.trials["transport"])


def test_an_explanation_prints_as_text(study: plait.Study) -> None:
    explanation = study.explain()
    text = str(explanation)
    assert repr(explanation) == text
    assert max(map(len, text.splitlines())) <= 80
    for case in explanation.cases:
        assert case.case in text
        for flow in case.flows:
            assert " ".join(flow.sentences) in " ".join(text.split())
