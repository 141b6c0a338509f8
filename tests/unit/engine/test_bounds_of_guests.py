"""Guests of programs have bounds of processor time: a machine with more work than processors is no hang.

Sessions on a clock of their own stand in for guests here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Self

import pytest

from plait.engine.host_view import HostView
from plait.engine.interactive import END, STDOUT, OutputFrame
from plait.engine.virtual import foreground
from plait.errors import TrialError
from plait.kernel import Kernel
from plait.testing.hunt import run as hunt_run
from plait.testing.hunt.case import HuntCase, HuntConnection, HuntLink
from plait.testing.selftest import run as selftest_run
from plait.testing.selftest.suites import Suites, SuiteShard

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from plait.testing.hunt.run import CaseResult
    from plait.testing.selftest.tap import Subtest

CASE = HuntCase(links=(HuntLink(rate_mbit=10, delay_ms=5),), connections=(HuntConnection(up_bytes=5),))
REPORT = {
    "violations": [], "left": {"client": 0, "server": 0}, "counters": {"client": {}, "server": {}},
    "log": "", "received": 5, "virtual_s": 1,
}  # fmt: skip
HOUR_S = 3600


@dataclass
class Pace:
    """What happens each time plait looks at the guest: a second of wall time passes, and a part of it runs."""

    runs_s: float
    """The processor time that the guest uses of each second."""
    waits_s: float = 0.0
    """The time of each second in which it waits for a processor."""
    ends_after_s: float | None = None
    """When its program ends, in wall time; None: never."""
    output: bytes = b""
    """What the program prints at its end."""
    each_second: bytes = b""
    """What it prints each second before."""
    now_s: float = field(default=0.0, init=False)

    def monotonic(self) -> float:
        """Stand in for time.monotonic()."""
        return self.now_s


class PacedSession:
    """Stands in for a session."""

    def __init__(self, pace: Pace, folder: Path) -> None:
        self.pace = pace
        self.folder = folder
        self.output_bytes = 0
        self.guest = SimpleNamespace(pid=1, process=SimpleNamespace(poll=lambda: None))
        self.request = SimpleNamespace(time_limit_us=None, start=None)
        self.view = HostView()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait(self, others: Sequence[int] = (), timeout_s: float = 0.25) -> list[int]:  # noqa: ARG002
        """Let a second pass."""
        self.pace.now_s += 1
        return []

    def processor_s(self) -> float:
        """Return the processor time that the guest has used."""
        return self.pace.now_s * self.pace.runs_s

    def waited_s(self, _pid: int) -> float:
        """Return how long the guest has waited for a processor."""
        return self.pace.now_s * self.pace.waits_s

    def frames(self) -> Iterator[OutputFrame]:
        """Yield what the program prints, and its end."""
        end_s = self.pace.ends_after_s
        if self.pace.each_second:
            yield OutputFrame(1, STDOUT, self.pace.each_second)
        if end_s is not None and self.pace.now_s >= end_s:
            yield OutputFrame(1, STDOUT, self.pace.output)
            end = {"code": 0, "signal": None, "error": None, "errno": None, "timed_out": False}
            more = {"refused_processes": 0, "full": [], "missing_devices": []}
            yield OutputFrame(1, END, json.dumps({**end, **more}).encode())

    def has_unread_input(self) -> bool:
        return False

    def has_ended(self) -> bool:
        return False

    def check_disk(self) -> None:
        pass

    def virtual_s(self) -> float:
        return 0.0

    def console(self) -> list[str]:
        return ["the kernel's last line"]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    return Kernel("a" * 64, "6.12.1", tmp_path / "linux", "b" * 64, 1000)


def hunted(kernel: Kernel, pace: Pace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CaseResult:
    """Return what a hunt makes of a guest that runs at this pace."""
    monkeypatch.setattr(hunt_run, "Session", lambda *_: PacedSession(pace, tmp_path))
    monkeypatch.setattr(hunt_run, "time", pace)
    return hunt_run.play(CASE, kernel, [])


def ran_suite(
    kernel: Kernel, pace: Pace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Subtest, str]:
    """Return what a selftest makes of a guest that runs at this pace: its only subtest, and its output."""
    monkeypatch.setattr(selftest_run, "Session", lambda *_, **__: PacedSession(pace, tmp_path))
    monkeypatch.setattr(selftest_run, "time", pace)
    shards = [SuiteShard("diag")]
    (result,) = selftest_run.run(Suites(tmp_path), shards, [1], kernel, jobs=1, on_result=lambda _: None)
    (subtest,) = result.subtests
    return subtest, result.output


def followed(pace: Pace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall_s: float = 1e9) -> int:
    """Return the exit code of a program in the foreground of a guest that runs at this pace."""
    session = PacedSession(pace, tmp_path)
    monkeypatch.setattr(foreground, "time", pace)
    monkeypatch.setattr(foreground, "waited_s", session.waited_s)
    monkeypatch.setattr(foreground, "virtual_us", lambda _: 2_000_000)
    limits = foreground.SessionLimits(wall_s, 512, 100, real_time=False)
    return foreground.follow(session, limits, lambda _: None, typed=False, terminal=False)


def test_a_hunted_guest_on_a_busy_machine_has_the_time_it_needs(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(runs_s=0.1, ends_after_s=1000, output=json.dumps(REPORT).encode() + b"\n")
    result = hunted(kernel, pace, tmp_path, monkeypatch)
    assert (result.violations, result.received_bytes) == ((), 5)


@pytest.mark.parametrize(
    ("runs_s", "limit"), [(1.0, "120 s of processor time"), (0.0, "3600 s of wall time")]
)
def test_a_hunted_guest_that_spins_or_sleeps_for_ever_is_a_fault(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_s: float, limit: str
) -> None:
    pace = Pace(runs_s)
    (violation,) = hunted(kernel, pace, tmp_path, monkeypatch).violations
    assert (violation.kind, violation.text) == (
        "guest",
        f"the guest did not end its case within {limit}: its kernel hangs",
    )
    assert pace.now_s == int(limit.split(maxsplit=1)[0])


def test_a_hunted_guest_gets_no_time_for_more_lines_than_cases(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reports its only case in the first second, and goes on."""
    pace = Pace(1.0, each_second=json.dumps(REPORT).encode() + b"\n")
    assert hunted(kernel, pace, tmp_path, monkeypatch).violations == ()
    assert pace.now_s == 120


def test_a_suite_on_a_busy_machine_has_the_time_it_needs(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pace = Pace(runs_s=0.1, ends_after_s=9 * HOUR_S, output=b"TAP version 13\nok 1 - diag: listeners\n")
    subtest, _ = ran_suite(kernel, pace, tmp_path, monkeypatch)
    assert (subtest.name, subtest.verdict) == ("listeners", "pass")


@pytest.mark.parametrize(("runs_s", "ended_s"), [(1.0, HOUR_S), (0.0, 12 * HOUR_S)])
def test_a_suite_that_spins_or_sleeps_for_ever_fails_with_the_bounds(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_s: float, ended_s: int
) -> None:
    pace = Pace(runs_s)
    subtest, output = ran_suite(kernel, pace, tmp_path, monkeypatch)
    assert (subtest.name, subtest.verdict, pace.now_s) == ("diag as a whole", "fail", ended_s)
    assert "the suite did not end within 3600 s of processor time and 43200 s of wall time" in output


def test_a_program_whose_guest_waits_for_a_processor_does_not_stand_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert followed(Pace(0.05, waits_s=0.95, ends_after_s=HOUR_S / 2), tmp_path, monkeypatch) == 0


@pytest.mark.parametrize(("waits_s", "ended_s"), [(0.0, 122), (0.5, 242)])
def test_a_program_that_stops_the_clock_is_ended_after_the_time_in_which_it_could_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits_s: float, ended_s: int
) -> None:
    pace = Pace(1 - waits_s, waits_s)
    with pytest.raises(TrialError, match=r"did not advance from 2 s for 120 s in which the guest could run"):
        followed(pace, tmp_path, monkeypatch)
    assert pace.now_s == pytest.approx(ended_s, abs=1)


def test_a_program_is_ended_at_its_limit_of_wall_time_however_long_it_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TrialError, match="the guest exceeded 600 s of wall time, with its clock at 2 s"):
        followed(Pace(0.0, waits_s=1.0), tmp_path, monkeypatch, wall_s=600)
