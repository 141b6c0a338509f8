"""`plait bisect`: finds the commit of a kernel tree that made a metric worse."""

from __future__ import annotations

import shlex
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import ScenarioArgument, SetOption


def command(
    scenario: ScenarioArgument,
    *,
    tree: Annotated[Path, typer.Option(metavar="DIR", help="Git tree of Linux")],
    good: Annotated[str, typer.Option(metavar="REV", help="Commit whose value is good")],
    bad: Annotated[str, typer.Option(metavar="REV", help="Later commit whose value is worse")],
    metric: Annotated[str, typer.Option(metavar="NAME", help="Metric to judge by")] = "goodput_bps",
    worse_by: Annotated[
        str, typer.Option(metavar="SHARE", help="Least difference between both commits")
    ] = "2%",
    seeds: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Trials for each commit")] = 5,
    overrides: SetOption = None,
) -> int:
    """Find the first commit of a kernel tree that made a metric worse.

    A commit is bad if its median over the seeds is nearer to that of --bad. plait skips commits that do not build or
    whose trials fail. The same command continues after an interrupt. Exit code 1: skipped commits hide the answer.
    """
    from plait import scenario as scenarios
    from plait.analysis.values import show
    from plait.api.bisection import BisectRequest, bisect
    from plait.cli.shared.kernel import show_step
    from plait.errors import RequestError
    from plait.units import Ratio

    try:
        least = float(Ratio.parse(worse_by))
    except ValueError as error:
        raise RequestError(f"--worse-by {worse_by}: {error}") from error
    loaded = scenarios.load(scenario, tuple(overrides or ()))
    request = BisectRequest(loaded, scenario, tree, good, bad, metric, least, seeds)

    def report(commit: str, value: float | None, verdict: str) -> None:
        shown = "it does not build or its trials fail" if value is None else f"{metric} {show(metric, value)}"
        notify(f"{commit[:12]}  {verdict}: {shown}")

    steps: list[str] = []

    def progress(step: str, _fraction: float | None) -> None:
        kind = step.partition(",")[0]
        if steps[-1:] != [kind]:
            steps.append(kind)
            show_step(f"laboratory kernel: {step}", None)

    answer = bisect(request, progress, report)
    if answer.first_bad is None:
        typer.echo("The first bad commit is one of these; the others do not build or run:")
        for commit in answer.candidates:
            typer.echo(f"  {commit}")
        return 1
    before = _nearest_good(answer.values, answer.first_bad, tree, metric)
    typer.echo(f"{answer.first_bad} is the first bad commit")
    typer.echo(
        f"  median {metric} over {seeds} seeds: {show(metric, answer.values[answer.first_bad])}{before}"
    )
    chosen = [part for override in overrides or () for part in ("--set", override)]
    _show_repeat(tree, answer.first_bad, shlex.join([scenario, *chosen]), seeds)
    return 0


def _show_repeat(tree: Path, commit: str, trials: str, seeds: int) -> None:
    """Print the commands that compare the commit with the one before."""
    build = f"plait kernel build --tree {shlex.quote(str(tree))} --ref {commit[:12]}"
    typer.echo(f"  to repeat: {build}^ --name before; {build} --name after")
    typer.echo(f"             plait run {trials} --repeat {seeds} --kernel before --kernel after")


def _nearest_good(values: dict[str, float | None], commit: str, tree: Path, metric: str) -> str:
    """Return the value of the commit before, if it was measured."""
    from plait.analysis.values import show
    from plait.kernel.checkout import GitTree

    value = values.get(GitTree.at(tree).commit(f"{commit}^"))
    return "" if value is None else f"; the commit before: {show(metric, value)}"
