"""Live progress of a study: a bar in a terminal or a notebook, a line for each trial elsewhere, or nothing."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from plait.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from plait.study.study import Observer, TrialKey, TrialOutcome


@contextmanager
def progress_bar(total: int, console: Console) -> Iterator[Observer]:
    """Yield an observer of a study of `total` trials that shows a progress bar on `console`."""
    columns = (
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("trials"),
        TextColumn("[dim]{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress, total)


@contextmanager
def on_standard_error(total: int, *, bar: bool = True) -> Iterator[Observer]:
    """Yield an observer that shows a bar in a terminal, and one line per trial elsewhere or without `bar`."""
    if not bar or not sys.stderr.isatty():
        yield _TrialLines(total)
        return
    with progress_bar(total, Console(stderr=True)) as observer:
        yield observer


@contextmanager
def in_notebook(total: int, *, shown: bool) -> Iterator[Observer]:
    """Yield an observer that shows a bar in a notebook or a terminal, and nothing elsewhere."""
    console = Console()
    if not shown or not (console.is_jupyter or console.is_terminal):
        yield SilentObserver()
        return
    with progress_bar(total, console) as observer:
        yield observer


def silent(_: int) -> AbstractContextManager[Observer]:
    """Return an observer that shows nothing."""
    return nullcontext(SilentObserver())


class SilentObserver:
    """An observer that shows nothing."""

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """Show nothing."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        """Show nothing."""


class _Bar:
    """An observer that shows a bar, and the virtual and the wall time that have passed."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total, speed="")
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._virtual_s: dict[TrialKey, float] = {}

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        self._show(key, virtual_us / 1e6, steps=0)

    def trial_ended(self, outcome: TrialOutcome) -> None:
        self._show(outcome.key, outcome.virtual_s, steps=1)
        if outcome.error is not None:
            reason = printable(outcome.error.splitlines()[0])
            self._progress.console.print(
                f"{outcome.key.case} #{outcome.key.index} failed: {reason}", markup=False
            )

    def _show(self, key: TrialKey, virtual_s: float | None, *, steps: int) -> None:
        with self._lock:
            if virtual_s is not None:
                self._virtual_s[key] = virtual_s
            total_s = sum(self._virtual_s.values())
        wall_s = time.monotonic() - self._started
        speed = f"{total_s:.0f} s of virtual time in {wall_s:.0f} s" if total_s else ""
        self._progress.update(self._task, advance=steps, speed=speed)


class _TrialLines:
    """An observer that writes one line to standard error when a trial ends."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended = 0
        self._lock = threading.Lock()

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """Write nothing: one line at the end of each trial is enough."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        end = "failed" if outcome.error is not None else "from the store" if outcome.reused else "done"
        with self._lock:
            self._ended += 1
            key = outcome.key
            with suppress(OSError):  # the terminal or the pipe is closed; the study continues
                sys.stderr.write(
                    f"[{self._ended}/{self._total}] {key.case} #{key.index} {end} ({outcome.wall_s:.2f} s)\n"
                )
