"""The progress of a report, as a bar in a terminal."""

from __future__ import annotations

import importlib.util
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from plait.analysis.model import Summary
    from plait.cautions import Caution

_LARGE_BYTES = 1 << 20
"""A page of a smaller summary.json takes a fraction of a second."""
_THREADS = "POLARS_MAX_THREADS"


def report_with_progress(
    folder: Path, *, width_mm: float = 175.0, column_mm: float = 85.0, style: str = "plain"
) -> tuple[Caution, ...]:
    """Rebuild a report (see `plait.report.build`); show its progress on standard error if that is a terminal."""
    limit_polars()
    from plait.report import build

    with _bar() as progress:
        return build(
            folder,
            progress=progress,
            width_mm=width_mm,
            column_mm=column_mm,
            style=style,
            on_summary=_prepare_view,
        )


def _prepare_view(summary: Summary, content: bytes) -> None:
    """Let the first visit of a large study in a browser find its page in the cache."""
    if len(content) >= _LARGE_BYTES and importlib.util.find_spec("plait.view") is not None:
        from plait.view.study_data import keep_views

        keep_views(summary, content)


def limit_polars() -> None:
    """Let polars have one thread, if this process has not used it yet; programs that it starts are not concerned.

    Tables of a trial are small, and each core has a process: further threads would only wait, which costs time.
    """
    if _THREADS in os.environ:
        return
    os.environ[_THREADS] = "1"
    import polars as pl

    pl.thread_pool_size()  # it reads the variable now
    del os.environ[_THREADS]


@contextmanager
def _bar() -> Iterator[Callable[[str, int, int], None]]:
    if not sys.stderr.isatty():
        yield lambda _, __, ___: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("report: {task.description}"), BarColumn(bar_width=None), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading trials", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)
