"""A fake engine answers every plan at once with plausible tables, or fails on request.

It serves tests of the pipeline (scheduling, store, faults). Only the kernel shows what a network does: tests of
that run on the virtual engine.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from fake_tables import fake_tables
from plait.engine.engine import EngineIdentity, Interrupted, Job
from plait.errors import TrialError
from result_folders import write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plait.engine.engine import Clock
    from plait.engine.inventory import Inventory, Setting
    from plait.engine.support import Unsupported
    from plait.plan.model.plan import Plan


class FakeEngine:
    """Execute plans without a kernel.

    `calls` counts them; `fault` may raise for a job before the engine answers it.
    """

    name = "fake"
    repeatable = True
    clock: Clock = "virtual"
    max_jobs: int | None = None

    def __init__(
        self, fault: Callable[[Job], None] | None = None, inventory: Inventory | None = None
    ) -> None:
        self.calls = 0
        self._inventory = inventory
        self._fault = fault
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        """Return the state for another process, which counts its own calls."""
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore the state in another process."""
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def identity(self) -> EngineIdentity:
        """Return a fixed identity."""
        return EngineIdentity("fake", "0" * 64, "0.0", "f" * 64)

    def inventory(self, settings: Iterable[Setting] = ()) -> Inventory | None:  # noqa: ARG002 - it refuses none
        """Return the inventory of the constructor, by default None."""
        return self._inventory

    def unsupported(self, plan: Plan) -> list[Unsupported]:  # noqa: ARG002 - it refuses none
        """Return nothing."""
        return []

    def execute(self, job: Job) -> None:
        """Write the tables of a trial (see plait.engine.engine.Engine)."""
        with self._lock:
            self.calls += 1
        if job.stop.is_set():
            raise Interrupted
        if self._fault is not None:
            self._fault(job)
        write_arrow(job.folder / "data", fake_tables(job.plan))
        status = {"ok": True, "phase": "done", "error": None, "virtual_us": job.plan.end_us, "boot_us": 0}
        (job.folder / "status.json").write_text(json.dumps(status), encoding="utf-8")


def failing(message: str) -> Callable[[Job], None]:
    """Return a fault that makes every trial fail with `message`."""

    def fault(_: Job) -> None:
        raise TrialError(message)

    return fault
