"""A fake engine: it answers every plan at once with believable tables, or fails as it is told to.

It exists for tests of the pipeline's shape (scheduling, store, faults). What a network does, only the kernel
knows: such tests run on the virtual engine.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import polars as pl

from plait.dataset.model import TABLES
from plait.errors import TrialError
from plait.run.engine import EngineIdentity, Interrupted, Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.plan.model import Flow, Plan

GOODPUT_BPS = {"tcp": 4_800_000, "mptcp": 9_200_000}
"""What every flow of a transport achieves in the fake network."""


class FakeEngine:
    """Executes plans without a kernel. `calls` counts them; `fault` may raise for a job before it is answered."""

    def __init__(self, fault: Callable[[Job], None] | None = None) -> None:
        self.calls = 0
        self._fault = fault
        self._lock = threading.Lock()

    def identity(self) -> EngineIdentity:
        """Returns a fixed identity."""
        return EngineIdentity("fake", "0" * 64, "0.0", "f" * 64)

    def execute(self, job: Job) -> None:
        """Writes the tables of a trial (see plait.run.engine.Engine)."""
        with self._lock:
            self.calls += 1
        if job.stop.is_set():
            raise Interrupted
        if self._fault is not None:
            self._fault(job)
        data = job.folder / "data"
        data.mkdir()
        rows = {"flows": [_flow(flow, job.plan) for flow in job.plan.flows]}
        for name, schema in TABLES.items():
            pl.DataFrame(rows.get(name, []), schema=schema, orient="row").write_ipc_stream(data / f"{name}.arrow")
        status = {"ok": True, "phase": "done", "error": None, "virtual_us": job.plan.end_us, "boot_us": 0}
        (job.folder / "status.json").write_text(json.dumps(status), encoding="utf-8")


def failing(message: str) -> Callable[[Job], None]:
    """Returns a fault that makes every trial fail with `message`."""

    def fault(_: Job) -> None:
        raise TrialError(message)

    return fault


def _flow(flow: Flow, plan: Plan) -> dict[str, object]:
    """Returns the row of one flow; the seed moves its start and a little of its goodput."""
    rate_bps = GOODPUT_BPS[flow.transport] + plan.seed % 1000
    size = flow.bytes or rate_bps * (flow.duration_us or 0) // 8_000_000
    lasts_us = flow.duration_us or size * 8_000_000 // rate_bps
    return {
        "flow": flow.id,
        "name": flow.name,
        "kind": flow.kind,
        "transport": flow.transport,
        "congestion_control": "cubic",
        "start_us": flow.start_us,
        "connected_us": flow.start_us,
        "first_byte_us": flow.start_us,
        "end_us": flow.start_us + lasts_us,
        "sent_bytes": size,
        "received_bytes": size,
        "completed": True,
        "fallback": False if flow.transport == "mptcp" else None,
    }
