"""The interface of executors, and what a study gives them.

An executor takes tasks as its workers become free, and yields results in the order in which they arrive. Nothing that
a study records depends on this order. `local`, `futures` and `cluster` implement the interface.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, TypeVar

from plait.cautions import Caution
from plait.engine.workspace import Workspace
from plait.study.engines import StudyEngines
from plait.study.executors.task import TrialResult, TrialTask
from plait.study.study import Observer

T = TypeVar("T")

_LOOK_S = 0.25
"""How often an idle study looks for the user's interrupt, in seconds."""


@dataclass(frozen=True)
class StudyWork:
    """The data that a study gives to its executor."""

    engines: StudyEngines
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


def completed(
    submit: Callable[[], Future[T] | None], most: int, stop: threading.Event
) -> Generator[Future[T], None, None]:
    """Yield the futures that `submit` returns as they end; at most `most` are in flight, and each makes place for one.

    `submit` returns None if there is no task now; it may return more later. Cancelled futures are left out. After
    `stop`, or at an error, what has not started is cancelled, and nothing is submitted.
    """
    done: queue.SimpleQueue[Future[T]] = queue.SimpleQueue()
    running: set[Future[T]] = set()

    def cancel() -> None:
        for future in running:
            future.cancel()

    def fill() -> None:
        while len(running) < most and not stop.is_set() and (future := submit()) is not None:
            running.add(future)
            future.add_done_callback(done.put)

    try:
        while True:
            fill()
            if not running:
                return
            try:
                ended = done.get(timeout=_LOOK_S)
            except queue.Empty:
                if stop.is_set():
                    cancel()
                continue
            running.discard(ended)
            fill()  # the next one runs while the caller handles this one
            if not ended.cancelled():
                yield ended
    finally:
        cancel()


def nonempty(tasks: Iterator[TrialTask]) -> Iterator[TrialTask] | None:
    """Return the tasks; None if there are none, so that no worker is prepared in vain."""
    first = next(tasks, None)
    return None if first is None else itertools.chain([first], tasks)
