"""`plait export`: a flow of a trial in the shape of `iperf3 -J`, for tools that read that."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A result folder, as `plait run` writes it.")],
    *,
    case: Annotated[str | None, typer.Option(metavar="NAME", help="The case. Default: the only one.")] = None,
    trial: Annotated[int, typer.Option(min=0, help="The trial of the case.")] = 0,
    flow: Annotated[str | None, typer.Option(metavar="NAME", help="The flow. Default: the only one.")] = None,
) -> int:
    """Prints a flow as `iperf3 -J` would, with an array of subflows beside each stream."""
    import json

    from plait.results.export import export_flow

    typer.echo(json.dumps(export_flow(folder, case=case, trial=trial, flow=flow), indent=1))
    return 0
