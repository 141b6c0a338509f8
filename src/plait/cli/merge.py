"""`plait merge`: puts the results of several studies into one folder, with a report of all."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from plait.cli.shared.ending import notify

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The new result folder.")],
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Result folders to put together.")],
    *,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Also results of different kernels, agents or versions.")
    ] = False,
) -> int:
    """Puts the results of studies together: further seeds of the same cases, or further cases."""
    from plait.report import build
    from plait.report.terminal.summary import show
    from plait.results.merge import merge

    count = merge(out, folders, mixed=mixed)
    notify(f"{count} trials of {len(folders)} studies")
    cautions = build(out)
    show(out, cautions)
    return 0
