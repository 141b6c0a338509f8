"""`plait merge`: copies the trials of several studies into a new result folder and reports on all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared.ending import notify

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The new result folder")],
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Result folders to merge")],
    *,
    mixed: Annotated[
        bool,
        typer.Option(
            "--mixed", help="Allow results of different engines, kernels, agents or versions of plait"
        ),
    ] = False,
) -> int:
    """Merge several result folders into a new one.

    The folders may hold further seeds of the same cases, further cases, or the shards of one study.
    """
    from plait.cli.shared.report import report_with_progress
    from plait.dataset.study_file import read_study_file
    from plait.report.terminal.summary import show
    from plait.results.merge import merge
    from plait.results.shards import missing_shards

    count = merge(out, folders, mixed=mixed)
    missing = missing_shards([read_study_file(folder) for folder in folders])
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", .." if len(missing) > 8 else "")
        notify(
            f"shards that are missing: {shown}; the command of the study with --out {out} runs their trials"
        )
    notify(f"merged {count} trials of {len(folders)} studies")
    cautions = report_with_progress(out)
    show(out, cautions)
    return 0
