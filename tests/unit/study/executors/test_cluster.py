"""Trials on a Dask cluster: the same study as on this machine, whatever its workers do."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import distributed
import pytest

import plait
from fake_engine import FakeEngine
from plait.engine.recipe import recipe_of, shipped_file
from plait.errors import MachineError, RequestError
from plait.results.read import read_study
from plait.seeds import trial_seed
from plait.study.executors import shipment
from plait.study.executors.cluster.admission import MEMORY, WORKER_MIB, grant
from plait.study.executors.cluster.connection import DaskConnection
from plait.study.executors.cluster.dispatcher import Dispatcher
from plait.study.executors.cluster.executor import ClusterExecutor
from plait.study.executors.local import LocalExecutor
from plait.study.executors.worker import SHIPPED
from plait.study.perform import Options, perform
from plait.study.progress import silent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plait.engine.engine import Job
    from plait.engine.recipe import EngineRecipe, ShippedFile
    from plait.results.read import StudyData

WORKERS = 2


@dataclass(frozen=True)
class Cluster:
    client: Any
    cache: Path
    """The cache of its workers."""

    @property
    def address(self) -> str:
        return str(self.client.scheduler.address)

    def workers(self) -> list[str]:
        """Return the addresses of all workers; wait for those that start again."""
        self.client.wait_for_workers(WORKERS, timeout=120)
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cache = tmp_path_factory.mktemp("workers")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PLAIT_CACHE", str(cache))
        with (
            dask.config.set(
                {"distributed.deploy.lost-worker-timeout": "1 d"}
            ),  # a busy machine starts them late
            distributed.LocalCluster(
                n_workers=WORKERS,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit="2GiB",
            ) as local,
            distributed.Client(local, set_as_default=False) as client,
        ):
            yield Cluster(client, cache)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))


def run(folder: Path, executor: Any, engine: FakeEngine) -> StudyData:
    """Run four repeats of both cases, without drawing a report."""
    perform(
        plait.load("two-paths"),
        "two-paths",
        lambda _: engine,
        Options(repeat=4, fresh=True),
        folder=folder,
        watch=silent,
        notify=lambda _: None,
        executor=executor,
    )
    return read_study(folder)


def on_cluster(cluster: Cluster, tmp_path: Path, engine: FakeEngine) -> StudyData:
    cluster.workers()
    return run(tmp_path / "out", ClusterExecutor(cluster.address, insecure=True), engine)


def is_at_home(home: int) -> bool:
    """Whether this is the process of plait, not of a worker."""
    return os.getpid() == home


class Mortal(FakeEngine):
    """An engine that kills its worker at one trial."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed, self.home = seed, os.getpid()

    def execute(self, job: Job) -> None:
        if job.plan.seed == self.seed and len(job.plan.flows[0].paths) > 1 and not is_at_home(self.home):
            os._exit(1)
        super().execute(job)


class Deviating(FakeEngine):
    """An engine that gives other data in one process, or in all processes but this one."""

    def __init__(self, process: int | None = None) -> None:
        super().__init__()
        self.home, self.process = os.getpid(), process

    def execute(self, job: Job) -> None:
        other = not is_at_home(self.home) and self.process in (None, os.getpid())
        seed = job.plan.seed + other
        super().execute(replace(job, plan=job.plan.model_copy(update={"seed": seed})))


class Shipping(FakeEngine):
    """An engine that needs a file which only this process can open."""

    def __init__(self, file: ShippedFile) -> None:
        super().__init__()
        self.file = file

    def recipe(self) -> EngineRecipe:
        return ShippingRecipe(self.file)


@dataclass(frozen=True)
class ShippingRecipe:
    file: ShippedFile

    @property
    def files(self) -> tuple[ShippedFile, ...]:
        return (self.file,)

    def create(self, files: Mapping[str, Path]) -> FakeEngine:
        assert files[self.file.sha256].read_bytes() == b"kernel"
        return FakeEngine()


def test_a_cluster_gives_the_same_study_as_this_machine(cluster: Cluster, tmp_path: Path) -> None:
    expected = run(tmp_path / "expected", LocalExecutor(1), FakeEngine())
    study = on_cluster(cluster, tmp_path, FakeEngine())
    assert study.digest == expected.digest
    assert [case.rows for case in study.cases] == [case.rows for case in expected.cases]
    assert (tmp_path / "out/study.json").read_bytes() == (tmp_path / "expected/study.json").read_bytes()


def test_a_file_reaches_each_host_once(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "kernel").write_bytes(b"kernel")
    with (tmp_path / "kernel").open("rb") as file:
        here = replace(shipped_file(tmp_path / "kernel"), origin=Path(f"/proc/self/fd/{file.fileno()}"))
        study = on_cluster(cluster, tmp_path, Shipping(here))
    assert sum(len(case.rows) for case in study.cases) == 8
    kept = [path for path in (cluster.cache / SHIPPED).rglob("*") if path.is_file()]
    assert [path.name for path in kept] == [here.sha256]
    assert kept[0].read_bytes() == b"kernel"


def test_a_trial_that_kills_workers_is_named_and_the_others_finish(cluster: Cluster, tmp_path: Path) -> None:
    study = on_cluster(cluster, tmp_path, Mortal(trial_seed(1, 2)))
    failed = {case.name: {trial.index: trial.error for trial in case.failed} for case in study.cases}
    assert {case: list(trials) for case, trials in failed.items()} == {
        "transport=tcp": [],
        "transport=mptcp": [2],
    }
    assert "3 workers died while they ran this trial" in failed["transport=mptcp"][2]
    assert sum(len(case.rows) for case in study.cases) == 7


def _pretend(version: str) -> None:
    shipment.__version__ = version


@contextlib.contextmanager
def another_version(cluster: Cluster, workers: list[str]) -> Iterator[None]:
    """Let workers say that they have another version of plait."""
    cluster.client.run(_pretend, "0.0.9", workers=workers)
    try:
        yield
    finally:
        cluster.client.run(_pretend, plait.__version__, workers=workers)


def test_a_worker_of_another_version_runs_nothing_and_is_named(cluster: Cluster, tmp_path: Path) -> None:
    other, _ = cluster.workers()
    with another_version(cluster, [other]):
        study = on_cluster(cluster, tmp_path, FakeEngine())
    assert sum(len(case.rows) for case in study.cases) == 8
    (caution,) = (caution for caution in study.cautions if caution.code == "WORKER_REFUSED")
    assert other in caution.message
    assert f"it has plait 0.0.9, and this is plait {plait.__version__}" in caution.message


def test_a_study_ends_if_no_worker_may_be_used(cluster: Cluster, tmp_path: Path) -> None:
    with (
        another_version(cluster, cluster.workers()),
        pytest.raises(MachineError, match="any of its 2 workers"),
    ):
        on_cluster(cluster, tmp_path, FakeEngine())


def test_workers_whose_sentinel_differs_run_nothing(cluster: Cluster, tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="the same trial gave other data"):
        on_cluster(cluster, tmp_path, Deviating())
    assert not list((tmp_path / "out").glob("trials/*/*"))


def test_a_worker_whose_sentinel_differs_runs_nothing_and_is_named(cluster: Cluster, tmp_path: Path) -> None:
    other, fit = cluster.workers()
    (process,) = cluster.client.run(os.getpid, workers=[other]).values()
    expected = run(tmp_path / "expected", LocalExecutor(1), FakeEngine())
    study = on_cluster(cluster, tmp_path, Deviating(process))
    assert study.digest == expected.digest, "a trial ran on the worker that gives other data"
    (caution,) = (caution for caution in study.cautions if caution.code == "WORKER_REFUSED")
    assert other in caution.message
    assert "the same trial gave other data there" in caution.message
    assert fit not in caution.message


def test_the_scheduler_learns_the_memory_of_guests(cluster: Cluster, tmp_path: Path) -> None:
    on_cluster(cluster, tmp_path, FakeEngine())
    known = cluster.client.scheduler_info(n_workers=-1)["workers"].values()
    assert [worker["resources"][MEMORY] for worker in known] == [2048 - WORKER_MIB] * WORKERS


def test_a_trial_larger_than_every_worker_is_named(cluster: Cluster, tmp_path: Path) -> None:
    cluster.client.run(grant, {MEMORY: 100.0})
    try:
        with pytest.raises(MachineError, match="MiB, and the largest worker has 100 MiB"):
            on_cluster(cluster, tmp_path, FakeEngine())
    finally:
        cluster.client.run(grant, {MEMORY: 2048.0 - WORKER_MIB})


def test_an_error_of_the_dispatcher_ends_the_study(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    for name in ("_check_hope", "_place", "_welcome"):
        with monkeypatch.context() as patch:
            patch.setattr(Dispatcher, name, fail)
            with pytest.raises(ZeroDivisionError, match="a defect"):
                on_cluster(cluster, tmp_path, FakeEngine())


def test_the_cluster_is_free_again_after_a_study_that_was_stopped(cluster: Cluster, tmp_path: Path) -> None:
    def stop(_: object) -> None:
        """Interrupt the study at its first trial."""
        raise KeyboardInterrupt

    @contextlib.contextmanager
    def watch(_: int) -> Iterator[Any]:
        yield stop

    cluster.workers()
    _, outcome = perform(
        plait.load("two-paths"),
        "two-paths",
        lambda _: FakeEngine(),
        Options(repeat=4, fresh=True),
        folder=tmp_path / "out",
        watch=watch,
        notify=lambda _: None,
        executor=ClusterExecutor(cluster.address, insecure=True),
    )
    assert outcome.interrupted
    assert [thread.name for thread in threading.enumerate() if thread.name == "plait-cluster"] == []
    assert on_cluster(cluster, tmp_path, FakeEngine()).digest


@pytest.mark.parametrize("library", [None, object()])
def test_the_address_of_the_dashboard_is_printed_if_there_is_one(
    library: object, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: library)
    notices: list[str] = []
    with ClusterExecutor(cluster.address, notices.append, insecure=True):
        pass
    assert len(notices) == (library is not None)
    assert all(notice.startswith("dashboard of the cluster: http://127.0.0.1:") for notice in notices)


def test_what_is_no_cluster_is_refused() -> None:
    for where in ("local:0", "localhost:8786", "tcp://host", "ssh", ""):
        with pytest.raises(RequestError, match="write the address of a Dask scheduler"):
            DaskConnection(where, lambda _: None)


def test_the_library_for_slurm_does_not_change_how_signals_end_plait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dask_jobqueue.py").write_text(
        "import signal\nsignal.signal(signal.SIGINT, lambda *_: None)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    handler = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(1) as thread, pytest.raises(RequestError, match="from the main thread"):
        thread.submit(DaskConnection("slurm", lambda _: None).load).result()
    DaskConnection("slurm", lambda _: None).load()
    assert sys.modules.pop("dask_jobqueue").signal is signal
    assert signal.getsignal(signal.SIGINT) == handler


def test_no_library_for_slurm_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask_jobqueue", None)
    with pytest.raises(RequestError, match="pip install dask-jobqueue"):
        ClusterExecutor("slurm").__enter__()


def test_no_scheduler_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.study.executors.cluster.connection.CONNECT_S", 0.5)
    with pytest.raises(MachineError, match="check that the scheduler runs"):
        ClusterExecutor("tcp://127.0.0.1:9", insecure=True).__enter__()


def test_a_server_that_is_no_scheduler_is_reported_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plait.study.executors.cluster.connection.CONNECT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        where = f"tcp://127.0.0.1:{silent_server.getsockname()[1]}"
        with pytest.raises(MachineError, match="8787 is that of its dashboard"):
            ClusterExecutor(where, insecure=True).__enter__()


def test_an_engine_without_files_is_pickled() -> None:
    assert recipe_of(FakeEngine()).files == ()
