"""Studies on the fake engine run each trial at most once, keep failures apart, and lose nothing by interrupts."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import shutil
import signal
import stat
import threading
import time
from typing import TYPE_CHECKING

import pytest

from fake_engine import FakeEngine, failing
from fake_plans import FakeFlow, fake_plan
from plait.dataset.finished import INDEX
from plait.dataset.provenance import read_provenance
from plait.dataset.study_file import StudyFile
from plait.engine.engine import Interrupted, Job
from plait.errors import MachineError, RequestError, TrialError
from plait.files import Folder
from plait.plan.case_plan import CasePlan
from plait.scenario.vary.cases import Case
from plait.study.engines import StudyEngines
from plait.study.executors.local import LocalExecutor
from plait.study.runner import run_study
from plait.study.store import Store
from plait.study.study import PlannedStudy, StudyOutcome
from plait.study.trials import Trials

if TYPE_CHECKING:
    from pathlib import Path

    from plait.plan.model.plan import Plan
    from plait.study.study import Observer, TrialOutcome

ABOUT = StudyFile(name="test", command="", seed=1, repeat=3, plait_version="0", cases=())


class FakeCase(CasePlan):
    """A case whose plans are made without the scenario's machinery."""

    @property
    def engine(self) -> str:
        return "virtual"

    def plan(self, seed: int) -> Plan:
        return fake_plan(FakeFlow(transport=str(self.settings["transport"]), duration_us=300_000), seed=seed)


def study(repeat: int = 3, seed: int = 1) -> PlannedStudy:
    cases = [Case(f"transport={name}", {"transport": name}, None) for name in ("tcp", "mptcp")]
    return PlannedStudy(
        "test", [FakeCase(**vars(case), missing=(), packed=b"") for case in cases], seed, repeat
    )


def run(
    tmp_path: Path,
    engine: FakeEngine,
    *,
    out: str = "out",
    planned: PlannedStudy | None = None,
    observer: Observer | None = None,
    **options: bool,
) -> StudyOutcome:
    return run_study(
        planned or study(),
        tmp_path / out,
        ABOUT,
        observer or (lambda _: None),
        engines=StudyEngines.named({"virtual": engine}),
        store=Store(tmp_path / "store"),
        executor=LocalExecutor(2),
        **options,
    )


def trials(tmp_path: Path, out: str = "out") -> list[str]:
    return sorted(path.relative_to(tmp_path / out).as_posix() for path in (tmp_path / out).glob("trials/*/*"))


def test_every_trial_runs_once_and_leaves_its_folder(tmp_path: Path) -> None:
    engine = FakeEngine()
    outcome = run(tmp_path, engine)
    assert engine.calls == 6
    assert (outcome.total, len(outcome.finished), outcome.failed, outcome.interrupted) == (6, 6, [], False)
    assert trials(tmp_path) == [f"trials/transport={t}/{n:03d}" for t in ("mptcp", "tcp") for n in range(3)]
    files = {path.name for path in (tmp_path / "out/trials/transport=tcp/000").iterdir()}
    assert {"plan.json", "provenance.json", "flows.parquet", "subflows.parquet", "links.parquet"} <= files
    assert [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")] == []


def test_a_second_run_runs_nothing_and_gives_the_same_files(tmp_path: Path) -> None:
    run(tmp_path, FakeEngine())
    engine = FakeEngine()
    outcome = run(tmp_path, engine, out="again")
    assert (engine.calls, outcome.reused) == (0, 6)
    for path in (tmp_path / "out" / "trials").rglob("*"):
        if path.is_file():
            copy = tmp_path / "again" / path.relative_to(tmp_path / "out")
            assert copy.read_bytes() == path.read_bytes()


def test_a_study_continues_without_its_store_and_opens_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, FakeEngine())
    shutil.rmtree(tmp_path / "store")
    engine = FakeEngine()
    opened = []
    read = Folder.read
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "read", lambda *asked: (opened.append(asked), read(*asked))[1])
        outcome = run(tmp_path, engine)
    assert (engine.calls, outcome.reused, len(trials(tmp_path))) == (0, 6, 6)
    assert not [name for folder, name, *_ in opened if "trials" in folder.inside]


@pytest.mark.parametrize("fault", ["edited", "removed", "replaced", "no index", "torn index"])
def test_a_trial_that_is_not_as_it_was_is_replaced(fault: str, tmp_path: Path) -> None:
    run(tmp_path, FakeEngine())
    shutil.rmtree(tmp_path / "store")
    trial, index = tmp_path / "out/trials/transport=tcp/001", tmp_path / "out" / INDEX
    before = (trial / "flows.parquet").read_bytes()
    match fault:
        case "edited":
            (trial / "flows.parquet").write_bytes(bytes(len(before)))
        case "removed":
            shutil.rmtree(trial)
        case "replaced":
            shutil.rmtree(trial)
            shutil.copytree(trial.with_name("002"), trial)
        case "no index":
            index.unlink()
        case _:
            index.write_bytes(index.read_bytes()[:-10])
    engine = FakeEngine()
    run(tmp_path, engine)
    assert engine.calls == (6 if fault == "no index" else 1)
    assert (trial / "flows.parquet").read_bytes() == before
    assert run(tmp_path, Refused()).reused == 6


class Refused(FakeEngine):
    def execute(self, _: Job) -> None:
        raise AssertionError("no trial is missing")


def test_the_index_stays_short_whatever_runs_again(tmp_path: Path) -> None:
    run(tmp_path, FakeEngine())
    index = tmp_path / "out" / INDEX
    index.write_bytes(index.read_bytes() * 500)
    run(tmp_path, FakeEngine())
    assert len(index.read_bytes().splitlines()) <= 7


def test_fresh_runs_all_trials_again(tmp_path: Path) -> None:
    run(tmp_path, FakeEngine())
    engine = FakeEngine()
    run(tmp_path, engine, fresh=True)
    assert engine.calls == 6


def test_another_seed_shares_no_trial(tmp_path: Path) -> None:
    run(tmp_path, FakeEngine())
    engine = FakeEngine()
    run(tmp_path, engine, planned=study(seed=2))
    assert engine.calls == 6


def test_more_repeats_run_only_the_new_ones(tmp_path: Path) -> None:
    run(tmp_path, FakeEngine())
    engine = FakeEngine()
    run(tmp_path, engine, planned=study(repeat=5))
    assert engine.calls == 4


def test_fewer_repeats_leave_no_old_trials_in_the_folder(tmp_path: Path) -> None:
    run(tmp_path, FakeEngine())
    run(tmp_path, FakeEngine(), planned=study(repeat=1))
    assert trials(tmp_path) == ["trials/transport=mptcp/000", "trials/transport=tcp/000"]


def test_a_failed_trial_is_kept_with_its_reason_and_runs_again(tmp_path: Path) -> None:
    def fault(job: Job) -> None:
        if job.plan.flows[0].transport == "mptcp":
            raise TrialError("the guest's kernel panicked: not syncing")

    outcome = run(tmp_path, FakeEngine(fault))
    assert len(outcome.failed) == 3
    kept = read_provenance(tmp_path / "out/trials/transport=mptcp/001")
    assert (kept.status, kept.error) == ("failed", "the guest's kernel panicked: not syncing")
    engine = FakeEngine()
    assert run(tmp_path, engine).failed == []
    assert engine.calls == 3


def test_data_cut_short_fail_the_trial_alone(tmp_path: Path) -> None:
    engine = FakeEngine()
    execute = engine.execute

    def cut(job: Job) -> None:
        execute(job)
        path = job.folder / "data" / "links.arrow"
        if job.plan.flows[0].transport == "tcp":
            path.write_bytes(path.read_bytes()[:-9])

    engine.execute = cut
    outcome = run(tmp_path, engine)
    assert len(outcome.failed) == 3
    assert all("links.arrow" in str(failure.error) for failure in outcome.failed)


def test_ctrl_c_keeps_what_finished_and_a_rerun_goes_on(tmp_path: Path) -> None:
    count, ends = itertools.count(1), itertools.count(1)
    two_ended = threading.Event()

    def count_end(_: TrialOutcome) -> None:
        if next(ends) == 2:
            two_ended.set()

    def fault(job: Job) -> None:
        number = next(count)
        if number > 2:
            if number == 3:
                assert two_ended.wait(timeout=300)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            assert job.stop.wait(timeout=300)
            raise Interrupted

    outcome = run(tmp_path, FakeEngine(fault), observer=count_end)
    assert outcome.interrupted
    assert len(outcome.finished) == 2 == len(trials(tmp_path))
    engine = FakeEngine()
    assert len(run(tmp_path, engine).finished) == 6
    assert engine.calls == 4


@pytest.mark.parametrize("locks_folders", [True, False], ids=["local", "nfs"])
def test_a_folder_into_which_another_plait_runs_trials_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, locks_folders: bool
) -> None:
    """Its study.json would have one seed, and its trials another. NFS locks no folder: nfs(5), "Locking"."""
    refused: list[str] = []
    lock = fcntl.flock

    def flock_of_nfs(descriptor: int, operation: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        lock(descriptor, operation)

    if not locks_folders:
        monkeypatch.setattr(fcntl, "flock", flock_of_nfs)

    def fault(_: Job) -> None:
        with pytest.raises(RequestError) as caught:
            run(tmp_path, FakeEngine(), planned=study(seed=2))
        refused.append(str(caught.value))

    run(tmp_path, FakeEngine(fault))
    assert "another plait runs trials into it; wait for its end, or give another --out" in refused[0]
    before = trials(tmp_path)
    run(tmp_path, FakeEngine(), planned=study(seed=2))
    assert trials(tmp_path) == before, "the folder is free again"


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("x")
    with pytest.raises(RequestError, match="not a study"):
        run(tmp_path, FakeEngine())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.tex"]


def test_a_folder_of_another_study_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "study.json").write_text(json.dumps({"schema": 1, "name": "other"}))
    with pytest.raises(RequestError, match="holds the study `other`, not `test`"):
        run(tmp_path, FakeEngine())


def test_results_of_another_version_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "study.json").write_text(json.dumps({"schema": 2, "name": "test"}))
    with pytest.raises(RequestError, match=r"another version .* \(schema 2, here 1\); give another --out"):
        run(tmp_path, FakeEngine())
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["study.json"]


def test_a_full_disk_is_reported_once_with_its_remedy(tmp_path: Path) -> None:
    def fault(job: Job) -> None:
        raise OSError(28, "No space left on device", str(job.folder))

    with pytest.raises(MachineError, match=r"No space left on device; free some space and run again"):
        run(tmp_path, FakeEngine(fault))


def test_a_full_cache_loses_no_finished_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result folder may be on another disk, which has room."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "the cache")

    monkeypatch.setattr(Store, "keep", full)
    ended: list[TrialOutcome] = []
    with pytest.raises(MachineError, match=r"the cache: No space left on device; free some space"):
        run(tmp_path, FakeEngine(), observer=ended.append)
    assert len(trials(tmp_path)) == len(ended) == 1
    monkeypatch.undo()
    engine = FakeEngine()
    assert run(tmp_path, engine).reused == 1
    assert engine.calls == 5


def test_a_lost_result_folder_leaves_the_finished_trial_to_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", "out")

    monkeypatch.setattr(Trials, "_publish", gone)
    with pytest.raises(
        MachineError, match="No such file or directory; leave the folder in its place and run again"
    ):
        run(tmp_path, FakeEngine())
    monkeypatch.undo()
    engine = FakeEngine()
    assert run(tmp_path, engine, out="again").reused == 1
    assert engine.calls == 5


def test_a_wall_clock_that_jumps_changes_no_trial_and_no_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, FakeEngine(), out="steady")
    moments = itertools.cycle([1.8e9, 3.0e8, 4.1e9])
    monkeypatch.setattr(time, "time", lambda: next(moments))
    monkeypatch.setattr(time, "time_ns", lambda: int(next(moments) * 1e9))
    jumping = run(tmp_path, FakeEngine(), out="jumping", fresh=True)
    assert all(0 <= trial.wall_s < 1e6 for trial in jumping.finished)
    for path in tmp_path.rglob("*"):  # files of 1979 to 2099
        os.utime(path, (moment := next(moments), moment))
    shutil.rmtree(tmp_path / "jumping" / "trials")
    engine = FakeEngine()
    assert len(run(tmp_path, engine, out="jumping").finished) == 6
    assert engine.calls == 0, "the store has them"
    digests = [
        [read_provenance(Folder(tmp_path / out / trial)).digest for trial in trials(tmp_path, out)]
        for out in ("steady", "jumping")
    ]
    assert digests[0] == digests[1]


def test_all_trials_may_fail(tmp_path: Path) -> None:
    outcome = run(tmp_path, FakeEngine(failing("no")))
    assert len(outcome.failed) == outcome.total == 6
