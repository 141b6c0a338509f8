"""`plait lint`: warns of what will run but may not show what was hoped for."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help="A scenario file, or the name of a shipped one (`plait list`)."
        ),
    ],
    *,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Set a field of the scenario.")
    ] = None,
) -> None:
    """Warns of what will not work as hoped. Mistakes end with exit code 2, cautions do not."""
    from plait import scenario as scenarios
    from plait.plan.expand import expand, trial_seed
    from plait.plan.lint import lint
    from plait.plan.resolve import resolve

    loaded = scenarios.load(scenario, tuple(overrides or ()))
    cases = expand(loaded)
    found: dict[str, list[str]] = {}
    for case in cases:
        for caution in lint(resolve(case.scenario, trial_seed(loaded.seed, 0))):
            found.setdefault(str(caution), []).append(case.name)
    for text, names in found.items():
        everywhere = len(names) == len(cases)
        typer.echo(
            text if everywhere else f"{text} (case {', '.join(names[:5])}{', ..' if len(names) > 5 else ''})"
        )
    if not found:
        typer.echo("nothing to warn of", err=True)
