"""`plait export`: a flow of a trial in the shape of `iperf3 -J`, for tools that read that."""

from __future__ import annotations

from typing import Annotated

import typer

from plait.cli.shared.options import ResultFolder

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    folder: ResultFolder,
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
