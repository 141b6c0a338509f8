"""What `plait --help` shows, and how `plait run` treats its options: fields, choices, and options that went away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import plait
from fake_engine import FakeEngine
from plait.cli import app
from plait.engine import factory
from plait.engine.inventory import Inventory
from plait.errors import RequestError, ScenarioError
from plait.scenario import parse
from plait.scenario.read import load as reading
from result_folders import fresh_cache

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plait.scenario import Scenario

NO_TRACE_EVENTS = Inventory(
    congestion_controls=("cubic",), schedulers=("default",), sysctls={}, shared_sysctls={}, trace_events=()
)


@pytest.fixture(autouse=True)
def _engine_without_trace_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh_cache(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(factory, "make_engine", lambda *_, **__: FakeEngine(inventory=NO_TRACE_EVENTS))


def refusal(*words: str) -> str:
    """Return the message with which `plait run two-paths` refuses these words."""
    result = CliRunner().invoke(app, ("run", "two-paths", *words), standalone_mode=False)
    assert isinstance(result.exception, ScenarioError)
    return str(result.exception)


def test_a_kernel_without_trace_events_is_a_mistake_of_the_override() -> None:
    override = "monitors.tracepoints=['mptcp:*']"
    assert refusal("--set", override).startswith(
        f"--set {override}: monitors.tracepoints: this kernel has no trace events; build one"
    )


@pytest.mark.parametrize(
    ("words", "engine"),
    [
        (("--hosts", "hosts.yaml"), "remote"),
        (("--configure",), "remote"),
        (("--ssh-config", "config"), "remote"),
        (("--modules", "modules"), "machine"),
        (("--allow-host-settings",), "host"),
    ],
)
def test_an_option_of_an_engine_that_no_case_has_is_refused(
    words: tuple[str, ...], engine: str, tmp_path: Path
) -> None:
    def run(*further: str) -> Exception | None:
        asked = ("run", "two-paths", "--set", "repeat=1", "--out", str(tmp_path / "out"), *words, *further)
        return CliRunner().invoke(app, asked, standalone_mode=False).exception

    refused = run()
    assert isinstance(refused, RequestError)
    assert str(refused).startswith(
        f"{words[0]}: it concerns the engine {engine}, and no case has this engine"
    )
    assert run("--engine", engine) is None
    assert run("--engine", "virtual", "--engine", engine) is None


def test_an_unknown_pause_is_a_mistake_of_the_override() -> None:
    assert refusal("--set", "pause=during").startswith("--set pause=during: pause")


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (("--pause", "before"), "write --set pause=before"),
        (("--trace=mptcp:*",), "write --set 'monitors.tracepoints=[\"mptcp:*\"]'"),
    ],
)
def test_an_option_that_went_away_names_the_field(words: tuple[str, ...], remedy: str) -> None:
    result = CliRunner().invoke(app, ("run", "two-paths", *words), standalone_mode=False)
    assert isinstance(result.exception, RequestError)
    assert remedy in str(result.exception)


def test_options_of_calibration_are_read_and_change_nothing(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ("run", "no-such-scenario", "--no-calibration"), standalone_mode=False)
    assert "no-such-scenario" in str(result.exception)
    with pytest.raises(RequestError, match="no-such-scenario"):
        plait.run("no-such-scenario", calibrate=False, out=tmp_path / "out")


def test_a_run_reads_its_scenario_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parsed: list[str] = []

    def noted(text: str, source: str, overrides: Sequence[str] = ()) -> Scenario:
        parsed.append(source)
        return parse(text, source, overrides)

    monkeypatch.setattr(reading, "parse", noted)
    monkeypatch.chdir(tmp_path)
    words = ("--engine", "virtual", "--kernel", "a", "--kernel", "b", "--repeat", "1", "--set", "sample=0s")
    result = CliRunner().invoke(app, ("run", "two-paths", *words), standalone_mode=False)
    assert isinstance(result.exception, ScenarioError)
    assert parsed == ["two-paths.yaml"]


def test_the_help_groups_the_verbs_and_shows_no_type_of_switches() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    for group in ("Run", "Look", "Real hosts", "Kernels", "Manage"):
        assert f"─ {group} ─" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    for verb in ((), ("run",), ("kernel", "build"), ("store",)):
        assert "<bool>" not in CliRunner().invoke(app, [*verb, "--help"]).output
