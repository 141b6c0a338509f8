"""`plait report`: rebuilds the summary, figures and page of a result folder from its data."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from plait.cli.shared.options import ColumnsOption, ResultFolder, SummaryJson, column_names

Style = Literal["plain", "ieee", "acm", "usenix"]

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    folder: ResultFolder,
    *,
    width: Annotated[
        str, typer.Option(metavar="WIDTH", help="Width of the figures: page, column, or 40 to 400 (mm)")
    ] = "page",
    style: Annotated[
        Style, typer.Option(help="Publisher whose fonts, page width and column width the figures use")
    ] = "plain",
    columns: ColumnsOption = None,
    json_output: SummaryJson = False,
) -> int:
    """Rebuild the report of a result folder from its data.

    The report is summary.json, figures/ and report.html. Exit code 1: an error prevented part of the report.
    """
    from plait.cautions import is_complete
    from plait.cli.shared.ending import notify
    from plait.cli.shared.report import report_with_progress
    from plait.files import Folder
    from plait.report.current import kept_cautions
    from plait.report.render.fonts import fallback_note
    from plait.report.render.paper import PAPERS, width_in_mm
    from plait.report.terminal.summary import show

    paper = PAPERS[style]
    width_mm = width_in_mm(width, paper)
    # Other columns of the same report need no new one.
    cautions = kept_cautions(folder, (width_mm, paper.column_mm, style)) if columns is not None else None
    if cautions is None:
        cautions = report_with_progress(folder, width_mm=width_mm, column_mm=paper.column_mm, style=style)
    if (note := fallback_note(style)) is not None:
        notify(note)
    if json_output:
        typer.echo(Folder(folder).read("summary.json").decode(), nl=False)
    else:
        show(folder, cautions, wanted=column_names(columns))
    return 0 if is_complete(cautions) else 1
