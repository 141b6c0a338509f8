"""Messages about a field that a flag of `plait run` set begin with the flag that the user wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from fake_engine import FakeEngine
from plait.cli import app
from plait.engine import factory
from plait.engine.inventory import Inventory
from plait.errors import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path

NO_TRACE_EVENTS = Inventory(
    congestion_controls=("cubic",), schedulers=("default",), sysctls={}, shared_sysctls={}, trace_events=()
)


@pytest.fixture(autouse=True)
def _engine_without_trace_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(factory, "make_engine", lambda *_, **__: FakeEngine(inventory=NO_TRACE_EVENTS))


def refusal(*words: str) -> str:
    """Return the message with which `plait run two-paths` refuses these words."""
    result = CliRunner().invoke(app, ("run", "two-paths", *words), standalone_mode=False)
    assert isinstance(result.exception, ScenarioError)
    return str(result.exception)


def test_a_kernel_without_trace_events_is_a_mistake_of_the_flag() -> None:
    assert refusal("--trace", "mptcp:*").startswith(
        "--trace 'mptcp:*': this kernel has no trace events; build one"
    )


def test_what_names_no_event_is_a_mistake_of_the_flag() -> None:
    message = refusal("--trace", "mptcp:*,nothing")
    assert message.startswith("--trace 'mptcp:*,nothing': ")
    assert "'nothing'" in message


def test_an_unknown_pause_is_a_mistake_of_the_flag() -> None:
    assert refusal("--pause", "during").startswith("--pause during: ")


def test_a_mistake_of_another_override_names_that_override() -> None:
    message = refusal("--trace", "mptcp:*", "--set", "traffic.0.bulk.duration=never")
    assert message.startswith("--set traffic.0.bulk.duration=never: ")
