"""The records between a study and its executor; all of them can be pickled."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

from plait.engine.engine import EngineIdentity
from plait.plan.identity import plan_bytes
from plait.plan.model.plan import Plan
from plait.study.study import TrialKey

_FAST = 1
"""The zlib level."""


@dataclass(frozen=True)
class TrialTask:
    """One trial to carry out: everything that determines its outcome."""

    key: TrialKey
    identity: str
    """The identity of the trial: plan, kernel and agent."""
    engine: str
    """The name of the engine in the study."""
    origin: EngineIdentity
    """The identities of kernel and agent."""
    inputs: tuple[tuple[str, str], ...]
    """The input files: their names in the plan, and the SHA-256 of their content."""
    memory_mib: int
    """The memory of the guest."""
    packed: bytes
    """The plan, compressed."""
    halted: bool = False
    """Whether the trial halts for a prompt."""

    @property
    def plan(self) -> Plan:
        """The plan."""
        return Plan.model_validate_json(zlib.decompress(self.packed))


@dataclass(frozen=True)
class TrialResult:
    """How a trial ended, and what it left."""

    key: TrialKey
    identity: str
    error: str | None
    """The reason for the failure; None for a good trial."""
    wall_s: float
    virtual_s: float | None
    content: Path | bytes | None
    """The folder with the trial's files, or the packed folder. None: the trial left nothing, because its workers died.
    """


def pack_plan(plan: Plan) -> bytes:
    """Return the plan for `TrialTask.packed`."""
    return zlib.compress(plan_bytes(plan), _FAST)
