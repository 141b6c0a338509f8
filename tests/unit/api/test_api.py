"""The Python interface runs the tutorial unchanged, and a study returns the numbers of its files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from tutorial_notebook import notebook

import plait
from fake_engine import FakeEngine, failing
from plait.errors import DataError, RequestError, ScenarioError
from result_folders import fresh_cache, two_paths, write_study

if TYPE_CHECKING:
    from plait.api import Study

ROOT = Path(__file__).parents[3]


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder to work in, with a cache of its own for trials."""
    fresh_cache(monkeypatch, tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    write_study(folder, two_paths(), repeat=3)
    return plait.open(folder)


def test_the_tutorial_runs_as_it_stands(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.api.calls.make_engine", lambda *_, **__: FakeEngine())
    text = (ROOT / "docs/tutorial/python.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) > 8
    for block in blocks:
        exec(compile(block, "docs/tutorial/python.md", "exec"), names)  # noqa: S102 - our own page
    assert (empty_folder / "goodput.svg").read_text().startswith("<svg")
    assert names["faster"].cases[1] == "transport=tcp,rate=2mbit"


def test_the_notebook_is_the_page_that_was_run() -> None:
    folder = ROOT / "docs/tutorial"
    kept = (folder / "python.ipynb").read_text(encoding="utf-8")
    page = (folder / "python.md").read_text(encoding="utf-8")
    assert kept == notebook(page), (
        "python tests/unit/api/tutorial_notebook.py docs/tutorial/python.md > docs/tutorial/python.ipynb"
    )
    code = ["".join(cell["source"]) for cell in json.loads(kept)["cells"] if cell["cell_type"] == "code"]
    assert code == [block.strip() for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]


def test_an_explanation_shows_its_paragraphs(study: Study) -> None:
    explanation = study.explain()
    page = explanation._repr_html_()
    for case in explanation.cases:
        assert f"<h4>{escape(case.case)}</h4>" in page
        for flow in case.flows:
            assert flow.sentences
            assert escape(" ".join(flow.sentences)) in page


def test_the_documented_lines_recompute_the_summary_from_the_tables(empty_folder: Path) -> None:
    plait.run("two-paths", repeat=4, engine=FakeEngine(), progress=False)
    text = (ROOT / "docs/reference/results.md").read_text(encoding="utf-8")
    block = text.partition("## Recomputing the numbers")[2].partition("```python\n")[2].partition("```")[0]
    assert block.count("assert") == 2
    exec(compile(block, "docs/reference/results.md", "exec"), {})  # noqa: S102 - our own page
    kept = Path("results/two-paths/summary.json")
    summary = json.loads(kept.read_text())
    summary["cases"][1]["metrics"]["goodput_bps"]["mean"] *= 1.0001
    kept.write_text(json.dumps(summary))
    with pytest.raises(AssertionError):
        exec(compile(block, "docs/reference/results.md", "exec"), {})  # noqa: S102


def test_running_leaves_the_folder_that_the_command_leaves(empty_folder: Path) -> None:
    result = plait.run("two-paths", repeat=2, set={"sample": "50ms"}, engine=FakeEngine(), progress=False)
    assert result.folder == Path("results/two-paths")
    assert {"study.json", "summary.json", "report.html", "figures", "trials"} <= {
        path.name for path in result.folder.iterdir()
    }
    kept = json.loads((result.folder / "summary.json").read_text())
    assert json.loads(result.summary.model_dump_json()) == kept
    assert (result.failed, result.report.is_file()) == ({}, True)


def test_failed_trials_are_reported_and_the_others_kept(empty_folder: Path) -> None:
    result = plait.run("two-paths", repeat=2, engine=FakeEngine(failing("it broke")), progress=False)
    assert [trial.error for trial in result.failed["transport=tcp"]] == ["it broke"] * 2
    assert result.trials.is_empty()
    assert result.table("flows").is_empty()


def test_wrong_requests_raise_before_anything_runs(empty_folder: Path, study: Study) -> None:
    engine = FakeEngine()
    with pytest.raises(ScenarioError, match="no shipped scenario"):
        plait.run("two-path", engine=engine)
    with pytest.raises(ScenarioError, match="repeat"):
        plait.load("two-paths", repeat=0)
    with pytest.raises(RequestError, match="confirm them with --yes"):
        plait.run("two-paths", repeat=9000, engine=engine)
    with pytest.raises(RequestError, match=r"pass `set` to plait\.load"):
        plait.run(plait.load("two-paths"), set={"repeat": 3}, engine=engine)
    assert engine.calls == 0
    with pytest.raises(DataError, match="give the result folder"):
        plait.open(empty_folder)
    with pytest.raises(RequestError, match="did you mean 'flows'"):
        study.table("flow")
    with pytest.raises(RequestError, match="case 'transport=tpc'"):
        study.table("flows", case="transport=tpc")
    with pytest.raises(RequestError, match=r"unknown suffix; use \.svg, \.png or \.pdf"):
        study.figures["goodput"].save("figure.gif")


def test_counts_that_the_command_refuses_leave_the_result_folder_alone(empty_folder: Path) -> None:
    plait.run("two-paths", repeat=2, out="kept", engine=FakeEngine(), progress=False)
    engine = FakeEngine()
    for name, value in [
        ("repeat", 0),
        ("repeat", "2"),
        ("seed", -1),
        ("seed", "x"),
        ("jobs", 0),
        ("jobs", 1.5),
    ]:
        with pytest.raises(
            RequestError, match=rf"plait\.run\(.., {name}=\): .* is not a whole number of at least"
        ):
            plait.run("two-paths", out="kept", engine=engine, **{name: value})  # wrong on purpose
    assert engine.calls == 0
    assert plait.open("kept").trials.height == 4


def test_a_mistake_names_the_argument_that_made_it() -> None:
    with pytest.raises(ScenarioError) as refused:
        plait.load(
            "two-paths", set={"sample": "x", "network.links.h1-s9.rate": "1mbit", "a..b": 1}, repeat="many"
        )
    assert [str(refused.value).count(word) for word in ("set={", "repeat='many': ", "--set")] == [3, 1, 0]
    with pytest.raises(ScenarioError, match=r"set=\{'sample': 'x'\}: sample"):
        plait.run("two-paths", set={"sample": "x"}, engine=FakeEngine())


def test_a_comparison_takes_studies_or_folders_and_refuses_what_it_cannot_judge(
    tmp_path: Path, study: Study
) -> None:
    assert plait.compare(study.folder, study, metrics="goodput").cases[0].metric == "goodput_bps"
    write_study(tmp_path, (replace(two_paths()[0], name="rate=2mbit", settings={"rate": "2mbit"}),), repeat=2)
    with pytest.raises(RequestError, match="no case with the same settings"):
        plait.compare(study, tmp_path)
    with pytest.raises(RequestError, match="goodputs: it cannot be judged"):
        plait.compare(study, study, metrics=["goodputs"])
    for tolerance in ("2%", -0.1, 2):
        with pytest.raises(RequestError, match=r"is not a ratio; write for example 0\.02"):
            plait.compare(study, study, tolerance=tolerance)  # wrong on purpose


def test_an_unknown_figure_is_refused_with_the_nearest(study: Study) -> None:
    with pytest.raises(RequestError, match="did you mean 'goodput'"):
        study.figures["goodputs"]
    with pytest.raises(RequestError, match=r"use one of: .*goodput"):
        study.figures["nope"]


def test_frames_have_a_row_for_each_trial_and_each_metric(study: Study) -> None:
    assert study.trials.select("case", "trial").rows() == [
        (f"transport={t}", n) for t in ("tcp", "mptcp") for n in range(3)
    ]
    assert study.trials.schema["completion_s"] == pl.Float64, "null in every trial"
    row = study.metrics.row(
        by_predicate=(pl.col("case") == "transport=tcp") & (pl.col("metric") == "goodput_bps"), named=True
    )
    stats = study.summary.cases[0].metrics["goodput_bps"]
    assert (row["n"], row["mean"], (row["quartile1"], row["quartile3"])) == (3, stats.mean, stats.quartiles)


def test_a_notebook_shows_the_study_and_its_figures(study: Study) -> None:
    page = study._repr_html_()
    assert "MPTCP <b>" in page
    assert "data:image/svg+xml;base64," in page
    bundle = study.figures["goodput"]._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    spec = study.figures["goodput"].spec
    assert spec is not None
    assert spec["$schema"].startswith("https://vega.github.io")
    assert study.figures["network"].spec is None
    assert repr(study).startswith("<study 'Two 5 Mbit/s paths")
    assert study.figures["goodput"].png.startswith(b"\x89PNG")


def test_the_package_stays_callable_after_its_modules_are_imported() -> None:
    import plait.study.runner

    assert callable(plait.run)
    assert callable(plait.load)
    assert plait.Scenario is type(plait.load("two-paths"))
    with pytest.raises(AttributeError, match="no attribute 'walk'"):
        plait.walk  # noqa: B018
