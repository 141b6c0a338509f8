"""Measures commits of a kernel tree with a scenario, for a bisection: build, run the seeds, take the median."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plait.analysis.metrics.catalogue import metric_of
from plait.cache import cache_root
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.errors import KernelBuildError, RequestError, printable
from plait.kernel.bisect import Answer, Bisection, Question
from plait.kernel.checkout import GitTree
from plait.kernel.from_tree import TreeRequest, build_tree
from plait.report.assemble import summary_of
from plait.results.read import read_study
from plait.scenario.vary.cases import expand
from plait.study.perform import Options, perform
from plait.study.progress import SilentObserver

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.kernel import Progress
    from plait.scenario import Scenario


@dataclass(frozen=True)
class BisectRequest:
    """What to bisect, and by which value."""

    scenario: Scenario
    name: str
    """The scenario as the user named it."""
    tree: Path
    good: str
    bad: str
    metric: str
    worse_by: float
    seeds: int


def bisect(
    request: BisectRequest, progress: Progress, report: Callable[[str, float | None, str], None]
) -> Answer:
    """Return the first commit of the tree after which the metric's median over seeds is worse.

    Raises:
        RequestError: the scenario has several cases, the metric is unknown, or the ends are in the wrong order or do
            not differ.
        KernelBuildError, MachineError: git or the build cannot work at all.
    """
    metric = metric_of(request.metric)
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
    tree = GitTree.at(request.tree)
    good, bad = tree.commit(request.good), tree.commit(request.bad)
    if good == bad:
        raise RequestError(f"--good {request.good} and --bad {request.bad} are the same commit; name two")
    if tree.is_before(bad, good):
        raise RequestError(f"--good {request.good} is later than --bad {request.bad}; exchange them")
    subject = f"{request.name} {request.metric} {request.seeds} {request.scenario.model_dump_json()}"
    question = Question(good, bad, subject, request.worse_by, metric.better == "less")
    return Bisection(tree, question).run(partial(_measure, request, progress), report)


def _measure(request: BisectRequest, progress: Progress, commit: str) -> float | None:
    """Return the median of the metric over the seeds on the kernel of a commit, or None if it does not build or run."""
    try:
        kernel = build_tree(TreeRequest(request.tree, commit), progress)
    except KernelBuildError as error:
        progress(f"{commit[:12]} is skipped: {_first_line(error)}", None)
        return None
    root = cache_root() / "exec"
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix="bisect-") as scratch:
        folder, outcome = perform(
            request.scenario,
            request.name,
            partial(make_engine, request=EngineRequest(kernel.identity)),
            Options(repeat=request.seeds, calibrate=False),
            folder=Path(scratch) / "study",
            watch=lambda _: nullcontext(SilentObserver()),
            notify=lambda _: None,
        )
        if outcome.interrupted:
            raise KeyboardInterrupt
        if outcome.failed:
            progress(
                f"{commit[:12]} is skipped: a trial failed: {_first_line(outcome.failed[0].error)}", None
            )
            return None
        summary = summary_of(read_study(folder)).cases[0].metrics.get(request.metric)
    if summary is None or summary.median is None:
        raise RequestError(f"--metric {request.metric}: the scenario {request.name} does not measure it")
    return summary.median


def _first_line(reason: object) -> str:
    return printable(str(reason).partition("\n")[0], keep="")
