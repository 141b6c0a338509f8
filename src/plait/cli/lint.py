"""`plait lint`: warns of a scenario that runs but may not show what its author expects."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from plait.binaries import AGENT
from plait.cli.shared.options import ScenarioArgument, SetOption
from plait.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.cautions import Caution
    from plait.scenario.vary.cases import Case

WIDTH = 80
INDENT = "    "


def command(
    scenario: ScenarioArgument,
    *,
    overrides: SetOption = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print the cautions as JSON")] = False,
) -> None:
    """Check a scenario without running it.

    Mistakes end with exit code 2. Cautions alone do not: the scenario runs, but may not show what you expect.
    """
    from plait.plan.case_plan import resolve_case
    from plait.plan.lint.lint import lint_cases
    from plait.scenario import load as load_scenario
    from plait.scenario.vary.cases import expand

    loaded = load_scenario(scenario, tuple(overrides or ()))
    cases = expand(loaded)
    cautions = lint_cases([resolve_case(case) for case in cases], loaded.seed)
    unasked = _check_with_kernel(cases)
    if json_output:
        json.dump([caution.model_dump(mode="json") for caution in cautions], sys.stdout, indent=2)
        typer.echo()
        return
    name = loaded.source.name if loaded.source is not None else scenario
    for caution in cautions:
        typer.echo(_formatted(caution, name))
    if not cautions:
        typer.echo("no cautions", err=True)
    if unasked is not None:
        typer.echo(
            f"plait did not check the names of sysctls, congestion controls and schedulers: {unasked}",
            err=True,
        )


def _check_with_kernel(cases: Sequence[Case]) -> str | None:
    """Raise ScenarioError for what the kernel lacks; return why plait could not ask it, and the remedy."""
    from plait.engine.virtual.trial import VirtualEngine
    from plait.kernel import built_by_default
    from plait.study.preflight.kernel import refuse_what_is_missing

    kernel = built_by_default()
    if kernel is None:
        return "the kernel of this version is not built yet; run `plait kernel build` first"
    try:
        engine = VirtualEngine(kernel, AGENT)
        engine.inventory()
    except MachineError as error:
        return str(error)
    refuse_what_is_missing(cases, engine.inventory)
    return None


def _formatted(caution: Caution, source: str) -> str:
    """Return `FILE:LINE:COLUMN: where: message [code]`, and the remedy below it."""
    location = source if caution.line is None else f"{source}:{caution.line}:{caution.column}"
    text = _wrapped(f"{location}: {caution.summary} [{caution.code}]", "")
    return text if caution.remedy is None else f"{text}\n{_wrapped(f'remedy: {caution.remedy}', INDENT)}"


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
