"""`plait kernel`: the laboratory kernels on this machine, and the algorithms that were added to them."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from plait.kernel import Kernel

app = typer.Typer(
    help="Build and list laboratory kernels; add schedulers and congestion controls.", no_args_is_help=True
)


@app.command("build")
def build(
    source: Annotated[
        Path | None, typer.Option(help="A Linux source tree or archive; without it, the distribution's 6.12.")
    ] = None,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug", help="One that watches itself: KASAN, lockdep, leaks. Slow, never the default."
        ),
    ] = False,
) -> None:
    """Build the laboratory kernel into the user's cache, unless it is there already."""
    from plait.report.render.render import warm

    kernel = build_with_progress(source, debug=debug)
    warm()  # the other thing that is made once for a machine: it would take 2 s of the first study
    typer.echo(f"{kernel.name}  {kernel.binary}")


@app.command("add")
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.c", help="A scheduler or congestion control in one C file.")
    ],
    kernel: Annotated[str | None, typer.Option(help="The kernel to try it in (`plait kernel list`).")] = None,
) -> None:
    """Add a scheduler or a congestion control from one C file; scenarios then choose it by its name."""
    from plait.api.additions import add
    from plait.cli.run import agent_path
    from plait.kernel import find

    chosen = find(kernel) if kernel else build_with_progress(None)
    addition = add(file, chosen, agent_path())
    if addition.warnings:
        typer.echo(addition.warnings, err=True)
    for old in addition.replaced:
        typer.echo(f"{', '.join(old.names)} of before is replaced")
    for name in addition.record.names:
        kind = "scheduler" if name in addition.record.schedulers else "congestion_control"
        typer.echo(f"{name}  added; choose it with `{kind}: {name}`\n  {addition.tried[name]}")


@app.command("remove")
def remove(name: Annotated[str, typer.Argument(help="As `plait kernel list` shows it.")]) -> None:
    """Remove what `plait kernel add` has added."""
    from plait.kernel import additions

    record = additions.remove(name)
    typer.echo(f"{', '.join(record.names)} removed; results that were made with it are kept")


@app.command("list")
def list_built() -> None:
    """List the kernels that have been built, newest version first, and what was added to them."""
    from plait import kernel as kernels
    from plait.kernel import additions

    for kernel, record in kernels.list_built():
        default = "default" if record.chosen_by_default else "       "
        typer.echo(f"{kernel.name}  {default}  HZ={kernel.hz}  from {record.source.name}, {record.built_at}")
    for addition in additions.added():
        for name in addition.names:
            kind = "scheduler" if name in addition.schedulers else "congestion control"
            typer.echo(f"{name}  {kind}, added from {addition.file}, {addition.added_at}")


def build_with_progress(source: Path | None, *, debug: bool = False) -> Kernel:
    """Returns the kernel (see `plait.kernel.ensure`), showing on standard error how a build goes."""
    from plait.kernel import ensure

    if not sys.stderr.isatty():
        return ensure(source=source, progress=_Lines(), debug=debug)
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

        def tell(step: str, fraction: float | None) -> None:
            bar.update(task, description=step, total=1.0, completed=fraction or 0.0, visible=True)

        return ensure(source=source, progress=tell, debug=debug)


class _Lines:
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
