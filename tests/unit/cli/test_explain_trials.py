"""`plait explain` checks what it shall run again before it runs anything, and runs as many trials at once as asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import plait
from fake_engine import FakeEngine
from plait.cli import app
from plait.engine import factory
from plait.errors import RequestError
from plait.study import verify
from result_folders import fresh_cache

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from plait.study.perform import Options


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeEngine:
    """Return the engine of all trials of a test."""
    engine = FakeEngine()
    fresh_cache(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(factory, "make_engine", lambda *_, **__: engine)
    return engine


@pytest.fixture
def folder(engine: FakeEngine, tmp_path: Path) -> Path:
    """Return a study of TCP and MPTCP."""
    return plait.run("two-paths", out=tmp_path / "out", engine=engine, repeat=2).folder


def explain(folder: Path, *words: str) -> Result:
    """Run `plait explain` with these words."""
    return CliRunner().invoke(app, ("explain", str(folder), *words), standalone_mode=False)


def test_jobs_bound_the_trials_of_a_what_if(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = []
    perform = verify.perform

    def watched(*arguments: object, **rest: object) -> object:
        options: Options = arguments[3]
        jobs.append(options.jobs)
        return perform(*arguments, **rest)

    monkeypatch.setattr(verify, "perform", watched)
    result = explain(folder, "--what-if", "sample=20ms", "--seeds", "2", "--jobs", "1")
    assert result.exception is None
    assert jobs
    assert set(jobs) == {1}


def test_verify_says_what_it_did_not_try_and_why(folder: Path, engine: FakeEngine) -> None:
    """The flow of TCP has no named cause; plait cannot remove a cause that it does not know."""
    before = engine.calls
    result = explain(folder, "--verify", "--case", "transport=tcp", "--seeds", "2")
    assert "Nothing was tried, because no cause is named." in result.output
    assert engine.calls == before
    flow = plait.open(folder).explain(case="transport=tcp").cases[0].flows[0]
    named = ("not-known", "receive-memory", "too-short", "backup")
    unknown = flow.model_copy(update={"named": named})
    assert list(verify.not_tried(unknown, ["too-short"])) == [
        "Not tried: not-known, because plait knows no change of this scenario that removes it.",
        "Not tried: receive-memory, because plait knows no change of this scenario that removes it.",
        "Not tried: backup, because --verify tries the first 3 causes.",
    ]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("sample", "write PATH=VALUE"),
        ("sample=[", "--what-if sample="),
        ("network.links.nowhere.rate=1mbit", "network.links has no 'nowhere'"),
        (
            "sample=20ms;transport=smoke",
            "--what-if sample=20ms; transport=smoke: transport: 'smoke' is not a valid",
        ),
        (
            "h1-s1.loss=0%",
            "--what-if h1-s1.loss=0%: h1-s1: there is no such field here; if it is a link, write network",
        ),
    ],
)
def test_a_wrong_what_if_is_refused_before_anything_runs(
    folder: Path, engine: FakeEngine, change: str, says: str
) -> None:
    before = engine.calls
    result = explain(folder, "--what-if", "sample=20ms", "--what-if", change, "--seeds", "2")
    assert isinstance(result.exception, RequestError)
    assert says in str(result.exception)
    assert engine.calls == before


@pytest.mark.parametrize(
    ("name", "says"),
    [("x" * 300, "File name too long"), ("file/results", "is a file"), ("closed/a/b", "not write")],
)
def test_an_unusable_result_folder_is_refused_before_an_engine_starts(
    name: str, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir()
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "closed" not in str(path) and access(path, mode))

    def no_engine(*_: object, **__: object) -> FakeEngine:
        raise AssertionError("the folder is refused first")

    monkeypatch.setattr(factory, "make_engine", no_engine)
    words = ("run", "two-paths", "--out", str(tmp_path / name))
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert isinstance(result.exception, RequestError)
    assert says in str(result.exception)
