"""The kernel that a verb boots; plait builds it first if there is none."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from plait.kernel import Kernel


def chosen_kernel(name: str | None) -> Kernel:
    """Return the built kernel called `name`; without a name the default kernel, after building it if there is none."""
    from plait.kernel import find

    return find(name) if name else build_with_progress()


def build_with_progress(source: Path | None = None, *, debug: bool = False) -> Kernel:
    """Return the kernel (see `plait.kernel.ensure`); show the progress of a build on standard error."""
    from plait.kernel import ensure

    if not sys.stderr.isatty():
        return ensure(source=source, progress=_BuildLines(), debug=debug)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("laboratory kernel: {task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("searching", total=None, visible=False)

        def show(step: str, fraction: float | None) -> None:
            bar.update(task, description=step, total=1.0, completed=fraction or 0.0, visible=True)

        return ensure(source=source, progress=show, debug=debug)


def show_step(step: str, _fraction: float | None) -> None:
    """Write a step of a download to standard error."""
    sys.stderr.write(f"plait: {step}\n")
    sys.stderr.flush()


class _BuildLines:
    """Progress without a terminal: a line for each step, and for each tenth of a long step."""

    def __init__(self) -> None:
        self._last = ("", -1)

    def __call__(self, step: str, fraction: float | None) -> None:
        """Write a line if the step or its tenth is new."""
        tenth = -1 if fraction is None else int(fraction * 10)
        if (step, tenth) != self._last:
            self._last = (step, tenth)
            share = f" {tenth * 10} %" if tenth >= 0 else ""
            sys.stderr.write(f"laboratory kernel: {step}{share}\n")
            sys.stderr.flush()
