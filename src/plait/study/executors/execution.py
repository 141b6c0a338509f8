"""Execute one trial with an engine, and fill a folder with what it left. This happens on any machine."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.dataset.provenance import Provenance
from plait.dataset.trial import RUNNING_TRIAL, TrialName
from plait.engine.engine import Engine, Fact, Interrupted, Job
from plait.engine.interactive import PromptedGuest
from plait.engine.workspace import Workspace
from plait.errors import DataError, TrialError, printable
from plait.files import Folder, UnfitError, json_of
from plait.plan.identity import plan_bytes
from plait.plan.model.plan import PauseAt, Plan
from plait.study.engines import host_facts, machine_facts
from plait.study.executors.task import TrialResult, TrialTask
from plait.version import __version__

CONSOLE = "console.log"
_MOST_LOG_BYTES = 1 << 20
_SIGNAL_S = 0.2
"""How long a signal that ended a guest may take to reach plait: Slurm sends it to all processes of a job."""


def execute(
    engine: Engine,
    task: TrialTask,
    inputs: Mapping[str, Path],
    work: Workspace,
    *,
    stop: threading.Event,
    prompt: Callable[[PauseAt, PromptedGuest], None] | None = None,
) -> TrialResult:
    """Carry out `task` and return its result, whose content is a new folder in `work`.

    `inputs` are the paths of the input files by SHA-256. `stop` is set when the study ends early. `prompt` gets each
    pause. Raises Interrupted, OSError.
    """
    folder, result = work.job(), work.job()
    running = TrialName(case=task.key.case, number=task.key.index)
    Folder(folder).write(RUNNING_TRIAL, running.model_dump_json().encode())
    plan = task.plan
    files = {name: inputs[sha256] for name, sha256 in task.inputs}
    host: dict[str, Fact] = host_facts() if engine.clock == "real" else dict(machine_facts())
    exclusions: list[str] = []
    started = time.monotonic()
    error: str | None = None
    digest: str | None = None
    try:
        engine.execute(
            Job(plan, files, folder, stop, prompt=prompt, note=host.__setitem__, exclude=exclusions.append)
        )
        digest = trial_digest(convert(folder / "data", result))
    except (TrialError, DataError) as failure:
        if stop.wait(_SIGNAL_S):
            raise Interrupted from failure
        error = str(failure)
    wall_s = time.monotonic() - started
    kept = Folder(result)
    for unfit in _keep_files(Folder(folder), kept):
        error = error or f"plait discards {unfit.filename}, which the guest left: {unfit.strerror}"
    virtual_s = _virtual_s(Folder(folder))
    write_records(
        kept, task, plan,
        status="ok" if error is None else "failed", error=error,
        excluded="; ".join(exclusions) or None if error is None else None,
        digest=digest, wall_s=round(wall_s, 4), virtual_s=virtual_s, host=host,
    )  # fmt: skip
    shutil.rmtree(folder)
    return TrialResult(task.key, task.identity, error, wall_s, virtual_s, result)


def write_records(folder: Folder, task: TrialTask, plan: Plan, **facts: Any) -> None:
    """Write the plan and the provenance of a trial, which has these facts of its run. Raise OSError."""
    folder.write("plan.json", plan_bytes(plan))
    provenance = Provenance(
        seed=plan.seed,
        identity=task.identity,
        engine=task.origin.engine,
        kernel_identity=task.origin.kernel,
        kernel_version=task.origin.kernel_version,
        agent_sha256=task.origin.agent_sha256,
        plait_version=__version__,
        **facts,
    )
    folder.write("provenance.json", (provenance.model_dump_json(indent=1) + "\n").encode())


def _keep_files(job: Folder, result: Folder) -> list[UnfitError]:
    """Keep what a trial leaves beside its tables. Return an error for each file that plait discards. Raise OSError."""
    unfit = []
    for name in (CONSOLE, "status.json", "pcap", "programs"):
        try:
            if not job.has(name):
                continue
            if name == CONSOLE:
                _keep_log(job, result / "logs")
            elif name.endswith(".json"):
                job.copy_file(name, result / "logs")
            else:
                (job / name).files()  # raises UnfitError for links, devices and too much data
                result.take(job.path / name, name)
        except UnfitError as error:
            unfit.append(error)
    return unfit


def _keep_log(job: Folder, target: Folder) -> None:
    """Copy the end of the console's log as text that a terminal can show. Raise OSError."""
    end = job.tail(CONSOLE, _MOST_LOG_BYTES + 1)
    if len(end) > _MOST_LOG_BYTES:
        end = b"[plait: earlier lines are left out]\n" + end.partition(b"\n")[2]
    target.write(CONSOLE, printable(end.decode(errors="replace").replace("\r\n", "\n")).encode())


def _virtual_s(job: Folder) -> float | None:
    try:
        return float(json_of(job.read("status.json"))["virtual_us"]) / 1e6
    except (OSError, ValueError, LookupError, TypeError, OverflowError):
        return None  # the trial ended before the guest wrote its status
