"""`plait kernel`: builds and lists the laboratory kernels of this machine, and adds algorithms to them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from plait.binaries import AGENT
from plait.cli.shared.ending import notify
from plait.cli.shared.kernel import build_with_progress, chosen_kernel, show_build
from plait.cli.shared.options import ConfigOption, KernelOption, PatchOption, TreeOption, WithoutOption
from plait.cli.shared.verbs import Verbs
from plait.errors import RequestError

app = typer.Typer(
    cls=Verbs, help="Build laboratory kernels and add algorithms to them.", no_args_is_help=True
)


@app.command("build")
def build(
    *,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Linux source tree or archive", show_default="the distribution's 6.12"
        ),
    ] = None,
    tree: TreeOption = None,
    ref: Annotated[
        str | None, typer.Option(metavar="REV", help="Commit of --tree", show_default="the working files")
    ] = None,
    patch: PatchOption = None,
    config: ConfigOption = None,
    without: WithoutOption = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the kernel of --tree")] = None,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Build a debug kernel (KASAN, lockdep, leak detection); it is slow"),
    ] = False,
    tracing: Annotated[
        bool,
        typer.Option("--tracing", help="Build --tree with trace events (`--trace`) and symbols (`--gdb`)"),
    ] = False,
    engine: Annotated[
        Literal["virtual", "machine"],
        typer.Option(
            "--engine", help="The engine that boots --tree; for machine, plait changes nothing in it"
        ),
    ] = "virtual",
) -> None:
    """Build the laboratory kernel, or one of your own tree, unless the cache has it."""
    from plait.kernel.from_tree import TreeRequest, build_tree
    from plait.kernel.recipe import LABORATORY
    from plait.report.render.render import warm

    if tree is None:
        if ref or patch or config or without or name or tracing or engine != "virtual":
            raise RequestError(
                "--ref, --patch, --config, --without, --name, --tracing and --engine machine need --tree; name the git "
                "tree"
            )
        kernel = build_with_progress(source, debug=debug)
    elif source is not None:
        raise RequestError("--source and --tree: give one of them")
    elif engine == "machine" and tracing:
        raise RequestError("--tracing: a kernel for the engine machine has trace events anyway; leave it out")
    else:
        patches = tuple(path.resolve() for path in patch or ())
        fragments = (*([LABORATORY / "config" / "tracing.config"] if tracing else []), *(config or ()))
        request = TreeRequest(tree, ref, patches, fragments, tuple(without or ()), name, debug, engine)
        kernel = show_build(lambda progress: build_tree(request, progress))
    warm()  # also once for a machine: it would delay the first study by 2 s
    typer.echo(f"{kernel.name}  {kernel.binary}")


@app.command("add")
def add(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.c", help="C source of a scheduler or congestion control")
    ],
    kernel: KernelOption = None,
) -> None:
    """Add a scheduler or congestion control from a C file.

    plait builds it, loads it and tries it in a transfer. Scenarios then select it by its name.
    """
    from plait.api.additions import add

    addition = add(file, chosen_kernel(kernel), AGENT)
    if addition.warnings:
        typer.echo(addition.warnings, err=True)
    for old in addition.replaced:
        typer.echo(f"Replaced the existing {', '.join(old.names)}")
    for name in addition.record.names:
        kind = "scheduler" if name in addition.record.schedulers else "congestion_control"
        typer.echo(f"{name}  added; select it with `{kind}: {name}`\n  {addition.tried[name]}")


@app.command("remove")
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, as `plait kernel list` prints it")],
) -> None:
    """Remove an added scheduler or congestion control."""
    from plait.kernel import additions

    record = additions.remove(name)
    typer.echo(f"removed {', '.join(record.names)}; existing results stay")


@app.command("list")
def list_built() -> None:
    """List the built kernels and the added algorithms."""
    from plait import kernel as kernels
    from plait.kernel import additions
    from plait.kernel.cache import is_default

    built = kernels.list_built()
    if not built:
        notify("no kernel is built yet; run `plait kernel build`")
    for kernel, record in built:
        mark = "machine" if kernel.engine == "machine" else "default" if is_default(record) else "       "
        origin = "the package plait-kernel" if record.packaged else record.source.name
        also = f", also called {', '.join(kernel.other_labels)}" if kernel.other_labels else ""
        typer.echo(f"{kernel.name}  {mark}  HZ={kernel.hz}  from {origin}, {record.built_at}{also}")
    for addition in additions.added():
        for name in addition.names:
            kind = "scheduler" if name in addition.schedulers else "congestion control"
            typer.echo(f"{name}  {kind}, added from {addition.file}, {addition.added_at}")
