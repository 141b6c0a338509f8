"""`plait bundle`: writes a study or a benchmark as one archive, which others check with `plait verify`."""

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
    author: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'FAMILY, GIVEN[; ORCID][; AFFILIATION]'",
            help="Author to cite, for CITATION.cff and .zenodo.json; repeat it for more",
            show_default="none, and neither file",
        ),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(metavar="SPDX", help="Licence of the data, such as CC-BY-4.0; --author needs it"),
    ] = None,
) -> int:
    """Write a study or benchmark as one archive for others.

    It has scenario, input files, identities, packages, data, and documents for an evaluation: README, claims,
    replicability, environment, licences. `plait verify BUNDLE` checks a part within five minutes, or a claim;
    `plait run BUNDLE --verify` repeats all of it.
    """
    from plait.artefact.write import write_artefact

    path = write_artefact(folder, out, scenario_folder=files, authors=author or (), licence=licence)
    repeat, verify = shell_command("plait", "run", path, "--verify"), shell_command("plait", "verify", path)
    notify(
        f"{path} has {path.stat().st_size / 1e6:.1f} MB; check it with `{verify}`, repeat it with `{repeat}`"
    )
    if not author:
        notify(
            "without an author it has no CITATION.cff and no .zenodo.json; to publish it, add "
            "--author 'Family, Given; ORCID' and --licence CC-BY-4.0"
        )
    return 0
