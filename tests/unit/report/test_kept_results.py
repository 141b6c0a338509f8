"""A report keeps the summary and the explanations of the same trials, and makes them again when anything changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from plait.cli import app
from plait.dataset.files import write_table
from plait.dataset.trial import read_trial
from plait.report import assemble, build, cached, current, representatives
from result_folders import fresh_cache, two_paths, write_study

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fresh_cache(monkeypatch, tmp_path / "cache")
    write_study(tmp_path / "study", two_paths(), repeat=3)
    return tmp_path / "study"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the reports of this test compute, and do not find in the cache."""
    names: list[str] = []
    for module, name in ((assemble, "summarise"), (representatives, "explain_trial")):
        original = getattr(module, name)

        def counted(
            *arguments: object, name: str = name, original: object = original, **named: object
        ) -> object:
            names.append(name)
            assert callable(original)
            return original(*arguments, **named)

        monkeypatch.setattr(module, name, counted)
    return names


def written(folder: Path) -> dict[str, bytes]:
    """Rebuild the report; return what it wrote."""
    build(folder)
    files = [folder / "report.html", folder / "summary.json", *(folder / "figures").iterdir()]
    return {path.name: path.read_bytes() for path in files}


def test_a_second_report_computes_neither_again_and_has_the_same_bytes(
    folder: Path, calls: list[str]
) -> None:
    first = written(folder)
    assert sorted(calls) == ["explain_trial", "explain_trial", "summarise"]
    calls.clear()
    assert written(folder) == first
    assert calls == []


def test_a_changed_trial_is_summarised_and_explained_again(folder: Path, calls: list[str]) -> None:
    first = written(folder)
    calls.clear()
    explained = read_trial(folder / "trials" / "transport=mptcp" / "001")
    subflows = explained.tables["subflows"].with_columns(pl.col("rtt_us") * 2)
    for index in range(3):  # whichever represents the case
        write_table(subflows, folder / "trials" / "transport=mptcp" / f"00{index}", "subflows")
    second = written(folder)
    assert sorted(calls) == ["explain_trial", "summarise"]
    assert second["report.html"] != first["report.html"]


@pytest.mark.parametrize(
    ("function", "again"), [("code_of", ["explain_trial"] * 2), ("code_of_rows", ["summarise"])]
)
def test_other_code_computes_again(
    folder: Path, calls: list[str], function: str, again: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = written(folder)
    calls.clear()
    monkeypatch.setattr(cached, function, lambda *_: "another version")
    assert written(folder) == first
    assert calls == again


def test_a_change_of_figures_computes_neither_again(folder: Path, calls: list[str]) -> None:
    written(folder)
    calls.clear()
    study = json.loads((folder / "study.json").read_text())
    study["scenario"]["figures"] = [{"name": "mine", "kind": "cases", "metric": "goodput_bps"}]
    (folder / "study.json").write_text(json.dumps(study))
    assert "mine.svg" in written(folder)
    assert calls == []


def test_another_baseline_or_label_is_another_summary(folder: Path, calls: list[str]) -> None:
    written(folder)
    calls.clear()
    study = json.loads((folder / "study.json").read_text())
    study["baseline"] = "transport=mptcp"
    (folder / "study.json").write_text(json.dumps(study))
    assert b'"baseline": "transport=mptcp"' in written(folder)["summary.json"]
    assert calls == ["summarise"]


def test_what_could_not_be_explained_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(representatives, "explain_trial", fail)
    for _ in range(2):  # the second report says it, too
        assert b"explanation of case" in written(folder)["report.html"]


def test_a_damaged_entry_is_no_source(folder: Path, tmp_path: Path, calls: list[str]) -> None:
    first = written(folder)
    calls.clear()
    for name in ("summaries", "explanations"):
        for path in (tmp_path / "cache" / name).iterdir():
            path.write_bytes(path.read_bytes()[:-1])
    assert written(folder) == first
    assert sorted(calls) == ["explain_trial", "explain_trial", "summarise"]


def test_other_columns_of_a_report_wait_for_no_new_one_until_anything_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They took as long as a whole report: 22 s for 840 trials."""
    build(folder)
    made: list[Path] = []
    original = assemble.assemble
    monkeypatch.setattr(
        assemble,
        "assemble",
        lambda place, *given, **named: made.append(place) or original(place, *given, **named),
    )

    def chosen(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["report", str(folder), *arguments])
        assert result.exit_code == 0, result.output
        return result.output

    assert "retransmitted" in chosen("--columns", "retransmits")
    assert made == []
    chosen()
    assert made == [folder], "without --columns it is a request for a new report"
    chosen("--columns", "retransmits", "--width", "column")
    assert made == [folder] * 2, "its figures have another width"
    (folder / "report.html").write_text("edited")
    chosen("--columns", "retransmits", "--width", "column")
    assert made == [folder] * 3


def _change_data(folder: Path) -> None:
    subflows = read_trial(folder / "trials" / "transport=mptcp" / "001").tables["subflows"]
    write_table(subflows, folder / "trials" / "transport=mptcp" / "001", "subflows")


def _remove_page(folder: Path) -> None:
    (folder / "report.html").unlink()


@pytest.mark.parametrize("change", [_change_data, _remove_page])
def test_a_report_is_current_until_its_data_or_files_change(
    folder: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (180.0, 85.0, "plain")
    assert current.kept_cautions(folder, options) is None
    cautions = build(folder, width_mm=180.0)
    assert current.kept_cautions(folder, options) == cautions
    assert current.kept_cautions(folder, (90.0, *options[1:])) is None
    with monkeypatch.context() as other:
        other.setattr(current, "code_of", lambda _: "another version")
        assert current.kept_cautions(folder, options) is None
    change(folder)
    assert current.kept_cautions(folder, options) is None
