"""An observation that a signal ends keeps what it has seen."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from plait.cli import observe
from plait.cli.shared.ending import on_signals
from plait.errors import Ended

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from threading import Event

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """Let signals end plait as the command line does."""
    before = {number: signal.getsignal(number) for number in ENDING}
    on_signals()
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def observe_until(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> list[bool]:
    """Make an observation get the signals `numbers`; return whether it was to end after each."""
    ended: list[bool] = []

    def until(*_: object, over: Event, **__: object) -> None:
        for number in numbers:
            os.kill(os.getpid(), number)
            ended.append(over.is_set())

    monkeypatch.setattr("plait.observe.study.observe", until)
    return ended


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_completes_the_data_before_it_ends_plait(
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A terminal that closes, or a time limit, costs only the rest of the observation."""
    ended = observe_until(monkeypatch, number)
    with pytest.raises(Ended) as caught:
        observe.command(out=tmp_path / "seen")
    assert ended == [True]
    assert caught.value.signal == number
    assert f"plait report {tmp_path / 'seen'}" in capsys.readouterr().err


def test_a_second_signal_ends_plait_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ended = observe_until(monkeypatch, signal.SIGTERM, signal.SIGHUP, signal.SIGHUP)
    with pytest.raises(Ended) as caught:
        observe.command(out=tmp_path / "seen")
    assert ended == [True]
    assert caught.value.signal == signal.SIGHUP


def test_a_signal_that_the_caller_ignores_stays_ignored(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`nohup plait observe` outlasts its terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ended = observe_until(monkeypatch, signal.SIGHUP, signal.SIGTERM)
    with pytest.raises(Ended) as caught:
        observe.command(out=tmp_path / "seen")
    assert ended == [False, True]
    assert caught.value.signal == signal.SIGTERM
