"""Runs a study: every case with every seed, each trial at most once, into a result folder.

    OUT/study.json            written first, so that an interrupted study can be reported on and continued
    OUT/trials/CASE/NNN/      appears by rename when its trial has ended, with or without success
    OUT/.work-*/              where guests run and trials are put together; removed even after kill -9

Finished trials also go to the store, and come from it when the same trial is asked for again. The report is not
made here (see plait.report).
"""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.dataset.provenance import Provenance
from plait.dataset.trial import TRIALS, trial_folder, trial_numbers
from plait.engine.engine import Engine, EngineIdentity, Interrupted, Job
from plait.engine.workspace import Workspace
from plait.errors import DataError, Ended, MachineError, RequestError, TrialError
from plait.files import Folder, UnfitError, json_of
from plait.limits import remedy
from plait.plan.identity import plan_bytes, trial_identity
from plait.plan.model.applications import Transfer
from plait.plan.model.qdiscs import PlaitTrace
from plait.scenario.vary.cases import Case, trial_seed
from plait.study.pauses import Halt, Halts
from plait.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from plait.plan.model.plan import Plan
    from plait.study.store import Store


@dataclass(frozen=True)
class TrialKey:
    """Which trial: the name of its case, and its number within the case (from 0)."""

    case: str
    index: int

    def folder(self, out: Path) -> Path:
        """Returns the trial's folder in the result folder `out`."""
        return trial_folder(out, self.case, self.index).path


@dataclass(frozen=True)
class TrialOutcome:
    """How one trial ended."""

    key: TrialKey
    error: str | None
    """What failed; None for a good trial."""
    reused: bool
    """It came from the store."""
    wall_s: float
    virtual_s: float | None
    """Virtual time that passed in it now; None when none did (reused) or nobody knows (failed)."""


class Observer(Protocol):
    """Is told what happens while a study runs, from any thread."""

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """A running trial has come so far."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        """A trial ended, was found in the store, or failed."""


@dataclass(frozen=True)
class PlannedStudy:
    """Everything that a study is: what to run, and where to put it."""

    name: str
    cases: list[Case]
    seed: int
    repeat: int
    resolve: Callable[[Case, int], Plan]
    """Gives the plan of a case for a trial's seed."""
    inputs: dict[str, Path] = field(default_factory=dict)
    """Files that plans transfer, by their name in the plan."""
    until: float | None = None
    """Half of every 95 % interval is to be at most this share of its mean; `repeat` is then the most."""
    start: int = 0
    """The first repeat to run; those before it are there already."""
    paused: bool = False
    """Its trials are halted for a prompt, one after the other."""

    @property
    def total(self) -> int:
        """Returns the number of trials."""
        return len(self.cases) * (self.repeat - self.start)

    def keys(self) -> Iterator[tuple[Case, TrialKey]]:
        """Yields every trial, repeat by repeat, so that an early end leaves the cases balanced."""
        for index in range(self.start, self.repeat):
            for case in self.cases:
                yield case, TrialKey(case.name, index)


@dataclass(frozen=True)
class StudyOutcome:
    """How a study ended. `interrupted`: the user stopped it; what had finished is kept."""

    total: int
    finished: list[TrialOutcome]
    interrupted: bool
    signal: signal.Signals = signal.SIGINT
    """What interrupted it."""

    @property
    def failed(self) -> list[TrialOutcome]:
        """Returns the trials that failed."""
        return [outcome for outcome in self.finished if outcome.error is not None]

    @property
    def reused(self) -> int:
        """Returns how many trials came from the store."""
        return sum(outcome.reused for outcome in self.finished)


class Runner:
    """Runs studies on one engine, with one store."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        staging: Path,
        *,
        jobs: int,
        fresh: bool = False,
        ask: Callable[[Halt], bool] | None = None,
    ) -> None:
        """`staging` is a folder on the store's file system; `jobs` trials run at once; `fresh` ignores the store.

        `ask` gives a prompt in a trial that is halted, and returns whether to halt again.
        """
        self._engine = engine
        self._store = store
        self._staging = staging
        self._jobs = jobs
        self._fresh = fresh
        self._ask = ask
        self._stop = threading.Event()

    def run(
        self, study: PlannedStudy, out: Path, description: dict[str, object], observer: Observer
    ) -> StudyOutcome:
        """Runs `study` into `out`, with `description` as its study.json.

        Raises MachineError when results cannot be written, RequestError when `out` holds something else.
        """
        keys = list(study.keys())
        everything = replace(study, start=0)
        open_result_folder(out, description, {key for _, key in everything.keys()})  # noqa: SIM118 - no mapping
        identity = self._engine.identity()
        halts = Halts(self._ask if study.paused else None, len(keys))
        finished: list[TrialOutcome] = []
        futures: list[Future[TrialOutcome]] = []
        interrupted: signal.Signals | None = None
        with (
            Workspace(out, ".work-") as work,
            Workspace(self._staging, ".stage-") as stage,
            ThreadPoolExecutor(self._jobs) as pool,
        ):
            trial = _TrialRunner(
                self._engine, self._store, identity, study, out, work, stage, self._stop, observer, halts
            )
            try:
                while keys and halts.wanted:  # in this thread, which has the terminal
                    finished.append(trial.run(*keys[0], fresh=self._fresh))
                    del keys[0]
                futures = [pool.submit(trial.run, case, key, fresh=self._fresh) for case, key in keys]
                for future in as_completed(futures):
                    future.result()
            except (KeyboardInterrupt, Ended) as end:
                interrupted = end.signal if isinstance(end, Ended) else signal.SIGINT
                self._stop_all(futures)
            except OSError as error:
                self._stop_all(futures)
                raise MachineError(_cannot_write(out, error)) from error
            except BaseException:
                self._stop_all(futures)
                raise
        ended = [future for future in futures if not future.cancelled()]
        finished += [future.result() for future in ended if future.exception() is None]
        return StudyOutcome(halts.total, finished, interrupted is not None, interrupted or signal.SIGINT)

    def _stop_all(self, futures: list[Future[TrialOutcome]]) -> None:
        """Ends running trials, and drops waiting ones."""
        self._stop.set()
        for future in futures:
            future.cancel()


@dataclass(frozen=True)
class _TrialRunner:
    """Runs one trial after another; its `run` is called by the pool's threads."""

    engine: Engine
    store: Store
    identity: EngineIdentity
    study: PlannedStudy
    out: Path
    work: Workspace
    stage: Workspace
    stop: threading.Event
    observer: Observer
    halts: Halts

    def run(self, case: Case, key: TrialKey, *, fresh: bool) -> TrialOutcome:
        """Runs or fetches one trial and puts it into the result folder (Interrupted, OSError)."""
        if self.stop.is_set():
            raise Interrupted
        started = time.monotonic()
        seed = trial_seed(self.study.seed, key.index)
        plan = self.halts.of(self.study.resolve(case, seed))
        identity = trial_identity(plan, self.identity.kernel, self.identity.agent_sha256)
        result = self.work.job()
        disturbed = bool(plan.pause)  # by what is done at the prompt: it is nobody else's trial
        if not fresh and not disturbed and self.store.fetch(identity, result):
            _publish(result, key, self.out)
            outcome = TrialOutcome(key, None, True, time.monotonic() - started, None)
        else:
            provenance = self._execute(plan, key, identity, result)
            if provenance.error is None and not disturbed:
                self.store.put(identity, result, self.stage.job())
            _publish(result, key, self.out)
            wall_s = time.monotonic() - started
            outcome = TrialOutcome(key, provenance.error, False, wall_s, provenance.virtual_s)
        self.observer.trial_ended(outcome)
        return outcome

    def _execute(self, plan: Plan, key: TrialKey, identity: str, result: Path) -> Provenance:
        """Executes the plan, fills `result`, and returns what its provenance.json says."""
        folder = self.work.job()
        started = time.monotonic()
        error: str | None = None
        digest: str | None = None
        try:
            self.engine.execute(
                Job(
                    plan,
                    self._inputs(plan),
                    folder,
                    self.stop,
                    lambda us: self.observer.trial_advanced(key, us),
                    self.halts.prompt(key.case, key.index, plan),
                )
            )
            digest = trial_digest(convert(folder / "data", result))
        except (TrialError, DataError) as failure:
            error = str(failure)
        wall_s = time.monotonic() - started
        kept = Folder(result)
        kept.write("plan.json", plan_bytes(plan))
        for unfit in _keep_files(Folder(folder), kept):
            error = error or f"the guest left what plait does not keep: {unfit.filename}: {unfit.strerror}"
        provenance = Provenance(
            status="ok" if error is None else "failed",
            error=error,
            digest=digest,
            seed=plan.seed,
            identity=identity,
            engine=self.identity.engine,
            kernel_identity=self.identity.kernel,
            kernel_version=self.identity.kernel_version,
            agent_sha256=self.identity.agent_sha256,
            plait_version=__version__,
            wall_s=round(wall_s, 4),
            virtual_s=_virtual_s(Folder(folder)),
        )
        kept.write("provenance.json", (provenance.model_dump_json(indent=1) + "\n").encode())
        shutil.rmtree(folder)
        return provenance

    def _inputs(self, plan: Plan) -> dict[str, Path]:
        transfers = [flow.application for flow in plan.flows if isinstance(flow.application, Transfer)]
        names = [transfer.file.name for transfer in transfers if transfer.file is not None]
        options = [qdisc.options for qdisc in plan.network.qdiscs]
        names += [option.file.name for option in options if isinstance(option, PlaitTrace)]
        names += [file.input for one in plan.programs for file in one.files if file.input is not None]
        return {name: self.study.inputs[name] for name in names}


def open_result_folder(out: Path, description: dict[str, object], keep: set[TrialKey]) -> None:
    """Makes `out` the result folder of the study that `description` (study.json) tells of.

    Trials that are not among `keep` are left-overs of an earlier form of the same study, and removed; what is no trial
    stays. Raises RequestError when `out` holds anything that is not a study of the same name, or links, MachineError
    when it cannot be written.
    """
    folder = Folder(out)
    try:
        _refuse_foreign(out, str(description["name"]), description["schema"])
        out.mkdir(parents=True, exist_ok=True)
        for case in (folder / TRIALS).folders():
            there = folder / TRIALS / case
            for index in trial_numbers(out, case):
                if TrialKey(case, index) not in keep:
                    there.remove(f"{index:03d}")
            if not there.names():
                (folder / TRIALS).remove(case)
        text = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
        folder.write("study.json", text.encode())
    except (UnfitError, DataError) as error:
        raise RequestError(f"writing results to {out}: {_unfit(error)}; give another --out") from error
    except OSError as error:
        raise MachineError(_cannot_write(out, error)) from error


def _refuse_foreign(out: Path, name: str, schema: object) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise RequestError(f"writing results to {out}: it is a file; give another --out")
    if Folder(out).has("study.json"):
        try:
            found = json_of(Folder(out).read("study.json"))
            previous, written = found["name"], found["schema"]
        except (ValueError, KeyError, TypeError) as error:
            raise RequestError(
                f"writing results to {out}: its study.json is damaged; give another --out"
            ) from error
        if written != schema:
            raise RequestError(
                f"writing results to {out}: another version of plait left its results there (schema {written}, here "
                f"{schema}); give another --out"
            )
        if "merged" in found:
            raise RequestError(
                f"writing results to {out}: it holds studies that were merged; give another --out, and merge again"
            )
        if previous != name:
            raise RequestError(
                f"writing results to {out}: it holds the study `{previous}`, not `{name}`; give another --out"
            )
    elif any(not name.startswith(".work-") for name in Folder(out).names()):
        raise RequestError(
            f"writing results to {out}: it holds files that are not a study; give another --out"
        )


def _publish(result: Path, key: TrialKey, out: Path) -> None:
    """Moves a finished trial into the result folder, in one step (OSError)."""
    *above, name = trial_folder(out, key.case, key.index).inside
    target = Folder(out, tuple(above))
    if target.has(name):
        target.give(name, result.with_suffix(".old"))  # the workspace removes it
    target.take(result, name)


def _keep_files(job: Folder, result: Folder) -> list[UnfitError]:
    """Keeps what a trial leaves beside its tables, and returns what of it is not fit to be kept (OSError)."""
    unfit = []
    for name in ("console.log", "status.json", "pcap", "programs"):
        try:
            if not job.has(name):
                continue
            if name.endswith((".log", ".json")):
                job.copy_file(name, result / "logs")
            else:
                (job / name).files()  # refuses links, devices and too much
                result.take(job.path / name, name)
        except UnfitError as error:
            unfit.append(error)
    return unfit


def _virtual_s(job: Folder) -> float | None:
    try:
        return float(json_of(job.read("status.json"))["virtual_us"]) / 1e6
    except (OSError, ValueError, LookupError, TypeError, OverflowError):
        return None  # the trial ended before the guest could say


def _unfit(error: UnfitError | DataError) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, UnfitError) else str(error)


def _cannot_write(out: Path, error: OSError) -> str:
    what = remedy(error, "check the folder's permissions")
    where = error.filename or out
    return f"writing results to {where}: {error.strerror}; {what} and run again: finished trials are kept"
