"""`plait exec` charges each system call the measured time, or the time that the user requests."""

from __future__ import annotations

import pytest

from plait.cli.laboratory import exec as command
from plait.engine.virtual.boot_inputs import kernel_parameters
from plait.errors import RequestError


def charged(*options: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the kernel's parameter with which `plait exec` would boot its guest."""
    import typer

    plans = []

    def boot(_kernel: object, plan: object, *_: object, **__: object) -> int:
        plans.append(plan)
        return 0

    monkeypatch.setattr(command, "_boot", boot)
    app = typer.Typer()
    app.command()(command.command)
    typer.main.get_command(app)([*options, "--", "true"], standalone_mode=False)
    return next(word for word in kernel_parameters(plans[0]) if word.startswith("time-travel-syscall-ns="))


def test_a_system_call_takes_what_was_measured_or_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert charged(monkeypatch=monkeypatch) == "time-travel-syscall-ns=7000"
    assert charged("--system-call", "50us", monkeypatch=monkeypatch) == "time-travel-syscall-ns=50000"


def test_a_cost_that_is_no_time_is_refused_with_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match="--system-call 7: "):
        charged("--system-call", "7", monkeypatch=monkeypatch)
