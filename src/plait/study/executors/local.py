"""Trials on this machine: each is a thread that waits for its guest."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Self

from plait.cautions import Caution
from plait.engine.engine import Interrupted
from plait.study.executors.execution import execute
from plait.study.executors.executor import StudyWork, completed
from plait.study.executors.task import TrialResult, TrialTask


class LocalExecutor:
    """Runs `jobs` trials at once on this machine."""

    cautions: tuple[Caution, ...] = ()

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    @property
    def workers(self) -> int:
        """How many trials run at once."""
        return self._jobs

    @property
    def title(self) -> str:
        """The name of the executor in messages."""
        return f"{self._jobs} local job{'s' * (self._jobs != 1)}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to release."""

    def run(
        self, tasks: Iterator[TrialTask], study: StudyWork, limit: int | None = None
    ) -> Generator[TrialResult, None, None]:
        """Yield the result of each task (see TrialExecutor)."""
        jobs = self._jobs if limit is None else min(limit, self._jobs)

        def run(task: TrialTask) -> TrialResult:
            if study.stop.is_set():
                raise Interrupted
            return execute(
                study.engines.by_name[task.engine], task, study.inputs, study.work, stop=study.stop
            )

        def submit() -> Future[TrialResult] | None:
            task = next(tasks, None)
            return None if task is None else pool.submit(run, task)

        # One more than jobs: the next trial starts while plait puts a finished one into its place.
        with ThreadPoolExecutor(jobs) as pool, closing(completed(submit, jobs + 1, study.stop)) as ended:
            for future in ended:
                try:
                    result = future.result()
                except Interrupted:
                    continue
                yield result
