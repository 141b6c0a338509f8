"""Measures commits of a kernel tree with a scenario, for a bisection: build, run the seeds, judge the pairs."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from plait.analysis.metrics.catalogue import metric_of
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.engine.workspace import working_folder
from plait.errors import KernelBuildError, RequestError, printable
from plait.kernel import Progress
from plait.kernel.bisect import Answer, Bisection, JudgedCommit, Question
from plait.kernel.checkout import GitTree
from plait.kernel.from_tree import TreeRequest, build_tree
from plait.metrics import judged_metric
from plait.results.read import read_study
from plait.scenario import Scenario
from plait.scenario.vary.cases import expand
from plait.study.perform import Options, perform

_WRONG = 0.01
"""How often the intervals of a commit may miss the median."""


@dataclass(frozen=True)
class BisectRequest:
    """The request of a bisection: the commits, and the value that decides."""

    scenario: Scenario
    name: str
    """The scenario as the user named it."""
    build: TreeRequest
    """The tree, and patches and configuration of every kernel; its `ref` does not count."""
    good: str
    bad: str
    metric: str
    worse_by: float
    seeds: int = 10
    most_seeds: int = 80
    jobs: int | None = None
    """Trials at once; None: one for each processor."""


def median_interval(values: Sequence[float], looks: int) -> tuple[float, float] | None:
    """Return the interval of the median of `values`; None if they are too few for it.

    It is distribution-free: two order statistics, by the binomial distribution (Conover, Practical Nonparametric
    Statistics, 3.2). At most 1 % of all medians are outside of one of `looks` intervals (Bonferroni), because a
    bisection looks again after further seeds, and a single wrong step leads to a wrong commit.
    """
    from scipy import stats  # type: ignore[import-untyped]  # scipy ships no types

    if not values:
        return None
    result = stats.quantile_test(values, q=0, p=0.5)
    low, high = result.confidence_interval(confidence_level=1 - _WRONG / looks)
    return (float(low), float(high)) if low <= high else None  # not if one is not a number


def bisect(request: BisectRequest, progress: Progress, report: Callable[[JudgedCommit], None]) -> Answer:
    """Return the first commit of the tree after which the metric is worse, by pairs of seeds.

    Raises:
        RequestError: the scenario has several cases, the metric is unknown, or the ends are in the wrong order or do
            not differ.
        KernelBuildError, MachineError: git or the build cannot work at all.
    """
    metric = metric_of(judged_metric(request.metric))
    if metric is None or metric.better not in ("less", "more"):
        raise RequestError(
            f"--metric {request.metric}: plait knows no such metric to judge by; try goodput_bps"
        )
    cases = expand(request.scenario)
    if len(cases) != 1:
        raise RequestError(
            f"bisecting with {request.name}: it has {len(cases)} cases, and a bisection measures one; fix what varies, "
            "for example --set vary.transport=[mptcp]"
        )
    tree = GitTree.at_folder(request.build.tree)
    good, bad = tree.commit(request.good), tree.commit(request.bad)
    if good == bad:
        raise RequestError(f"--good {request.good} and --bad {request.bad} are the same commit; name two")
    if tree.precedes(bad, good):
        raise RequestError(f"--good {request.good} is later than --bad {request.bad}; exchange them")
    if request.most_seeds < request.seeds:
        raise RequestError(
            f"--most-seeds {request.most_seeds} is less than --seeds {request.seeds}; raise it"
        )
    question = Question(
        good, bad, _subject(request), request.worse_by, metric.better == "less", request.seeds, request.most_seeds
    )  # fmt: skip
    return Bisection(tree, question, partial(_measure, request, progress), median_interval).run(report)


def _subject(request: BisectRequest) -> str:
    """Return the measurement as text: the scenario, the metric, and the options of every kernel's build."""
    build = request.build
    texts = [path.read_text(errors="replace") for path in (*build.patches, *build.fragments)]
    about = [
        request.name,
        request.metric,
        request.scenario.model_dump_json(),
        build.without,
        build.debug,
        texts,
    ]
    return json.dumps(about, default=str)


def _measure(
    request: BisectRequest, progress: Progress, commit: str, seeds: int
) -> list[float | None] | None:
    """Return the metric for each seed on the kernel of a commit, or None if it does not build or run.

    The store has the trials of the seeds that ran before.
    """
    try:
        kernel = build_tree(replace(request.build, ref=commit), progress)
    except KernelBuildError as error:
        progress(f"{commit[:12]} is skipped: {_first_line(error)}", None)
        return None
    with working_folder() as workspace:
        folder, outcome = perform(
            request.scenario,
            request.name,
            partial(make_engine, request=EngineRequest(kernel.identity)),
            Options(repeat=seeds, jobs=request.jobs),
            folder=workspace.job() / "study",
        )
        if outcome.interrupted:
            raise KeyboardInterrupt
        if outcome.failed:
            progress(
                f"{commit[:12]} is skipped: a trial failed: {_first_line(outcome.failed[0].error)}", None
            )
            return None
        rows = {row.index: row for row in read_study(folder).cases[0].rows}
    # the trial of a seed has the same place with every commit
    values = [rows[n].metrics.get(request.metric) if n in rows else None for n in range(seeds)]
    if all(value is None for value in values):
        raise RequestError(f"--metric {request.metric}: the scenario {request.name} does not measure it")
    return values


def _first_line(reason: object) -> str:
    return printable(str(reason).partition("\n")[0], keep="")
