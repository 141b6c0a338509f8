"""Live progress of a study: a bar in a terminal or a notebook, a line for each trial elsewhere, or nothing."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import count

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from plait.analysis.failures import in_one_line
from plait.errors import printable
from plait.study.meter import Meter, duration
from plait.study.study import Observer, TrialOutcome


@contextmanager
def progress_bar(
    total: int, console: Console, workers: Callable[[], int] | None = None
) -> Iterator[Observer]:
    """Yield an observer of a study of `total` trials that shows a progress bar on `console`.

    The bar has the rate, the time left with its 95 % range, failures, and the number of `workers` if it is given.
    """
    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn("[dim]{task.fields[state]}"))
    with Progress(*columns, console=console, transient=True) as progress:
        yield _bar(progress, total, workers)


@contextmanager
def on_standard_error(
    total: int, *, bar: bool = True, as_json: bool = False, workers: Callable[[], int] | None = None
) -> Iterator[Observer]:
    """Yield an observer that shows a bar in a terminal, and one line per trial elsewhere or without `bar`.

    With `as_json`, each line is a JSON object (docs/how-to/clusters.md).
    """
    if as_json:
        yield _json_lines(total, workers)
    elif not bar or not sys.stderr.isatty():
        yield _trial_lines(total, workers)
    else:
        with progress_bar(total, Console(stderr=True), workers) as observer:
            yield observer


@contextmanager
def in_notebook(total: int, *, shown: bool) -> Iterator[Observer]:
    """Yield an observer that shows a bar in a notebook or a terminal, and nothing elsewhere."""
    console = Console()
    if not shown or not (console.is_jupyter or console.is_terminal):
        yield _show_nothing
        return
    with progress_bar(total, console) as observer:
        yield observer


def silent(_: int) -> AbstractContextManager[Observer]:
    """Return an observer that shows nothing."""
    return nullcontext(_show_nothing)


def _show_nothing(_: TrialOutcome) -> None:
    """Ignore the end of a trial."""


def _bar(progress: Progress, total: int, workers: Callable[[], int] | None) -> Observer:
    """Return an observer that advances a bar."""
    task = progress.add_task("", total=total, state="")
    meter = Meter(total, time.monotonic())

    def show(outcome: TrialOutcome) -> None:
        meter.count(outcome, time.monotonic())
        progress.update(task, advance=1, state=_state(meter, workers))
        if outcome.error is not None:
            reason = printable(in_one_line(outcome.error))
            progress.console.print(f"{outcome.key.case} #{outcome.key.index} failed: {reason}", markup=False)

    return show


def _state(meter: Meter, workers: Callable[[], int] | None) -> str:
    """Return rate, time left, failures and workers: `4.1/s, 2 to 3 min left, 1 failed, 4 workers`."""
    parts = []
    if meter.rate is not None:
        parts.append(f"{meter.rate:.2g}/s" if meter.rate < 10 else f"{meter.rate:.0f}/s")
    time_left = meter.time_left
    if time_left is not None:
        low = duration(time_left.low_s)
        high = None if time_left.high_s is None else duration(time_left.high_s)
        parts.append(f"{low} left" if low == high else f"{low} to {high or '?'} left")
    parts += [f"{meter.failed} failed"] if meter.failed else []
    return ", ".join(parts + ([] if workers is None else [_count(workers())]))


def _json_lines(total: int, workers: Callable[[], int] | None) -> Observer:
    """Return an observer that writes a JSON object to standard error when a trial ends."""
    meter = Meter(total, time.monotonic())

    def show(outcome: TrialOutcome) -> None:
        with suppress(OSError):  # the pipe is closed; the study continues
            meter.count(outcome, time.monotonic())
            time_left = meter.time_left
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
                "workers": None if workers is None else workers(),
            }
            sys.stderr.write(json.dumps(line) + "\n")
            sys.stderr.flush()

    return show


def _trial_lines(total: int, workers: Callable[[], int] | None) -> Observer:
    """Return an observer that writes one line to standard error when a trial ends."""
    numbers = count(1)

    def show(outcome: TrialOutcome) -> None:
        end = "failed" if outcome.error is not None else "from the store" if outcome.reused else "done"
        of_workers = "" if workers is None else f", {_count(workers())}"
        with suppress(OSError):  # the terminal or the pipe is closed; the study continues
            sys.stderr.write(
                f"[{next(numbers)}/{total}] {outcome.key.case} #{outcome.key.index} {end} "
                f"({outcome.wall_s:.2f} s{of_workers})\n"
            )

    return show


def _count(workers: int) -> str:
    """Return a number of workers as text."""
    return f"{workers} worker{'s' * (workers != 1)}"
