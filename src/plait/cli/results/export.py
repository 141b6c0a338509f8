"""`plait export`: prints a flow of a trial as `iperf3 -J` does, for tools that read this format."""

from __future__ import annotations

from typing import Annotated

import typer

from plait.cli.shared.options import ResultFolder

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    folder: ResultFolder,
    *,
    case: Annotated[
        str | None, typer.Option(metavar="NAME", help="Case of the flow", show_default="the only one")
    ] = None,
    trial: Annotated[int, typer.Option(metavar="N", min=0, help="Trial of the case")] = 0,
    flow: Annotated[
        str | None, typer.Option(metavar="NAME", help="Flow to print", show_default="the only one")
    ] = None,
) -> int:
    """Print a flow in the JSON format of `iperf3 -J`.

    plait adds an array of subflows to each stream.
    """
    import json

    from plait.results.export import export_flow

    typer.echo(json.dumps(export_flow(folder, case=case, trial=trial, flow=flow), indent=1))
    return 0
