"""The progress of a report, as a bar in a terminal."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from plait.cautions import Caution


def report_with_progress(
    folder: Path, *, width_mm: float = 175.0, column_mm: float = 85.0, style: str = "plain"
) -> tuple[Caution, ...]:
    """Rebuild a report (see `plait.report.build`); show its progress on standard error if that is a terminal."""
    from plait.report import build

    with _bar() as progress:
        return build(folder, progress=progress, width_mm=width_mm, column_mm=column_mm, style=style)


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
