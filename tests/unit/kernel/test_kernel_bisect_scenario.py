"""`plait bisect` judges commits by pairs of seeds, on fake kernels whose goodput is in their tree."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from fake_engine import FakeEngine
from fake_tables import fake_tables
from kernel_fakes import make_numbered_commits, number_in
from plait.api import bisection
from plait.cli import app
from plait.errors import KernelBuildError, RequestError, TrialError
from plait.kernel import Kernel
from result_folders import write_arrow

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.engine import EngineIdentity, Job
    from plait.engine.request import EngineRequest
    from plait.kernel import Progress
    from plait.kernel.from_tree import TreeRequest

COMMITS = 24
PLANTED, BROKEN, FAILING = 9, 12, 11
SCENARIO = ("two-paths", "--set", "vary.transport=[mptcp]", "--set", "traffic.0.bulk.duration=1s")


@dataclass
class Work:
    """What a bisection did."""

    built: list[int]
    stop_after: int | None = None
    """The number of builds after which the user interrupts."""
    outlier: float = 0.5
    """The share of the goodput that an outlier has; 1: there are none, and the first seeds decide."""


class SlowedEngine(FakeEngine):
    """An engine whose kernel's goodput is 4 % lower from the planted commit on, and far off with one seed in seven."""

    def __init__(self, number: int, outlier: float) -> None:
        super().__init__(self._fail)
        self._number = number
        self._outlier = outlier

    def _fail(self, _: Job) -> None:
        if self._number == FAILING:
            raise TrialError("the guest's kernel panicked")

    def identity(self) -> EngineIdentity:
        """Return an identity of this kernel alone."""
        return replace(super().identity(), kernel=f"{self._number:064x}")

    def execute(self, job: Job) -> None:
        """Write the tables again, with the received bytes of this kernel."""
        super().execute(job)
        outlier = self._outlier if job.plan.seed % 7 == self._number % 7 else 1.0
        share = (0.96 if self._number >= PLANTED else 1.0) * outlier
        tables = fake_tables(job.plan)
        flows = tables["flows"]
        received = (flows["received_bytes"] * share).cast(flows.schema["received_bytes"])
        write_arrow(job.folder / "data", {**tables, "flows": flows.with_columns(received)})


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree of 24 commits, whose file has the number of its commit."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return make_numbered_commits(tmp_path / "linux", COMMITS)


@pytest.fixture
def work(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    """Kernels of the tree are built in no time, and run on the fake engine."""
    work = Work([])

    def build(request: TreeRequest, _: object) -> Kernel:
        if work.stop_after is not None and len(work.built) >= work.stop_after:
            raise KeyboardInterrupt
        number = number_in(tree, request.ref or "")
        work.built.append(number)
        if number == BROKEN:
            raise KernelBuildError("net/mptcp/protocol.c:1: error")
        return Kernel(f"{number:064x}", "6.12.1", tree / "linux", "b" * 64, 1000)

    def engine(_: str, *, request: EngineRequest) -> FakeEngine:
        return SlowedEngine(int(request.kernel or "", 16), work.outlier)

    monkeypatch.setattr(bisection, "build_tree", build)
    monkeypatch.setattr(bisection, "make_engine", engine)
    return work


def bisect(tree: Path, *more: str, scenario: tuple[str, ...] = SCENARIO) -> tuple[int, str, str]:
    words = (
        "bisect",
        *scenario,
        "--tree",
        str(tree),
        "--good",
        f"HEAD~{COMMITS - 1}",
        "--bad",
        "HEAD",
        *more,
    )
    result = CliRunner().invoke(app, words, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return int(result.return_value or 0), result.stdout, result.stderr


def test_the_commit_is_found_in_spite_of_outliers_and_commits_that_do_not_build_or_run(
    tree: Path, work: Work
) -> None:
    code, out, err = bisect(tree, "--seeds", "7", "--jobs", "1")
    first = out.splitlines()[0]
    assert code == 0
    assert first.endswith("is the first bad commit")
    assert number_in(tree, first.split()[0]) == PLANTED
    [seeds] = re.findall(r"over (\d+) seeds", out)
    assert int(seeds) > 7, "seven cannot decide"
    assert re.search(r"-\d+\.\d% to -\d+\.\d% against --good", out)
    assert f"plait run {shlex.join(SCENARIO)} --repeat {seeds} --kernel before --kernel after" in out
    for number in {BROKEN, FAILING} & set(work.built):
        assert "skip: it does not build or its trials fail" in err, number
        reason = (
            "net/mptcp/protocol.c:1: error"
            if number == BROKEN
            else "a trial failed: the guest's kernel panicked"
        )
        assert f"is skipped: {reason}" in err
    assert {BROKEN, FAILING} & set(work.built), "the search passes a commit that it must skip"


def test_the_same_command_continues_after_an_interrupt(
    tree: Path, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work.stop_after, work.outlier = 3, 1.0
    with pytest.raises(typer.Abort):  # exit code 130
        bisect(tree)
    work.stop_after = None
    _, out, _ = bisect(tree)
    assert number_in(tree, out.split()[0]) == PLANTED
    interrupted, work.built = work.built, []
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "another"))
    bisect(tree)
    assert interrupted == work.built, "no commit is measured twice"


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("HEAD", "HEAD~5", "--good HEAD is later than --bad HEAD~5; exchange them"),
        ("HEAD", "main", "--good HEAD and --bad main are the same commit; name two"),
    ],
)
def test_ends_in_the_wrong_order_are_refused_before_anything_is_built(
    tree: Path, work: Work, good: str, bad: str, message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        bisect(tree, "--good", good, "--bad", bad)
    assert work.built == []


@pytest.mark.usefixtures("work")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--metric", "speed"), "plait knows no such metric"),
        (("--worse-by", "2"), "--worse-by 2: "),
        (("--worse-by", "30%"), "choose other commits, a higher --most-seeds or a lower --worse-by"),
        (("--most-seeds", "5"), "--most-seeds 5 is less than --seeds 10"),
        (("--metric", "udp_loss_ratio"), "does not measure it"),
    ],
)
def test_a_request_that_cannot_be_judged_is_refused(tree: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(Exception, match=message) as refused:
        bisect(tree, *words)
    assert getattr(refused.value, "exit_code", None) == 2


def test_every_kernel_is_built_with_the_patches_and_options_of_the_user(
    tree: Path, work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, requests = bisection.build_tree, []
    work.outlier = 1.0

    def recorded(request: TreeRequest, progress: Progress) -> Kernel:
        requests.append(request)
        return build(request, progress)

    monkeypatch.setattr(bisection, "build_tree", recorded)
    patch, config = tmp_path / "a b.patch", tmp_path / "more.config"
    patch.write_text("")
    config.write_text("CONFIG_X=y\n")
    words = ("--patch", str(patch), "--config", str(config), "--without", "0001")
    _, out, _ = bisect(tree, *words)
    assert {(r.patches, r.fragments, r.without) for r in requests} == {((patch,), (config,), ("0001",))}
    assert f"--patch {shlex.quote(str(patch))} --config {config} --without 0001 --name before" in out
    measured = len(work.built)
    config.write_text("CONFIG_X=n\n")
    bisect(tree, *words)
    assert len(work.built) > measured, "other options are another question"


@pytest.mark.usefixtures("work")
def test_a_scenario_of_several_cases_is_refused_with_the_remedy(tree: Path) -> None:
    with pytest.raises(Exception, match=r"it has 2 cases.*--set vary\.transport=\[mptcp\]"):
        bisect(tree, scenario=("two-paths",))
