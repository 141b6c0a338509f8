"""`plait compare`: two studies side by side, with a verdict and an exit code for scripts."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from plait.analysis.metrics.catalogue import COMPARED

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    first: Annotated[Path, typer.Argument(metavar="DIR", help="The result folder to compare with.")],
    second: Annotated[Path, typer.Argument(metavar="DIR", help="The result folder that is judged.")],
    *,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help=f"Metric to judge; may be repeated. Default: {', '.join(COMPARED)}."
        ),
    ] = None,
    tolerance: Annotated[
        str, typer.Option(metavar="RATIO", help="A change for the worse that is tolerated, such as 2%.")
    ] = "0%",
    json_output: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> int:
    """Compares the second study with the first. Exit code 0: no worse; 1: worse; 2: they cannot be compared."""
    from plait.errors import RequestError
    from plait.report.terminal.comparison import compare_folders, show_comparison
    from plait.units import Ratio

    try:
        tolerated = float(Ratio.parse(tolerance))
    except ValueError as error:
        raise RequestError(f"--tolerance: {error}") from error
    metrics = tuple(dict.fromkeys(metric)) if metric else tuple(COMPARED)
    comparison, lines = compare_folders(first, second, metrics=metrics, tolerance=tolerated)
    if json_output:
        typer.echo(comparison.model_dump_json(indent=1))
    else:
        show_comparison(comparison, lines)
    return 1 if comparison.verdict == "worse" else 0
