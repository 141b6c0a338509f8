"""The kernel that a verb boots, built on the way where there is none yet."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from plait.kernel import Kernel


def chosen_kernel(name: str | None) -> Kernel:
    """Return the built kernel called `name`; without a name the default one, which is built if need be."""
    from plait.kernel import find

    return find(name) if name else build_with_progress()


def build_with_progress(source: Path | None = None, *, debug: bool = False) -> Kernel:
    """Returns the kernel (see `plait.kernel.ensure`), showing on standard error how a build goes."""
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
        task = bar.add_task("looking for it", total=None, visible=False)

        def show(step: str, fraction: float | None) -> None:
            bar.update(task, description=step, total=1.0, completed=fraction or 0.0, visible=True)

        return ensure(source=source, progress=show, debug=debug)


class _BuildLines:
    """Progress where nobody watches: a line for each step, and one for each tenth of a long one."""

    def __init__(self) -> None:
        self._last = ("", -1)

    def __call__(self, step: str, fraction: float | None) -> None:
        """Writes a line when there is something new to say."""
        tenth = -1 if fraction is None else int(fraction * 10)
        if (step, tenth) != self._last:
            self._last = (step, tenth)
            share = f" {tenth * 10} %" if tenth >= 0 else ""
            sys.stderr.write(f"laboratory kernel: {step}{share}\n")
            sys.stderr.flush()
