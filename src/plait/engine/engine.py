"""The interface of an engine: it executes one plan and writes the agent's files to the job folder.

The plan is the only input and the job folder is the only output. An engine is a package below `engine/`, with a line
in `factory`; it passes the tests in tests/engine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from plait.engine.interactive import PromptedGuest
from plait.engine.inventory import Inventory, Setting
from plait.engine.support import Unsupported
from plait.errors import TrialError
from plait.files import Folder
from plait.plan.identity import plan_bytes
from plait.plan.model.plan import PauseAt, Plan

Clock = Literal["virtual", "real"]
_POLL_S = 0.1
Fact = str | int | float | None


@dataclass(frozen=True)
class EngineIdentity:
    """The versions and options that determine the outcome of a trial, besides its plan."""

    engine: str
    kernel: str
    """Identity of the kernel: a hash of its source, patches and configuration."""
    kernel_version: str
    agent_sha256: str
    settings: tuple[str, ...] = ()
    """Further versions and options of the engine that determine the outcome, as texts."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The engine's part of a trial's identity (see `plait.plan.identity.trial_identity`)."""
        settings = self.settings if self.engine == "virtual" else (self.engine, *self.settings)
        return (self.kernel, self.agent_sha256, *settings)


@dataclass(frozen=True)
class Job:
    """One trial to execute: the plan, its input files by name, and an empty, writable folder to work in."""

    plan: Plan
    inputs: Mapping[str, Path]
    folder: Path
    stop: threading.Event = field(default_factory=threading.Event)
    """The study sets it when the user interrupts; the engine then ends the trial at once and raises Interrupted."""
    progress: Callable[[int], None] = lambda _virtual_us: None
    """The engine calls it from time to time with the trial's virtual time in us."""
    prompt: Callable[[PauseAt, PromptedGuest], None] | None = None
    """The engine calls it at each pause of the plan; the trial continues when it returns."""
    note: Callable[[str, Fact], None] = lambda _name, _value: None
    """The engine calls it with facts about the machine that ran the trial, for its provenance; no digest has them."""
    exclude: Callable[[str], None] = lambda _reason: None
    """The engine calls it with each reason why the trial, although complete, must not count in means."""


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """The engine ended the trial because the user stopped the study."""


def unless(stop: threading.Event) -> Callable[[], None]:
    """Return what waits a moment for a lock, and raises Interrupted if `stop` is set."""

    def wait() -> None:
        if stop.wait(_POLL_S):
            raise Interrupted

    return wait


@contextmanager
def preparing(job: Job) -> Iterator[None]:
    """Turn an error of the files that the block writes to the job folder into one of the trial (TrialError)."""
    try:
        yield
    except OSError as error:
        raise TrialError(f"preparing {job.folder}: {error.strerror}: {error.filename}") from error


def write_inputs(job: Job) -> None:
    """Write the plan and its input files to the job folder (OSError)."""
    Folder(job.folder).write("plan.json", plan_bytes(job.plan))
    (job.folder / "input").mkdir()
    for name, path in job.inputs.items():
        (Folder(job.folder) / "input").bring(path, name)


class Engine(Protocol):
    """Execute plans. The values and answers below are those of an engine in real time."""

    name: str
    """The name that the user selects it by."""
    repeatable: bool = False
    """Whether the same plan gives the same bytes; plait keeps trials in the store only then."""
    clock: Clock = "real"
    """The clock of the times in the tables: virtual time, or the clock of this machine or of real hosts."""
    max_jobs: int | None = 1
    """How many trials may run at once; None: any number. Other trials disturb a trial in real time."""

    def identity(self) -> EngineIdentity:
        """Return what determines outcomes besides the plan (MachineError if this machine cannot run trials)."""

    def inventory(self, settings: Iterable[Setting] = ()) -> Inventory | None:  # noqa: ARG002 - for engines that can
        """Return what the engine's kernel has, and which of `settings` (path below /proc/sys, value) it refuses.

        None: the engine cannot determine it. Raises MachineError if asking the kernel fails.
        """
        return None

    def unsupported(self, plan: Plan) -> list[Unsupported]:  # noqa: ARG002 - for engines that lack features
        """Return what in `plan` the engine cannot do."""
        return []

    def execute(self, job: Job) -> None:
        """Run one trial to its end, and write `data/*.arrow`, `status.json` and `console.log` to its folder.

        Raises TrialError with what failed and where, or Interrupted if the job's `stop` is set.
        """
