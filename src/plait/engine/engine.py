"""The interface of an engine: it executes one plan and writes the agent's files to the job folder.

The plan is the only input and the job folder is the only output. `virtual` is the only engine today. A new engine
(host namespaces, real hosts) is one more module with the same three methods, and must pass the same tests.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from plait.engine.interactive import PromptedGuest
    from plait.engine.inventory import Inventory, Setting
    from plait.plan.model.plan import PauseAt, Plan


@dataclass(frozen=True)
class EngineIdentity:
    """What determines the outcome of a trial, besides its plan."""

    engine: str
    kernel: str
    """Identity of the kernel: a hash of its source, patches and configuration."""
    kernel_version: str
    agent_sha256: str


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


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """The engine ended the trial because the user stopped the study."""


class Engine(Protocol):
    """Execute plans."""

    emulates_links: bool
    """Whether the engine emulates the links, so that a calibration can compare them with their configured values."""

    def identity(self) -> EngineIdentity:
        """Return what determines outcomes besides the plan (MachineError if this machine cannot run trials)."""

    def inventory(self, settings: Iterable[Setting] = ()) -> Inventory | None:
        """Return what the engine's kernel has, and which of `settings` (path below /proc/sys, value) it refuses.

        None: the engine cannot determine it. Raises MachineError if asking the kernel fails.
        """

    def execute(self, job: Job) -> None:
        """Run one trial to its end, and write `data/*.arrow`, `status.json` and `console.log` to its folder.

        Raises TrialError with what failed and where, or Interrupted if the job's `stop` is set.
        """
