"""`plait kernel`: the laboratory kernels on this machine, and the algorithms that were added to them."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from plait.binaries import AGENT
from plait.cli.shared.kernel import build_with_progress, chosen_kernel

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

    addition = add(file, chosen_kernel(kernel), AGENT)
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
