"""Live progress of a study on standard error: a bar in a terminal, a line a trial elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from plait.errors import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.study.runner import Observer, TrialKey, TrialOutcome


@contextmanager
def observer(total: int, *, bar: bool = True) -> Iterator[Observer]:
    """Yields what a Runner tells of a study of `total` trials; without `bar` it leaves the terminal to others."""
    if not bar or not sys.stderr.isatty():
        yield _Lines(total)
        return
    columns = (
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("trials"),
        TextColumn("[dim]{task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield _Bar(progress, total)


class _Bar:
    """A bar, and how much virtual time passed in how much wall time."""

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
            first = printable(outcome.error.splitlines()[0])
            self._progress.console.print(
                f"{outcome.key.case} #{outcome.key.index} failed: {first}", markup=False
            )

    def _show(self, key: TrialKey, virtual_s: float | None, *, steps: int) -> None:
        with self._lock:
            if virtual_s is not None:
                self._virtual_s[key] = virtual_s
            total_s = sum(self._virtual_s.values())
        wall_s = time.monotonic() - self._started
        speed = f"{total_s:.0f} s of virtual time in {wall_s:.0f} s" if total_s else ""
        self._progress.update(self._task, advance=steps, speed=speed)


class _Lines:
    """A line for each trial that ended."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._ended = 0
        self._lock = threading.Lock()

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """Says nothing: a line at the end of each trial is enough where nobody watches."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        how = "failed" if outcome.error is not None else "from the store" if outcome.reused else "done"
        with self._lock:
            self._ended += 1
            key = outcome.key
            with suppress(
                OSError
            ):  # a terminal that was closed, or a reader who went away: the study goes on
                sys.stderr.write(
                    f"[{self._ended}/{self._total}] {key.case} #{key.index} {how} ({outcome.wall_s:.2f} s)\n"
                )
