"""Live progress of a study: a bar in a terminal or a notebook, a line for each trial elsewhere, or nothing."""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from plait.analysis.failures import in_one_line
from plait.errors import printable
from plait.study.meter import Meter, duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from plait.study.study import Observer, TrialKey, TrialOutcome


@contextmanager
def progress_bar(
    total: int, console: Console, workers: Callable[[], int] | None = None
) -> Iterator[Observer]:
    """Yield an observer of a study of `total` trials that shows a progress bar on `console`.

    The bar has the rate, the time left with its 95 % range, failures, and the number of `workers` if it is given.
    """
    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn("[dim]{task.fields[state]}"))
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Bar(progress, total, workers)


@contextmanager
def on_standard_error(
    total: int, *, bar: bool = True, as_json: bool = False, workers: Callable[[], int] | None = None
) -> Iterator[Observer]:
    """Yield an observer that shows a bar in a terminal, and one line per trial elsewhere or without `bar`.

    With `as_json`, each line is a JSON object (docs/how-to/clusters.md).
    """
    if as_json:
        yield _JsonLines(total, workers)
    elif not bar or not sys.stderr.isatty():
        yield _TrialLines(total, workers)
    else:
        with progress_bar(total, Console(stderr=True), workers) as observer:
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
    """An observer that shows a bar."""

    def __init__(self, progress: Progress, total: int, workers: Callable[[], int] | None) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total, state="")
        self._meter = Meter(total, time.monotonic())
        self._workers = workers
        self._lock = threading.Lock()

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """Show nothing: the trials that ended say enough."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        with self._lock:
            self._meter.count(outcome, time.monotonic())
            state = self._state()
        self._progress.update(self._task, advance=1, state=state)
        if outcome.error is not None:
            reason = printable(in_one_line(outcome.error))
            self._progress.console.print(
                f"{outcome.key.case} #{outcome.key.index} failed: {reason}", markup=False
            )

    def _state(self) -> str:
        """Return rate, time left, failures and workers: `4.1/s, 2 to 3 min left, 1 failed, 4 workers`."""
        meter = self._meter
        parts = (
            []
            if meter.rate is None
            else [f"{meter.rate:.2g}/s" if meter.rate < 10 else f"{meter.rate:.0f}/s"]
        )
        time_left = meter.time_left
        if time_left is not None:
            low, high = (
                duration(time_left.low_s),
                None if time_left.high_s is None else duration(time_left.high_s),
            )
            parts.append(f"{low} left" if low == high else f"{low} to {high or '?'} left")
        parts += [f"{meter.failed} failed"] if meter.failed else []
        if self._workers is not None:
            parts.append(_count(self._workers()))
        return ", ".join(parts)


class _JsonLines:
    """An observer that writes a JSON object to standard error when a trial ends."""

    def __init__(self, total: int, workers: Callable[[], int] | None) -> None:
        self._meter = Meter(total, time.monotonic())
        self._workers = workers
        self._lock = threading.Lock()

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """Write nothing."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        with self._lock, suppress(OSError):  # the pipe is closed; the study continues
            self._meter.count(outcome, time.monotonic())
            meter, time_left = self._meter, self._meter.time_left
            line = {
                "case": outcome.key.case,
                "trial": outcome.key.index,
                "error": outcome.error,
                "from_store": outcome.reused,
                "wall_s": round(outcome.wall_s, 4),
                "done": meter.finished,
                "total": meter.total,
                "failed": meter.failed,
                "rate_per_s": meter.rate,
                "left_s": None if time_left is None else time_left.expected_s,
                "left_range_s": None if time_left is None else [time_left.low_s, time_left.high_s],
                "workers": None if self._workers is None else self._workers(),
            }
            sys.stderr.write(json.dumps(line) + "\n")
            sys.stderr.flush()


class _TrialLines:
    """An observer that writes one line to standard error when a trial ends."""

    def __init__(self, total: int, workers: Callable[[], int] | None) -> None:
        self._total = total
        self._workers = workers
        self._ended = 0
        self._lock = threading.Lock()

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """Write nothing: one line at the end of each trial is enough."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        end = "failed" if outcome.error is not None else "from the store" if outcome.reused else "done"
        with self._lock:
            self._ended += 1
            key = outcome.key
            workers = "" if self._workers is None else f", {_count(self._workers())}"
            with suppress(OSError):  # the terminal or the pipe is closed; the study continues
                sys.stderr.write(
                    f"[{self._ended}/{self._total}] {key.case} #{key.index} {end} "
                    f"({outcome.wall_s:.2f} s{workers})\n"
                )


def _count(workers: int) -> str:
    """Return a number of workers as text."""
    return f"{workers} worker{'s' * (workers != 1)}"
