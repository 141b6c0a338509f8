"""The interface of executors, and what a study gives them.

An executor takes tasks as its workers become free, and yields results in the order in which they arrive. Nothing that
a study records depends on this order. `local`, `futures` and `cluster` implement the interface.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from plait.cautions import Caution
from plait.engine.engine import Engine, EngineIdentity, Interrupted
from plait.engine.workspace import Workspace
from plait.study.executors.task import TrialResult, TrialTask
from plait.study.study import Observer

T = TypeVar("T")

_LOOK_S = 0.25
"""How often an idle study looks for the user's interrupt, in seconds."""


@dataclass(frozen=True)
class StudyWork:
    """The data that a study gives to its executor."""

    engines: Mapping[str, Engine]
    """The engines by name."""
    identities: Mapping[str, EngineIdentity]
    inputs: Mapping[str, Path]
    """The input files of all trials, by SHA-256."""
    work: Workspace
    """A folder on the file system of the results."""
    observer: Observer
    stop: threading.Event
    """Set when the user interrupts the study. The executor then takes no further tasks, ends running trials or waits
    for them, and yields those that finished."""


class TrialExecutor(Protocol):
    """Carry out trials."""

    @property
    def workers(self) -> int:
        """How many trials run at once."""

    @property
    def title(self) -> str:
        """The name of the executor in messages: `2 local jobs`."""

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """The workers that were not used, and why."""

    def __enter__(self) -> Self:
        """Connect to the workers (RequestError, MachineError)."""

    def __exit__(self, *_: object) -> None:
        """Release the workers."""

    def run(
        self, tasks: Iterator[TrialTask], study: StudyWork, limit: int | None = None
    ) -> Generator[TrialResult, None, None]:
        """Yield the result of each task; at most `limit` trials run at once.

        Raises MachineError if no worker can carry out trials, and OSError.
        """


class InFlight(Generic[T]):
    """Tasks in flight: at most `limit` at once; each completed one makes place for the next."""

    def __init__(self, limit: Callable[[], int], stop: threading.Event) -> None:
        self._limit = limit
        self._stop = stop
        self._done: queue.SimpleQueue[Future[T]] = queue.SimpleQueue()
        self._running: set[Future[T]] = set()

    def results(self, futures: Iterator[Future[T]]) -> Iterator[T]:
        """Yield the result of each future; take the next one from `futures` when there is a place for it.

        An iterator that has ended may have more later. Futures that were cancelled or interrupted give no result. After
        `stop`, or an error, it cancels what has not started and takes no further futures.
        """
        try:
            while True:
                self._fill(futures)
                if not self._running:
                    return
                try:
                    future = self._done.get(timeout=_LOOK_S)
                except queue.Empty:
                    if self._stop.is_set():
                        self._cancel()
                    continue
                self._running.discard(future)
                self._fill(futures)  # the next one runs while the caller handles this one
                try:
                    result = future.result()
                except (CancelledError, Interrupted):
                    continue
                yield result
        finally:
            self._cancel()

    def _fill(self, futures: Iterator[Future[T]]) -> None:
        """Take futures while there is place."""
        while len(self._running) < self._limit() and not self._stop.is_set():
            future = next(futures, None)
            if future is None:
                return
            self._running.add(future)
            future.add_done_callback(self._done.put)

    def _cancel(self) -> None:
        for future in tuple(self._running):
            future.cancel()


def nonempty(tasks: Iterator[TrialTask]) -> Iterator[TrialTask] | None:
    """Return the tasks; None if there are none, so that no worker is prepared in vain."""
    first = next(tasks, None)
    return None if first is None else itertools.chain([first], tasks)
