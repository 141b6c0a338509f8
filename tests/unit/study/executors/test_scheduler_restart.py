"""A Dask scheduler that is killed and starts again during a study: nothing is lost, and nothing counts twice."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any, Self

import dask
import distributed
import pytest

import plait
from fake_engine import FakeEngine
from plait.errors import MachineError
from plait.results.read import read_study
from plait.seeds import trial_seed
from plait.study.executors.cluster import connection
from plait.study.executors.cluster.executor import ClusterExecutor
from plait.study.executors.local import LocalExecutor
from plait.study.perform import Options, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from plait.engine.engine import Job
    from plait.study.executors.executor import TrialExecutor
    from plait.study.study import TrialOutcome

REPEAT = 8
WORKERS = 2
START_S = 300
HANG_S = 300
HANGING = trial_seed(1, 0)
"""The seed of a trial that runs when the scheduler dies."""
GENERATION = "PLAIT_TEST_GENERATION"
"""A variable of the workers: how often the cluster had started before."""


class Hanging(FakeEngine):
    """An engine that hangs at one trial on workers of the first generation, after it has written to a pipe."""

    def __init__(self, pipe: Path) -> None:
        super().__init__()
        self.pipe = pipe

    def execute(self, job: Job) -> None:
        first = os.environ.get(GENERATION) == "0"
        if first and job.plan.seed == HANGING and len(job.plan.flows[0].paths) > 1:
            self.pipe.write_bytes(b"x")
            threading.Event().wait(HANG_S)
        super().execute(job)


class Cluster:
    """A scheduler at a fixed port of this machine, and its workers; `restart` starts both again."""

    def __init__(self, cache: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PLAIT_CACHE": str(cache)}
        self._cache = cache
        self._started = 0
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start scheduler and workers, and wait for them."""
        self._start("dask_scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        for _ in range(WORKERS):
            self._start(
                "dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                "--memory-limit", "2GiB", "--local-directory", str(self._cache),
            )  # fmt: skip
        with distributed.Client(self.address, timeout=START_S, set_as_default=False) as client:
            client.wait_for_workers(WORKERS, timeout=START_S)
        self._started += 1

    def kill(self) -> None:
        """Kill all of it with SIGKILL."""
        for child in self._children:
            child.kill()
        for child in self._children:
            child.wait(START_S)
        self._children = []

    def _start(self, program: str, *options: str) -> None:
        self._children.append(
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *options],
                env={**self._environment, GENERATION: str(self._started)},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        )  # fmt: skip


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "workers") as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))


class Watching:
    """An observer that counts trials, and calls `at_first` when the first one has ended."""

    def __init__(self, at_first: Callable[[], None] = lambda: None) -> None:
        self.ended: Counter[tuple[str, int]] = Counter()
        self._at_first = at_first

    def __call__(self, outcome: TrialOutcome) -> None:
        if not self.ended:
            self._at_first()
        self.ended[outcome.key.case, outcome.key.index] += 1


def run(folder: Path, executor: TrialExecutor, engine: FakeEngine, observer: Watching, **options: Any) -> str:
    """Run the study and return its digest."""
    perform(
        plait.load("two-paths"),
        "two-paths",
        lambda _: engine,
        Options(repeat=REPEAT, **options),
        folder=folder,
        watch=lambda _: contextlib.nullcontext(observer),
        notify=lambda _: None,
        executor=executor,
    )
    return read_study(folder).digest


def test_a_study_outlives_its_scheduler(cluster: Cluster, tmp_path: Path) -> None:
    expected = run(tmp_path / "expected", LocalExecutor(1), FakeEngine(), Watching(), fresh=True)
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)

    def restart() -> None:
        assert select.select([pipe], [], [], START_S)[0], "the trial that hangs has not started"
        cluster.kill()
        cluster.start()

    observer = Watching(restart)
    digest = run(
        tmp_path / "out",
        ClusterExecutor(cluster.address, insecure=True),
        Hanging(tmp_path / "pipe"),
        observer,
        fresh=True,
    )
    os.close(pipe)
    assert digest == expected
    assert len(observer.ended) == 2 * REPEAT
    assert set(observer.ended.values()) == {1}


def test_a_scheduler_that_stays_away_leaves_a_study_that_continues(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(tmp_path / "expected", LocalExecutor(1), FakeEngine(), Watching(), fresh=True)
    (tmp_path / "cache/trials").rename(tmp_path / "others")
    monkeypatch.setattr(connection, "RECONNECT_S", 2)
    monkeypatch.setattr(connection, "_CLOSE_S", 2)
    notices: list[str] = []
    first = Watching(cluster.kill)
    executor = ClusterExecutor(cluster.address, notices.append, insecure=True)
    with (
        dask.config.set(
            {"distributed.comm.timeouts.connect": "5 s"}
        ),  # how long Dask tries to reach what has gone
        pytest.raises(MachineError, match="plait keeps finished trials: start it, and run again"),
    ):
        run(tmp_path / "out", executor, FakeEngine(), first)
    assert any("lost the connection to the scheduler" in notice for notice in notices)
    cluster.start()
    second = Watching()
    assert (
        run(tmp_path / "out", ClusterExecutor(cluster.address, insecure=True), FakeEngine(), second)
        == expected
    )
    ran_again = [key for key, count in (first.ended + second.ended).items() if count > 1]
    assert len(second.ended) == 2 * REPEAT
    assert 0 < len(ran_again) == len(first.ended)
