"""`plait list`: prints one line for each shipped scenario."""

from __future__ import annotations

import typer


def command() -> None:
    """List the shipped scenarios with their titles."""
    from plait.scenario.read.library import shipped

    titles = shipped()
    width = max((len(name) for name, _ in titles), default=0)
    for name, title in titles:
        typer.echo(f"{name:<{width}}  {title}")
