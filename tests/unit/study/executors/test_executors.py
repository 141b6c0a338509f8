"""Executors: threads and a pool of processes give the same study, also if workers fail."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest

import plait
from fake_engine import FakeEngine
from plait.errors import DataError, MachineError, RequestError, TrialError
from plait.files import Folder
from plait.results.read import read_study
from plait.seeds import trial_seed
from plait.study.executors import choice
from plait.study.executors import shipment as shipping
from plait.study.executors.batches import BATCH_S, MOST_TRIALS, Batches
from plait.study.executors.futures import FuturesExecutor
from plait.study.executors.local import LocalExecutor
from plait.study.executors.packed_folder import pack, unpack
from plait.study.executors.task import TrialResult
from plait.study.executors.worker import keep, path_of
from plait.study.perform import Options, perform
from plait.study.progress import silent
from plait.study.study import TrialKey
from result_folders import fresh_cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plait.engine.engine import Job
    from plait.results.read import StudyData
    from plait.study.executors.executor import TrialExecutor


@contextlib.contextmanager
def default_interrupt() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, also if the caller of the tests ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


KINDS = ("threads", "processes")


@contextlib.contextmanager
def executor_of(kind: str) -> Iterator[TrialExecutor]:
    if kind == "threads":
        yield LocalExecutor(2)
    else:
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            yield FuturesExecutor(pool)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fresh_cache(monkeypatch, tmp_path / "cache")
    return tmp_path / "cache"


def run(
    tmp_path: Path, executor: TrialExecutor, engine: FakeEngine, name: str = "out", *, fresh: bool = True
) -> StudyData:
    """Run four repeats of both cases, without drawing a report."""
    folder, _ = perform(
        plait.load("two-paths"),
        "two-paths",
        lambda _: engine,
        Options(repeat=4, fresh=fresh),
        folder=tmp_path / name,
        watch=silent,
        notify=lambda _: None,
        executor=executor,
    )
    return read_study(folder)


def failures(study: StudyData) -> dict[str, dict[int, str]]:
    return {case.name: {trial.index: trial.error for trial in case.failed} for case in study.cases}


def fail_some(job: Job) -> None:
    if len(job.plan.flows) == 1 and len(job.plan.flows[0].paths) > 1 and job.plan.seed % 2:
        raise TrialError("the guest's kernel panicked: not syncing")


@pytest.mark.parametrize("kind", KINDS)
def test_every_executor_gives_the_same_study(kind: str, cache: Path, tmp_path: Path) -> None:
    expected = run(tmp_path, LocalExecutor(1), FakeEngine(fail_some), "expected")
    with executor_of(kind) as executor:
        study = run(tmp_path, executor, FakeEngine(fail_some))
    assert study.digest == expected.digest
    assert failures(study) == failures(expected)
    assert any(failures(study).values())
    assert [case.rows for case in study.cases] == [case.rows for case in expected.cases]
    assert (tmp_path / "out/study.json").read_bytes() == (tmp_path / "expected/study.json").read_bytes()
    for trial in (tmp_path / "expected" / "trials").glob("*/*"):
        copy = tmp_path / "out" / trial.relative_to(tmp_path / "expected")
        assert Folder(copy).files() == Folder(trial).files()
        assert (copy / "plan.json").read_bytes() == (trial / "plan.json").read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_finished_trials_come_from_the_store(kind: str, cache: Path, tmp_path: Path) -> None:
    run(tmp_path, LocalExecutor(1), FakeEngine(), "first")
    with executor_of(kind) as executor:
        study = run(tmp_path, executor, Refusing(), fresh=False)
    assert study.digest == read_study(tmp_path / "first").digest


class Direct(Executor):
    """An executor of another library, which says nothing about its workers and keeps the caller waiting."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor_of_python_runs_a_study(cache: Path, tmp_path: Path) -> None:
    expected = run(tmp_path, LocalExecutor(1), FakeEngine(), "expected")
    executor = choice.executor_of(Direct())
    assert executor is not None
    study = run(tmp_path, executor, FakeEngine())
    assert study.digest == expected.digest
    assert executor.title == "Direct"


class Refusing(FakeEngine):
    """An engine that runs nothing."""

    def execute(self, _: Job) -> None:
        raise AssertionError("all trials are in the store")


class Differing(FakeEngine):
    """An engine that gives other data in another process."""

    def __init__(self) -> None:
        super().__init__()
        self.home = os.getpid()

    def execute(self, job: Job) -> None:
        plan = job.plan
        if os.getpid() != self.home:
            plan = plan.model_copy(update={"seed": plan.seed + 1})
        super().execute(replace(job, plan=plan))


def test_a_worker_whose_sentinel_differs_runs_nothing(cache: Path, tmp_path: Path) -> None:
    with (
        executor_of("processes") as executor,
        pytest.raises(MachineError, match="the same trial gave other data"),
    ):
        run(tmp_path, executor, Differing())
    assert not list((tmp_path / "out").glob("trials/*/*"))


class Deadly(FakeEngine):
    """An engine that kills its worker at one trial."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.seed = seed
        self.home = os.getpid()

    def execute(self, job: Job) -> None:
        if job.plan.seed == self.seed and len(job.plan.flows[0].paths) > 1 and os.getpid() != self.home:
            os._exit(1)
        super().execute(job)


def test_a_broken_pool_keeps_finished_trials_and_names_the_remedy(cache: Path, tmp_path: Path) -> None:
    with (
        executor_of("processes") as executor,
        pytest.raises(MachineError, match="run again with a new executor"),
    ):
        run(tmp_path, executor, Deadly(trial_seed(1, 3)))
    assert json.loads((tmp_path / "out/study.json").read_text())["repeat"] == 4


class Unpicklable(FakeEngine):
    def __getstate__(self) -> dict[str, object]:
        raise TypeError("cannot pickle a socket")


def test_an_engine_of_this_process_alone_is_refused(cache: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(RequestError, match="cannot pickle a socket"):
        run(tmp_path, FuturesExecutor(pool), Unpicklable())


def test_an_engine_in_real_time_is_refused(cache: Path, tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.repeatable = False
    with ThreadPoolExecutor(1) as pool, pytest.raises(RequestError, match="run the study with --jobs"):
        run(tmp_path, FuturesExecutor(pool), engine)


def test_a_worker_of_another_version_or_machine_is_refused_with_both() -> None:
    here = ("0.1.0", "x86_64")
    assert shipping.difference(here, here) is None
    differs = shipping.difference(here, ("0.2.0", "x86_64"))
    assert differs == "it has plait 0.2.0, and this is plait 0.1.0"
    differs = shipping.difference(here, ("0.1.0", "aarch64"))
    assert "type aarch64, and the kernel is for x86_64" in str(differs)


def test_a_file_that_was_damaged_on_its_way_is_not_kept(cache: Path, tmp_path: Path) -> None:
    path = tmp_path / "kernel"
    path.write_bytes(b"kernel")
    file = shipping.shipped_file(path)
    with pytest.raises(ValueError, match="damaged on the way"):
        keep(file, b"kernal")
    keep(file, b"kernel")
    path.unlink()
    kept = path_of(file)
    assert kept is not None
    assert kept.read_bytes() == b"kernel"
    kept.write_bytes(b"kernal")
    assert path_of(file) is None


def test_a_trial_whose_guest_the_same_signal_ends_has_not_failed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm sends SIGTERM to plait and to its guests at once."""

    def terminate(job: Job) -> None:
        if len(job.plan.flows[0].paths) > 1:
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C and SIGTERM do in `plait run`
            raise TrialError("the guest ended without a report (exit code 143)")

    monkeypatch.setattr("plait.study.executors.execution._SIGNAL_S", 60)
    with default_interrupt():
        study = run(tmp_path, LocalExecutor(1), FakeEngine(terminate))
    assert [len(case.failed) for case in study.cases] == [0, 0]
    assert sum(len(case.rows) for case in study.cases) < 8


def test_a_parcel_comes_back_byte_for_byte_and_leaves_no_folder(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "logs").mkdir(parents=True)
    (source / "plan.json").write_bytes(b"{}" * 1000)
    (source / "logs" / "console.log").write_bytes(b"")
    target = tmp_path / "target"
    target.mkdir()
    unpack(pack(source), target)
    assert (target / "plan.json").read_bytes() == b"{}" * 1000
    assert (target / "logs" / "console.log").read_bytes() == b""


def test_a_trial_keeps_the_end_of_a_long_log_as_text_for_a_terminal(cache: Path, tmp_path: Path) -> None:
    def log(job: Job) -> None:
        lines = "".join(f"[ {number:8}.000000] a message of the kernel\r\n" for number in range(40_000))
        (job.folder / "console.log").write_bytes(lines.encode() + b"\x1b[31m\xff\n")

    run(tmp_path, LocalExecutor(1), FakeEngine(log))
    kept = next((tmp_path / "out" / "trials").glob("*/000")) / "logs" / "console.log"
    lines = kept.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "[plait: earlier lines are left out]"
    assert lines[1].endswith("] a message of the kernel")
    assert lines[-1].startswith("\\x1b[31m")
    assert 1_000_000 < kept.stat().st_size <= 1 << 20


def test_a_hostile_parcel_is_refused(tmp_path: Path) -> None:
    import io
    import zipfile

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("../escaped", b"x")
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(OSError, match="does not name a file"):
        unpack(content.getvalue(), target)
    with pytest.raises(DataError, match="damaged"):
        unpack(b"no archive", target)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_short_trials_travel_in_batches_and_long_ones_alone() -> None:
    def result(wall_s: float) -> TrialResult:
        return TrialResult(TrialKey("a", 0), "", None, wall_s, None, None)

    short, long, tiny = Batches(), Batches(), Batches()
    assert short.size == 1
    for _ in range(50):
        short.learn(result(0.2))
        long.learn(result(10 * BATCH_S))
        tiny.learn(result(0.0))
    assert (short.size, long.size, tiny.size) == (round(BATCH_S / 0.2), 1, MOST_TRIALS)
