"""What a guest reports may be anything: its programs are root and can write to its folder. plait says what is wrong."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from plait.cli import import_
from plait.engine.host_view import HostView
from plait.engine.interactive import END, STDOUT, OutputFrame, ProgramEnd
from plait.engine.virtual.foreground import SessionLimits, _Follower
from plait.engine.virtual.outcome import MAX_CONSOLE_BYTES, folder_is_full, judge
from plait.engine.virtual.watch import virtual_us
from plait.errors import RequestError, TrialError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DIGITS = "9" * 4000


@pytest.mark.parametrize(
    "content",
    [
        b"", b"null", b"[1]", b"{}", b'{"code": "0"}', b'{"code": 256}', b'{"code": 1e999}', b"[" * 100_000,
        b'{"code": null, "signal": 65}', b'{"code": 0, "full": "/tmp"}', b'{"code": 0, "missing_devices": [1]}',
        f'{{"code": {DIGITS}}}'.encode(), f'{{"code": 0, "refused_processes": {DIGITS}}}'.encode(),
    ],
)  # fmt: skip
def test_an_end_that_the_agent_cannot_have_written_is_refused(content: bytes) -> None:
    with pytest.raises(TrialError, match="the agent did not write this content"):
        ProgramEnd.read(content)


def session(tmp_path: Path, frames: Callable[[], Iterator[OutputFrame]]) -> SimpleNamespace:
    """Return what stands in for a session whose guest emits these frames at each look."""
    guest = SimpleNamespace(pid=1, process=SimpleNamespace(poll=lambda: None))
    return SimpleNamespace(
        frames=frames, guest=guest, view=HostView(), console=list, check_disk=lambda: None, wait=lambda *_: [],
        request=SimpleNamespace(time_limit_us=None, start=None), folder=tmp_path,
    )  # fmt: skip


def test_a_program_that_a_signal_in_real_time_ended_is_reported(tmp_path: Path) -> None:
    reports: list[str] = []
    limits = SessionLimits(60, 512, 100, real_time=False)
    follower = _Follower(session(tmp_path, lambda: iter(())), limits, reports.append, 0, typed=False)
    assert follower._exit_code(ProgramEnd(code=None, signal=40)) == 168
    assert reports == ["the program was terminated by signal 40"]


@pytest.mark.parametrize("text", [DIGITS, "9" * 19, "-1", "x", "\N{SUPERSCRIPT TWO}"])
def test_progress_that_is_no_time_ends_the_trial_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "guest").mkdir()
    (tmp_path / "guest/progress").write_text(text)
    with pytest.raises(TrialError, match="the agent did not write this content"):
        virtual_us(tmp_path)


@pytest.mark.parametrize("field", ["virtual_us", "boot_us"])
def test_a_status_with_an_impossible_time_fails_the_trial(tmp_path: Path, field: str) -> None:
    status = {"ok": True, "phase": "done", "error": None, "virtual_us": 1, "boot_us": 1}
    (tmp_path / "guest").mkdir()
    (tmp_path / "guest/status.json").write_text(json.dumps(status | {field: 0}).replace(": 0", f": {DIGITS}"))
    with pytest.raises(TrialError, match="the agent did not write this content"):
        judge(tmp_path, 0, None)


def test_a_console_without_end_ends_the_trial(tmp_path: Path) -> None:
    (tmp_path / "guest").mkdir()
    with (tmp_path / "console.log").open("wb") as console:
        assert folder_is_full(tmp_path) is None
        console.truncate(MAX_CONSOLE_BYTES + 1)
        assert "more than 64 MiB to its console" in str(folder_is_full(tmp_path))


def test_a_console_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    """To follow it could mount what an automounter serves, wait for a server, or tell the guest how long a file is."""
    (tmp_path / "guest").mkdir()
    with (tmp_path / "elsewhere").open("wb") as elsewhere:
        elsewhere.truncate(MAX_CONSOLE_BYTES + 1)
    (tmp_path / "guest/console").symlink_to(tmp_path / "elsewhere")
    assert folder_is_full(tmp_path) is None


def test_a_topology_that_prints_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_, "_OUTPUT_BYTES", 1 << 20)

    def frames() -> Iterator[OutputFrame]:
        while True:
            yield OutputFrame(1, STDOUT, bytes(1 << 16))

    with pytest.raises(RequestError, match="printed more than 1 MiB"):
        import_._followed(tmp_path / "topo.py", session(tmp_path, frames))


def test_a_topology_that_is_never_built_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = iter(range(1000))
    monkeypatch.setattr(import_.time, "monotonic", lambda: float(next(passed)))
    with pytest.raises(RequestError, match="did not end within 300 s"):
        import_._followed(tmp_path / "topo.py", session(tmp_path, lambda: iter(())))


def test_a_topology_returns_its_end_and_its_output(tmp_path: Path) -> None:
    frames = [OutputFrame(1, STDOUT, b"a"), OutputFrame(1, 9, b"?"), OutputFrame(1, END, b'{"code": 3}')]
    end, printed, errors = import_._followed(tmp_path / "topo.py", session(tmp_path, lambda: iter(frames)))
    assert (end.code, printed, errors) == (3, b"a", b"")
