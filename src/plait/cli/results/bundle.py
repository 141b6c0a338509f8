"""`plait bundle`: writes a study as one archive, which `plait run BUNDLE --verify` repeats and checks elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import ResultFolder
from plait.errors import shell_command

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.


def command(
    folder: ResultFolder,
    *,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The bundle", show_default="DIR.plait.zip")
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder that relative file names in the scenario start from",
            show_default="that of the scenario's file",
        ),
    ] = None,
) -> int:
    """Write a study as one archive for others.

    It has the scenario, input files, identities, packages and data.
    `plait run BUNDLE --verify` repeats the study and compares the digest of each trial.
    """
    from plait.study.bundle.pack import write_bundle

    path = write_bundle(folder, out, scenario_folder=files)
    repeat = shell_command("plait", "run", path, "--verify")
    notify(f"{path} has {path.stat().st_size / 1e6:.1f} MB; repeat it with `{repeat}`")
    return 0
