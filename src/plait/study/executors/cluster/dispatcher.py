"""Sends batches of trials to the workers of a Dask cluster, and sends again what a worker took along when it died.

    waiting --> a worker that is free --> its reply --> the study
       ^                 | it dies
       +-----------------+ the trials that ran: each alone from now on, until three workers have died of it

Each batch names its worker, so plait knows which trials ran where when a worker died, and no batch runs on a worker
that was not admitted.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

from plait.errors import MachineError
from plait.study.executors.batches import Batches
from plait.study.executors.cluster.admission import MEMORY, Admission
from plait.study.executors.cluster.connection import DaskConnection, reason, workers_of
from plait.study.executors.shipment import Shipment
from plait.study.executors.task import TrialResult, TrialTask
from plait.study.executors.worker import Reply, carry_out
from plait.study.study import TrialKey

PYTHON_MIB = 64
"""Memory that a trial needs beside that of its guest: tables on their way to Parquet."""
MOST_DEATHS = 3
"""How many workers may die while they run a trial, before plait gives it up."""
MOST_REFUSALS = 5
"""How many workers may fail to run a batch for a reason of their own, before the study ends."""
_LOOK_S = 0.5
"""How often to look for workers that came or went; less often where a look takes long, because there are many."""
_LOOK_SHARE = 20
_MOST_LOOK_S = 10.0
_LOOK_AHEAD = 16
"""How many waiting batches `dispatch` considers when the first of them fits no worker now."""
_GONE_S = 5.0
_REASONS = 8


@dataclass(frozen=True)
class _Batch:
    """Trials on their way to a worker."""

    tasks: tuple[TrialTask, ...]
    alone: bool = False
    """Whether nothing else may run on its worker, because the trial may have killed one."""
    refusals: int = 0

    @property
    def memory_mib(self) -> int:
        return max(task.memory_mib for task in self.tasks) + PYTHON_MIB


@dataclass(eq=False)
class _Member:
    """A worker, from its arrival to its end."""

    client: Any
    address: str
    threads: int = 0
    memory_mib: int = 0
    admitted_s: float | None = None
    """When it was admitted; None before."""
    flying: list[_Batch] = field(default_factory=list)
    """Its batches, in the order in which it runs them."""
    coroutines: set[asyncio.Task[None]] = field(default_factory=set)

    def fits(self, batch: _Batch) -> bool:
        """Return whether it can take a batch beside those that it has."""
        if batch.memory_mib > self.memory_mib or any(batch_flying.alone for batch_flying in self.flying):
            return False
        return not (batch.alone and self.flying)


class Dispatcher:
    """Runs the batches of one study on the workers that are fit for it."""

    def __init__(
        self,
        connection: DaskConnection,
        ship: Shipment,
        batches: Batches,
        post: Callable[[tuple[TrialResult, ...] | BaseException], None],
    ) -> None:
        """`post` gets the results of each batch, or the error that ends the study."""
        self._connection = connection
        self._ship = ship
        self._batches = batches
        self._post = post
        self._admission = Admission(ship)
        self._waiting: deque[_Batch] = deque()
        self._suspects: deque[_Batch] = deque()
        self._deaths: Counter[TrialKey] = Counter()
        self._members: dict[str, _Member] = {}
        self._idle: dict[str, _Member] = {}
        """Members with an idle thread."""
        self._spare: dict[str, _Member] = {}
        """Members whose threads are busy; a short batch may wait there."""
        self._unfit: set[str] = set()
        self._hopeless_s: float | None = None
        self._numbers = itertools.count()
        self._running: asyncio.Task[None] | None = None
        self.threads = 0
        """How many trials the admitted workers run at once."""
        self.refused: dict[str, str] = {}
        """The workers that were not used, and why."""

    # --- called from the study's thread -------------------------------------------------------------------------

    @property
    def hungry(self) -> bool:
        """Whether the dispatcher should get further batches."""
        return len(self._waiting) < max(2, self.threads)

    def add(self, tasks: tuple[TrialTask, ...]) -> None:
        """Add a batch; `dispatch` sends it."""
        self._waiting.append(_Batch(tasks))

    # --- called in the event loop -------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start to look for workers, and to serve them."""
        self._running = asyncio.create_task(self._run())

    async def end(self) -> None:
        """End all of it. Batches that run on a worker end there, and plait discards their results."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        """Serve the study until this is cancelled. An error goes to `post`."""
        try:
            while True:
                client = await self._connection.client()
                try:
                    await self._watch(client)
                finally:
                    for address in tuple(self._members):  # the connection is lost, or the study ends
                        self._part(address)
        except Exception as error:  # noqa: BLE001 - the study's thread raises it again
            self._post(error)

    async def _watch(self, client: Any) -> None:
        """Look for new workers, and for workers that have gone. Return when the connection is lost."""
        while client.status == "running":
            asked_s = time.monotonic()
            try:
                workers = await workers_of(client)
            except (OSError, TimeoutError, CancelledError):
                return
            for address, member in tuple(self._members.items()):
                if address not in workers or _restarted(member, workers[address], asked_s):
                    self._bury(address)
            self._unfit &= set(workers)
            for address, info in workers.items():
                if address not in self._members and address not in self._unfit:
                    member = self._members[address] = _Member(client, address)
                    self._spawn(member, self._welcome(member, info))
            self._check_hope(len(workers))
            self.dispatch()
            await asyncio.sleep(min(_MOST_LOOK_S, max(_LOOK_S, _LOOK_SHARE * (time.monotonic() - asked_s))))

    def _spawn(self, member: _Member, work: Coroutine[Any, Any, None]) -> None:
        coroutine = asyncio.create_task(work)
        member.coroutines.add(coroutine)

        def settle(_: asyncio.Task[None]) -> None:
            member.coroutines.discard(coroutine)
            if not coroutine.cancelled() and (error := coroutine.exception()) is not None:
                self._post(error)

        coroutine.add_done_callback(settle)

    async def _welcome(self, member: _Member, info: dict[str, Any]) -> None:
        """Admit a worker, refuse it, or forget it so that the next look tries again."""
        try:
            terms = await self._admission.admit(member.client, member.address, info)
        except (OSError, TimeoutError, CancelledError):
            self._part(member.address)
            return
        except MachineError as error:  # a file here has changed meanwhile
            self._post(error)
            return
        except Exception as error:  # noqa: BLE001 - whatever fails on a worker is a reason not to use it
            terms = f"preparing it failed: {type(error).__name__}: {reason(error)}"
        if isinstance(terms, str):
            self._refuse(member, terms)
            return
        member.threads, member.memory_mib = terms.threads, terms.memory_mib
        member.admitted_s = time.monotonic()
        self.threads += member.threads
        self._sort(member)
        self.dispatch()

    # --- batches on their way -----------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """Send waiting batches to the members that have place for them. An error goes to `post`."""
        try:
            self._dispatch()
        except Exception as error:  # noqa: BLE001 - the study's thread raises it again
            self._post(error)

    def _dispatch(self) -> None:
        self._send(self._suspects, None)
        reserved = None
        if self._suspects:  # one member gets nothing else, so that it becomes free for a suspect
            need = self._suspects[0].memory_mib
            fitting = (member for member in self._members.values() if member.memory_mib >= need)
            reserved = next(fitting, None)
        self._send(self._waiting, reserved)

    def _send(self, batches: deque[_Batch], reserved: _Member | None) -> None:
        index = 0
        while index < min(len(batches), _LOOK_AHEAD):
            member = self._place(batches[index], reserved)
            if member is None:
                index += 1
                continue
            batch = batches[index]
            del batches[index]
            member.flying.append(batch)
            self._sort(member)
            self._spawn(member, self._carry(member, batch))

    def _place(self, batch: _Batch, reserved: _Member | None) -> _Member | None:
        """Return a member that can take the batch; an idle one if there is any.

        A batch waits on a member behind another batch only if trials are short, and if none waits to run alone.
        """
        ahead = self._batches.short and not self._suspects
        for members in (self._idle, self._spare) if ahead else (self._idle,):
            for member in members.values():
                if member is not reserved and member.fits(batch):
                    return member
        return None

    def _sort(self, member: _Member) -> None:
        """Put a member where `_place` looks for it."""
        self._idle.pop(member.address, None)
        self._spare.pop(member.address, None)
        if self._members.get(member.address) is member and member.admitted_s is not None:
            if len(member.flying) < member.threads:
                self._idle[member.address] = member
            elif len(member.flying) < 2 * member.threads:
                self._spare[member.address] = member

    async def _carry(self, member: _Member, batch: _Batch) -> None:
        """Run a batch on a member, and handle what becomes of it."""
        from distributed import KilledWorker

        first = batch.tasks[0].key
        future = member.client.submit(
            carry_out,
            self._ship,
            batch.tasks,
            pure=False,
            retries=0,
            workers=[member.address],
            allow_other_workers=False,
            resources={MEMORY: batch.memory_mib},
            key=f"plait-{self._ship.name[:8]}-{first.case}-{first.index}-{next(self._numbers)}",
        )
        try:
            reply: Reply = await future
        except KilledWorker:
            member.flying.remove(batch)
            self._suspect(batch)
        except (OSError, TimeoutError, CancelledError) as error:
            await asyncio.sleep(
                _GONE_S
            )  # if the worker has gone, or the connection is lost, `_watch` cancels this
            self._give_back(member, batch, f"its result was lost: {reason(error)}")
        except Exception as error:  # noqa: BLE001 - whatever fails on a worker is a reason not to use it
            self._give_back(member, batch, f"a batch failed: {type(error).__name__}: {reason(error)}")
        else:
            if reply.results:
                member.flying.remove(batch)
                self._post(reply.results)
            else:
                lost = "it has lost the files that plait sent"
                self._give_back(member, batch, reply.refusal or lost)
        finally:
            with contextlib.suppress(Exception):  # the connection is lost
                future.release()
        self._sort(member)
        self.dispatch()

    def _give_back(self, member: _Member, batch: _Batch, reason: str) -> None:
        """Stop using a worker that cannot run a batch, and let another one run it."""
        member.flying.remove(batch)
        self._refuse(member, reason)
        if batch.refusals + 1 < MOST_REFUSALS:
            queue = self._suspects if batch.alone else self._waiting
            queue.appendleft(_Batch(batch.tasks, batch.alone, batch.refusals + 1))
            return
        key = batch.tasks[0].key
        self._post(
            MachineError(
                f"running trials on {self._connection.cluster}: {MOST_REFUSALS} workers could not run trial {key.case} "
                f"#{key.index}; the last one, {member.address}: {reason}"
            )
        )

    # --- workers that go ----------------------------------------------------------------------------------------

    def _part(self, address: str) -> None:
        """Forget a member; its batches wait again."""
        member = self._members.pop(address)
        if member.admitted_s is not None:
            self.threads -= member.threads
        self._sort(member)
        task = asyncio.current_task()
        for coroutine in tuple(member.coroutines):
            if coroutine is not task:
                coroutine.cancel()
        for batch in reversed(member.flying):
            (self._suspects if batch.alone else self._waiting).appendleft(batch)
        member.flying.clear()

    def _bury(self, address: str) -> None:
        """Forget a member that died. One of the trials that ran there may have killed it."""
        flying = self._members[address].flying
        ran = flying[: self._members[address].threads]
        del flying[: len(ran)]
        self._part(address)
        for batch in ran:
            self._suspect(batch)

    def _suspect(self, batch: _Batch) -> None:
        """Let each trial of a batch run alone; give up a trial that several workers died of."""
        for task in batch.tasks:
            self._deaths[task.key] += 1
            if self._deaths[task.key] < MOST_DEATHS:
                self._suspects.append(_Batch((task,), alone=True, refusals=batch.refusals))
            else:
                self._post((TrialResult(task.key, task.identity, _ABANDONED, 0.0, None, None),))

    def _refuse(self, member: _Member, reason: str) -> None:
        """Stop using a worker."""
        self.refused[member.address] = reason
        self._unfit.add(member.address)
        self._part(member.address)

    def _check_hope(self, workers: int) -> None:
        """Raise MachineError if no worker will run what waits."""
        admitted = [member for member in self._members.values() if member.admitted_s is not None]
        settled = len(admitted) == len(self._members)
        if admitted:
            self._hopeless_s = None
            if settled:
                self._refuse_too_large(max(member.memory_mib for member in admitted))
            return
        if settled and self._unfit:
            reasons = [f"{worker}: {reason}" for worker, reason in sorted(self.refused.items())]
            raise MachineError(
                f"running trials on {self._connection.cluster}: plait must not use any of its {workers} workers:\n  "
                + "\n  ".join(reasons[:_REASONS])
            )
        self._hopeless_s = self._hopeless_s or time.monotonic()
        if time.monotonic() - self._hopeless_s > self._connection.patience_s:
            raise MachineError(
                f"running trials on {self._connection.cluster}: no worker has got ready in "
                f"{self._connection.patience_s:.0f} s; start some (`dask worker SCHEDULER --nthreads 1`), or look at "
                "their logs"
            )

    def _refuse_too_large(self, most_mib: int) -> None:
        for batches in (self._waiting, self._suspects):
            if batches and batches[0].memory_mib > most_mib:
                key = batches[0].tasks[0].key
                raise MachineError(
                    f"trial {key.case} #{key.index} needs {batches[0].memory_mib} MiB, and the largest worker has "
                    f"{most_mib} MiB for guests; start workers with more memory (dask worker --memory-limit)"
                )


_ABANDONED = (
    f"{MOST_DEATHS} workers died while they ran this trial, so plait does not try it again; it may need more memory "
    "than a worker has"
)


def _restarted(member: _Member, info: dict[str, Any], asked_s: float) -> bool:
    """Return whether another process has the address of an admitted worker: it has not got its resource yet."""
    admitted = member.admitted_s is not None and member.admitted_s < asked_s
    return admitted and MEMORY not in (info.get("resources") or {})
