"""Runs the trials of a study on a Dask cluster.

the study's thread                          the thread of the event loop
tasks -> batches  ---------------------->   dispatcher --> Dask's scheduler --> workers
results into their place  <----------       (`dispatcher`, `admission`, `connection`)
"""

from __future__ import annotations

import asyncio
import logging
import queue
import signal
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future
from multiprocessing import resource_tracker
from typing import Any, Self, TypeVar

from plait.cautions import Caution
from plait.study.executors.batches import Batches
from plait.study.executors.cluster.connection import DaskConnection, workers_of
from plait.study.executors.cluster.dispatcher import Dispatcher
from plait.study.executors.executor import StudyWork, nonempty
from plait.study.executors.futures import refused
from plait.study.executors.shipment import shipment
from plait.study.executors.task import TrialResult, TrialTask

_LOOK_S = 0.25
"""How often an idle study looks for the user's interrupt, in seconds."""


class ClusterExecutor:
    """Runs trials on a Dask cluster: at an address, on this machine (`local:N`), or one that Slurm starts."""

    def __init__(
        self, cluster: str, notify: Callable[[str], None] = lambda _: None, *, insecure: bool = False
    ) -> None:
        """Raise RequestError if `cluster` names no cluster, or one without TLS unless `insecure`."""
        self._connection = DaskConnection(cluster, notify, insecure=insecure)
        self._notify = notify
        self._refused: dict[str, str] = {}
        self._threads = 0
        self._dispatcher: Dispatcher | None = None

    @property
    def workers(self) -> int:
        """How many trials run at once now; at least 1."""
        return max(1, self._threads if self._dispatcher is None else self._dispatcher.threads)

    @property
    def title(self) -> str:
        """The name of the executor in messages."""
        return f"the Dask cluster {self._connection.cluster}"

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """The workers that were not used."""
        return tuple(refused(worker, reason) for worker, reason in sorted(self._refused.items()))

    def __enter__(self) -> Self:
        """Connect to the scheduler (RequestError, MachineError)."""
        self._connection.load()
        self._loop = _LoopThread()
        try:
            self._loop.wait(self._open())
        except BaseException:
            self.__exit__()
            raise
        if self._connection.dashboard:
            self._notify(f"dashboard of the cluster: {self._connection.dashboard}")
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection, and the workers that plait started."""
        self._loop.wait(self._connection.close())
        self._loop.close()

    async def _open(self) -> None:
        await self._connection.open()
        for name in ("distributed", *logging.root.manager.loggerDict):
            if name.partition(".")[0] == "distributed":  # plait reports what matters
                logging.getLogger(name).setLevel(logging.CRITICAL)
        workers = await workers_of(await self._connection.client())
        self._threads = sum(int(info["nthreads"]) for info in workers.values())

    def run(
        self,
        tasks: Iterator[TrialTask],
        study: StudyWork,
        limit: int | None = None,  # noqa: ARG002 - only engines in real time limit it, and `shipment` refuses them
    ) -> Generator[TrialResult, None, None]:
        """Yield the result of each task (see TrialExecutor)."""
        remaining = nonempty(tasks)
        if remaining is None:
            return
        batches = Batches()
        events: queue.SimpleQueue[tuple[TrialResult, ...] | BaseException] = queue.SimpleQueue()
        dispatcher = self._dispatcher = Dispatcher(self._connection, shipment(study), batches, events.put)
        try:
            self._loop.wait(dispatcher.start())
            running = 0
            fresh = batches.divide(remaining)
            while not study.stop.is_set():
                while dispatcher.hungry and (batch := next(fresh, None)) is not None:
                    running += len(batch)
                    dispatcher.add(batch)
                    self._loop.call(dispatcher.dispatch)
                if not running:
                    return
                try:
                    event = events.get(timeout=_LOOK_S)
                except queue.Empty:
                    continue
                if isinstance(event, BaseException):
                    raise event
                running -= len(event)
                for result in event:
                    batches.learn(result)
                    yield result
        finally:
            self._loop.wait(dispatcher.end())
            self._refused |= dispatcher.refused
            self._threads, self._dispatcher = dispatcher.threads, None


T = TypeVar("T")
_END_S = 60


class _LoopThread:
    """A thread that runs an event loop until `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="plait-cluster", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Workers inherit the mask: Ctrl-C must reach plait only. To start Python's tracker would unblock the signal.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        asyncio.set_event_loop(self._loop)
        # Dask leaves coroutines of its own behind that failed; those of plait report their errors to the study.
        self._loop.set_exception_handler(lambda *_: None)
        self._loop.run_forever()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the loop and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine. If the wait is interrupted, cancel it."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], None]) -> None:
        """Call a function in the loop, soon."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """End the loop, with what still runs in it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_S)
