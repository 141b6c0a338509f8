"""What an engine is: something that executes one plan and leaves the agent's files behind.

The plan is all that goes in; the job folder is all that comes out. `virtual` is the one there is today; a new
engine (host namespaces, real hosts) is one more module with the same three methods and passes the same tests.
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
    """What decides a trial's outcome beside its plan."""

    engine: str
    kernel: str
    """Identity of the kernel: a hash of its source, patches and configuration."""
    kernel_version: str
    agent_sha256: str


@dataclass(frozen=True)
class Job:
    """One trial to execute: the plan, its input files by name, and the folder to work in (empty, writable)."""

    plan: Plan
    inputs: Mapping[str, Path]
    folder: Path
    stop: threading.Event = field(default_factory=threading.Event)
    """Set by the study when the user interrupts: the engine ends the trial at once and raises Interrupted."""
    progress: Callable[[int], None] = lambda _virtual_us: None
    """Called now and then with the trial's virtual time in us."""
    prompt: Callable[[PauseAt, PromptedGuest], None] | None = None
    """Called where the plan has a pause; the trial goes on when it returns."""


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """The trial was ended because the study is being stopped."""


class Engine(Protocol):
    """Executes plans."""

    emulates_links: bool
    """Whether the links of a plan are its own making, and can be measured against what they are meant to be."""

    def identity(self) -> EngineIdentity:
        """Returns what decides outcomes beside the plan (MachineError when this machine cannot run trials)."""

    def inventory(self, settings: Iterable[Setting] = ()) -> Inventory | None:
        """Returns what its kernel has, and which of `settings` (path below /proc/sys, value) it refuses.

        None: nobody can tell. Raises MachineError when the kernel could not be asked.
        """

    def execute(self, job: Job) -> None:
        """Runs one trial to its end and leaves `data/*.arrow`, `status.json` and `console.log` in its folder.

        Raises TrialError with what failed and where, Interrupted when the job's `stop` is set.
        """
