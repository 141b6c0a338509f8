"""A trial's guest, halted for a prompt before or after its traffic. Its clock stops while no command runs.

    job folder                      the guest (`agent/src/session/pause.rs`)
      input/order-N  ------------>   the orders, one file each
      input/orders  ------------->   a byte for each order; the guest counts them all the time, without virtual time
      output  <-------------------   frames; READY: all orders are carried out, and plait suspends the guest (SIGSTOP)

Commands from a file run as fast as possible, and the same commands produce the same trial. Commands at a terminal
advance virtual time no faster than real time, so that a person can follow and interrupt them.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from plait.engine.engine import Job
from plait.engine.host_view import view_for_programs
from plait.engine.interactive import END, READY, OutputFrame
from plait.engine.request import Policy
from plait.engine.virtual.session import InteractiveGuest
from plait.engine.virtual.watch import Standstill, TrialLimits, Watch, waited_s
from plait.errors import TrialError
from plait.files import Folder
from plait.kernel import Kernel
from plait.plan.model.plan import Plan

_SLICE_US, _TERMINAL_SLICE_US, _BRIEF_SLICE_US = 1_000_000, 100_000, 10_000
"""Slices of virtual time: while a command runs; while one runs at a terminal; after an order without an awaited end."""
_STALL_S = 120.0
_ROUND_S = 0.25


class _PausingGuest(InteractiveGuest):
    """The guest of a trial that has pauses."""

    def __init__(self, kernel: Kernel, folder: Path, plan: Plan, policy: Policy) -> None:
        """Boot the guest in `folder`, which holds all inputs of a trial (TrialError if the start fails)."""
        self._order_count = os.fdopen((Folder(folder) / "input").new("orders"), "wb", buffering=0)
        view = view_for_programs(plan.programs, policy.readable)
        super().__init__(kernel, folder, plan, view=view, directory=Path.cwd(), orders=False, policy=policy)
        self.stuck: str | None = None
        """Why plait ended the guest, if it did."""
        self._orders_sent = self._orders_removed = 0
        self._orders_before_ready = deque([0])
        """The number of orders sent before each READY that is still to arrive."""
        self._pending_readies = 1  # until the first pause
        self._next_slice = time.monotonic()
        self._standstill = Standstill(self._next_slice)
        self._suspended = False
        self._terminal_runs: set[object] = set()

    def __exit__(self, *error: object) -> None:
        self._order_count.close()
        super().__exit__(*error)

    @property
    def is_idle(self) -> bool:
        """Return whether the guest has carried out all orders and waits."""
        return self._pending_readies == 0

    def frames(self) -> Iterator[OutputFrame]:
        """Yield the frames that the guest has emitted since the last call."""
        for frame in super().frames():
            if frame.kind == READY:
                self._pending_readies -= 1
                self._remove_read_orders()
            elif frame.kind == END:
                self._terminal_runs.discard(frame.run)
            yield frame

    def reaches_pause(self) -> bool:
        """Read and discard the new frames, and return whether the guest is idle."""
        for _ in self.frames():
            pass
        return self.is_idle

    def send_order(self, order: dict[str, object]) -> None:
        """Send an order; the guest carries it out when its clock runs."""
        if order["do"] == "start" and order["terminal"] is not None:
            self._terminal_runs.add(order["run"])
        self._write_order({"do": "obey", "order": order})
        self._next_slice = 0.0

    def run_clock_briefly(self) -> None:
        """Let the clock run briefly, so that the guest handles an order whose end no prompt waits for."""
        self._run_slice(_BRIEF_SLICE_US)

    def resume(self) -> None:
        """End the pause: the trial continues to the next pause or to its end."""
        self._pending_readies += 1
        self._write_order({"do": "leave"})
        self._orders_before_ready.append(self._orders_sent)
        self._wake()

    def run_clock(self, *, needed: bool) -> float:
        """Let the clock run if a program `needed` it. Return the longest time in s until the next call."""
        now = time.monotonic()
        if self._pending_readies:
            if self._standstill.seconds(now, waited_s(self.guest.pid)) > _STALL_S:
                self.stuck = (
                    f"virtual time did not advance for {_STALL_S:g} s in which the guest could run: a command at the "
                    "prompt computes, or polls without sleeping; `system_call: 1us` in the scenario makes "
                    "system calls advance time"
                )
                self.end()
            return _ROUND_S
        if needed and now >= self._next_slice:
            self._run_slice(_TERMINAL_SLICE_US if self._terminal_runs else _SLICE_US)
            self._next_slice = now + _TERMINAL_SLICE_US / 1e6 if self._terminal_runs else now
            return _ROUND_S
        if not self._suspended:
            self.guest.suspend()
            self._suspended = True
        return self._next_slice - now if needed else _ROUND_S

    def _run_slice(self, microseconds: int) -> None:
        self._pending_readies += 1
        self._standstill.restart(time.monotonic(), waited_s(self.guest.pid))
        self._write_order({"do": "pass", "us": microseconds})
        self._orders_before_ready.append(self._orders_sent)
        self._wake()

    def _wake(self) -> None:
        if self._suspended:
            self.guest.wake()
            self._suspended = False

    def _remove_read_orders(self) -> None:
        """Remove the orders that the latest READY confirms; the guest may still have to read later ones."""
        answered = self._orders_before_ready.popleft() if self._orders_before_ready else self._orders_removed
        while self._orders_removed < answered:
            (self.folder / "input" / f"order-{self._orders_removed}").unlink()
            self._orders_removed += 1

    def _write_order(self, record: dict[str, object]) -> None:
        """Write the next order to its file, and then signal it to the guest."""
        (Folder(self.folder) / "input").write(f"order-{self._orders_sent}", json.dumps(record).encode())
        self._orders_sent += 1
        self._order_count.write(b".")


def execute(kernel: Kernel, job: Job, limits: TrialLimits, policy: Policy) -> None:
    """Run a trial with pauses to its end; `job.folder` already holds its inputs (see Engine.execute)."""
    if job.prompt is None:
        raise TrialError("the plan has a pause, but this run has no prompt; remove `pause` from the scenario")
    with _PausingGuest(kernel, job.folder, job.plan, policy) as guest:

        def watch() -> str | None:
            return Watch(job, limits, time.monotonic()).until_exit(
                guest.guest, guest.output_event, guest.reaches_pause
            )

        verdict = None
        for pause_at in job.plan.pause:
            verdict = watch()
            if not guest.is_idle:
                break
            try:
                job.prompt(pause_at, guest)
            except TrialError:
                if guest.guest.process.poll() is None:
                    raise
                verdict = guest.stuck
                break
            guest.resume()
        else:
            verdict = watch()
        guest.end()
        guest.explain_end(verdict)
