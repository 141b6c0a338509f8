"""`plait help`: prints the help of plait, or of a verb."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    context: typer.Context,
    verb: Annotated[
        list[str] | None, typer.Argument(metavar="[VERB]", help="The verb, such as `run` or `kernel add`")
    ] = None,
) -> None:
    """Show the help of a verb."""
    context.find_root().command.main([*(verb or []), "--help"], prog_name="plait", standalone_mode=False)
