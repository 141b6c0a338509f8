"""Makes the engine that the user selects by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.uml.containment import DEFAULT_POLICY
from plait.engine.uml.trial import VirtualEngine
from plait.engine.uml.watch import TrialLimits
from plait.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.engine.engine import Engine
    from plait.engine.uml.containment import Policy
    from plait.kernel import Kernel

ENGINES = ("virtual",)


def make_engine(
    name: str = "virtual",
    kernel: str | None = None,
    *,
    trial_timeout_s: float = 3600.0,
    policy: Policy = DEFAULT_POLICY,
    warn: Callable[[str], None] = lambda _: None,
    build: Callable[[], Kernel] = kernels.ensure,
) -> Engine:
    """Return the engine called `name`.

    `kernel` names a built kernel; without it, `build` returns the default one. plait calls `warn` once if layers of
    containment are missing. Raises RequestError for an unknown engine, MachineError if the engine cannot run here.
    """
    if name not in ENGINES:
        raise RequestError(f"--engine {name}: unknown engine; write one of: {', '.join(ENGINES)}")
    chosen = kernels.find(kernel) if kernel else build()
    return VirtualEngine(chosen, AGENT, TrialLimits(total_s=trial_timeout_s), policy=policy, warn=warn)
