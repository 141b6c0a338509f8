"""How many trials go to a worker at once: short trials in batches, so that the way to the worker costs little."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from plait.study.executors.task import TrialResult, TrialTask

BATCH_S = 1.0
"""The wall time that a batch should take."""
MOST_TRIALS = 32
"""The most trials in a batch; a worker that dies loses all of them."""
_WEIGHT = 0.1
"""The weight of the latest trial in the mean."""


class Batches:
    """Divides tasks into batches by the wall time of the trials that have ended."""

    def __init__(self) -> None:
        self._mean_s: float | None = None

    @property
    def size(self) -> int:
        """How many trials a batch has now: one, until the first trial has ended."""
        if self._mean_s is None:
            return 1
        return max(1, min(MOST_TRIALS, int(BATCH_S / max(self._mean_s, 1e-3))))

    @property
    def short(self) -> bool:
        """Whether trials are known to be so short that one may wait behind another on its worker."""
        return self._mean_s is not None and self._mean_s <= BATCH_S

    def learn(self, result: TrialResult) -> None:
        """Learn from a trial that has ended."""
        old = result.wall_s if self._mean_s is None else self._mean_s
        self._mean_s = old + _WEIGHT * (result.wall_s - old)

    def divide(self, tasks: Iterator[TrialTask]) -> Iterator[tuple[TrialTask, ...]]:
        """Yield the tasks in batches."""
        while batch := tuple(itertools.islice(tasks, self.size)):
            yield batch
