"""The kernel that a verb boots, and its engines; plait builds the kernel first if there is none."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from plait.cli.shared.ending import notify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plait.engine.engine import Engine
    from plait.kernel import Kernel, Progress


def chosen_kernel(name: str | None) -> Kernel:
    """Return the built kernel called `name`; without a name the default kernel, after building it if there is none."""
    from plait.kernel import find

    return find(name) if name else build_with_progress()


def engines_on(kernel: str | None, **options: Any) -> Callable[[str], Engine]:
    """Return what makes an engine by its name, on this kernel and with these options of `EngineRequest`.

    It shows warnings, downloads and builds on standard error.
    """
    from plait.engine.factory import make_engine
    from plait.engine.request import EngineRequest

    request = EngineRequest(kernel, warn=notify, progress=show_step, build=build_with_progress, **options)
    return partial(make_engine, request=request)


def build_with_progress(source: Path | None = None, *, debug: bool = False) -> Kernel:
    """Return the kernel (see `plait.kernel.ensure`); show the progress of a build on standard error."""
    from plait.kernel import ensure

    return show_build(lambda progress: ensure(source=source, progress=progress, debug=debug))


def show_build(build: Callable[[Progress], Kernel]) -> Kernel:
    """Return the kernel that `build` makes; show its progress on standard error."""
    if not sys.stderr.isatty():
        return build(_BuildLines())
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("laboratory kernel: {task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("searching", total=None, visible=False)

        def show(step: str, fraction: float | None) -> None:
            bar.update(task, description=step, total=1.0, completed=fraction or 0.0, visible=True)

        return build(show)


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
        kind = step.partition(",")[0]
        if (kind, tenth) != self._last:
            self._last = (kind, tenth)
            sys.stderr.write(f"laboratory kernel: {step}\n")
            sys.stderr.flush()
