"""`plait plan`: prints what a trial would do, without running it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from plait.cli.shared.options import PlannedCase, ScenarioArgument, SetOption, StudySeed
from plait.cli.shared.planned import planned_case
from plait.errors import RequestError


def command(
    scenario: ScenarioArgument,
    *,
    overrides: SetOption = None,
    output_format: Annotated[
        str, typer.Option("--format", metavar="json|shell", help="JSON, or commands to run by hand as root")
    ] = "json",
    case: PlannedCase = None,
    seed: StudySeed = None,
    repeat_index: Annotated[
        int, typer.Option(metavar="N", min=0, help="Index of the repeat, counted from 0")
    ] = 0,
) -> None:
    """Print the resolved plan of a trial without running it."""
    import json

    from plait.plan.identity import plan_bytes
    from plait.plan.network import ifnames
    from plait.plan.shell.script import to_shell

    if output_format not in ("json", "shell"):
        raise RequestError(f"--format {output_format}: unknown format; write json or shell")
    plan, name, cases = planned_case(scenario, overrides, case, seed=seed, repeat=repeat_index)
    if output_format == "shell":
        sys.stdout.write(to_shell(plan))
    else:
        sys.stdout.write(json.dumps(json.loads(plan_bytes(plan)), indent=2) + "\n")
    for line in ifnames.renamed_interfaces(plan):
        typer.echo(f"plait: {line}", err=True)
    if case is None and len(cases) > 1:
        typer.echo(
            f"plait: this is the plan of case {name}; --case selects another: {', '.join(cases)}"[:2000],
            err=True,
        )
