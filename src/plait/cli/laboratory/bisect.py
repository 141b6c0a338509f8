"""`plait bisect`: finds the commit of a kernel tree that made a metric worse."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.options import (
    ConfigOption,
    JobsOption,
    PatchOption,
    ScenarioArgument,
    SetOption,
    WithoutOption,
    parsed,
)
from plait.errors import shell_command

if TYPE_CHECKING:
    from plait.api.bisection import BisectRequest
    from plait.kernel.bisect import Answer, JudgedCommit


def command(
    scenario: ScenarioArgument,
    *,
    tree: Annotated[Path, typer.Option(metavar="DIR", help="Git tree of Linux")],
    good: Annotated[str, typer.Option(metavar="REV", help="Commit with a good value")],
    bad: Annotated[str, typer.Option(metavar="REV", help="Later commit with a worse value")],
    metric: Annotated[str, typer.Option(metavar="NAME", help="Metric to compare")] = "goodput_bps",
    worse_by: Annotated[
        str, typer.Option(metavar="SHARE", help="Smallest change that counts as worse")
    ] = "2%",
    seeds: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Seeds for each commit")] = 10,
    most_seeds: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=10_000, help="Maximum seeds for a commit that is still undecided"
        ),
    ] = 80,
    jobs: JobsOption = None,
    patch: PatchOption = None,
    config: ConfigOption = None,
    without: WithoutOption = None,
    overrides: SetOption = None,
) -> int:
    """Find the first commit of a kernel tree that made a metric worse.

    A commit is bad if its values are nearer to those of --bad, seed by seed. plait draws further seeds until the
    interval of that decides. It skips commits that do not build, whose trials fail, or that --most-seeds do not decide.
    The same command continues after an interrupt. Exit code 1: skipped commits hide the answer.
    """
    from plait.api.bisection import BisectRequest, bisect
    from plait.cli.shared.kernel import show_step
    from plait.kernel.from_tree import TreeRequest
    from plait.scenario import load as load_scenario
    from plait.units import Ratio

    least = float(parsed("--worse-by", worse_by, Ratio))
    patches, fragments = tuple(path.resolve() for path in patch or ()), tuple(config or ())
    build = TreeRequest(tree, None, patches, fragments, tuple(without or ()))
    loaded = load_scenario(scenario, tuple(overrides or ()))
    request = BisectRequest(loaded, scenario, build, good, bad, metric, least, seeds, most_seeds, jobs)
    steps: list[str] = []

    def progress(step: str, _fraction: float | None) -> None:
        kind = step.partition(",")[0]
        if steps[-1:] != [kind]:
            steps.append(kind)
            show_step(f"laboratory kernel: {step}", None)

    answer = bisect(request, progress, lambda step: notify(f"{step.commit[:12]}  {_verdict(step, metric)}"))
    return _show(answer, request, [part for override in overrides or () for part in ("--set", override)])


def _show(answer: Answer, request: BisectRequest, chosen: list[str]) -> int:
    """Print the answer and the commands that repeat it; return the exit code."""
    if answer.first_bad is None:
        typer.echo("The first bad commit is one of these; plait skipped the others:")
        for commit in answer.candidates:
            typer.echo(f"  {commit}")
        return 1
    found = answer.steps[answer.first_bad]
    typer.echo(f"{found.commit} is the first bad commit")
    typer.echo(f"  {_figures(found, request.metric)}")
    build = request.build
    words = ["plait", "kernel", "build", "--tree", str(build.tree), "--ref", found.commit[:12]]
    words += [part for path in build.patches for part in ("--patch", str(path))]
    words += [part for path in build.fragments for part in ("--config", str(path))]
    words += [part for name in build.without for part in ("--without", name)]
    before = [*words[:6], f"{found.commit[:12]}^", *words[7:]]
    kernels = ["--kernel", "before", "--kernel", "after"]
    trials = ["plait", "run", request.name, *chosen, "--repeat", len(found.values or ()), *kernels]
    typer.echo(f"  to repeat: {shell_command(*before, '--name', 'before')}")
    typer.echo(f"             {shell_command(*words, '--name', 'after')}")
    typer.echo(f"             {shell_command(*trials)}")
    return 0


def _verdict(step: JudgedCommit, metric: str) -> str:
    if step.values is None:
        return "skip: it does not build or its trials fail"
    undecided = " (undecided)" if step.verdict == "skip" else ""
    return f"{step.verdict}{undecided}: {_figures(step, metric)}"


def _figures(step: JudgedCommit, metric: str) -> str:
    """Return the median over the seeds of a commit, and the interval of its change against the good end."""
    import statistics

    from plait.analysis.values import show

    values = [value for value in step.values or () if value is not None]
    text = f"median {metric} over {len(values)} seeds: {show(metric, statistics.median(values))}"
    if step.change is None:
        return text
    low, high = step.change
    return f"{text}, {low:+.1%} to {high:+.1%} against --good"
