"""`plait explain`: why a flow was not faster, in words, with the evidence."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A result folder, as `plait run` writes it.")],
    *,
    case: Annotated[str | None, typer.Option(metavar="NAME", help="Only this case.")] = None,
    flow: Annotated[str | None, typer.Option(metavar="NAME", help="Only this flow.")] = None,
    trial: Annotated[
        int | None, typer.Option(min=0, help="This trial. Default: one that stands for most.")
    ] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the explanation as JSON.")] = False,
) -> int:
    """Says in words what held each flow back, with the evidence."""
    from plait.api.explaining import explain_study
    from plait.report.explained import show_explanation

    found = explain_study(folder, case=case, flow=flow, trial=trial)
    if json_output:
        typer.echo(found.model_dump_json(indent=1))
    else:
        show_explanation(found)
    return 0
