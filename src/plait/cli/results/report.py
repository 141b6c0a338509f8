"""`plait report`: rebuilds the summary, figures and page of a result folder from its data."""

from __future__ import annotations

from typing import Annotated

import typer

from plait.cli.shared.options import ColumnsOption, ResultFolder, SummaryJson, column_names

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    folder: ResultFolder,
    *,
    width: Annotated[
        float,
        typer.Option(min=40, max=400, metavar="MM", help="Width of the figures: 175 (page), 85 (column)"),
    ] = 175.0,
    columns: ColumnsOption = None,
    json_output: SummaryJson = False,
) -> int:
    """Rebuild the report of a result folder from its data.

    The report is summary.json, figures/ and report.html. Exit code 1: an error prevented part of the report.
    """
    from plait.cautions import is_complete
    from plait.cli.shared.report import report_with_progress
    from plait.files import Folder
    from plait.report.terminal.summary import show

    cautions = report_with_progress(folder, width_mm=width)
    if json_output:
        typer.echo(Folder(folder).read("summary.json").decode(), nl=False)
    else:
        show(folder, cautions, wanted=column_names(columns))
    return 0 if is_complete(cautions) else 1
