"""`plait list`: the shipped scenarios, a line each."""

from __future__ import annotations

import typer


def command() -> None:
    """Lists the shipped scenarios: name and title."""
    from plait.scenario.library import shipped

    titles = shipped()
    width = max((len(name) for name, _ in titles), default=0)
    for name, title in titles:
        typer.echo(f"{name:<{width}}  {title}")
