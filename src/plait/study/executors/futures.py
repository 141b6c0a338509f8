"""Trials on any `concurrent.futures.Executor`: a pool of processes, or the executor of a cluster's own library."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import closing
from typing import Self

from plait.cautions import Caution
from plait.dataset.files import first_line
from plait.errors import MachineError
from plait.study.executors.batches import Batches
from plait.study.executors.executor import StudyWork, completed, nonempty
from plait.study.executors.shipment import shipment
from plait.study.executors.task import TrialResult, TrialTask
from plait.study.executors.worker import Reply, carry_out

WORKER_REFUSED = "WORKER_REFUSED"
_MOST_REFUSALS = 3
"""How often a batch goes to workers that plait must not use, before the study ends."""
_UNKNOWN_WORKERS = 8
"""Batches in flight, if the executor does not say how many workers it has."""


class FuturesExecutor:
    """Runs trials on an executor that the user gives. plait does not shut it down."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._refused: dict[str, str] = {}

    @property
    def workers(self) -> int:
        """How many trials run at once, as far as the executor says it."""
        return int(getattr(self._executor, "_max_workers", _UNKNOWN_WORKERS))

    @property
    def title(self) -> str:
        """The name of the executor in messages."""
        return type(self._executor).__name__

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """The workers that were not used."""
        return tuple(refused(worker, reason) for worker, reason in sorted(self._refused.items()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the executor to its owner."""

    def run(
        self, tasks: Iterator[TrialTask], study: StudyWork, limit: int | None = None
    ) -> Generator[TrialResult, None, None]:
        """Yield the result of each task (see TrialExecutor)."""
        remaining = nonempty(tasks)
        if remaining is None:
            return
        ship, batches = shipment(study), Batches()
        fresh = batches.divide(remaining)
        again: list[tuple[tuple[TrialTask, ...], int, dict[str, bytes]]] = []
        """Batches to repeat: how many workers have refused each, and the files that a worker lacked."""
        attempts: dict[Future[Reply], tuple[tuple[TrialTask, ...], int]] = {}

        def submit() -> Future[Reply] | None:
            batch, refusals, supplied = again.pop() if again else (next(fresh, ()), 0, {})
            if not batch:
                return None
            try:
                future = self._executor.submit(carry_out, ship, batch, supplied)
            except (BrokenExecutor, RuntimeError) as error:
                raise self._broken(error) from error
            attempts[future] = batch, refusals
            return future

        parallel = self.workers if limit is None else min(limit, self.workers)
        with closing(completed(submit, 2 * parallel, study.stop)) as ended:
            for future in ended:
                batch, refusals = attempts.pop(future)
                try:
                    reply = future.result()
                except BrokenExecutor as error:
                    raise self._broken(error) from error
                if reply.missing:
                    again.append((batch, refusals, {name: ship.file(name).read() for name in reply.missing}))
                elif reply.refusal is not None:
                    self._refuse(reply, refusals)
                    again.append((batch, refusals + 1, {}))
                for result in reply.results:
                    batches.learn(result)
                    yield result

    def _refuse(self, reply: Reply, refusals: int) -> None:
        worker, reason = reply.worker, str(reply.refusal)
        self._refused[worker] = reason
        if refusals + 1 >= _MOST_REFUSALS:
            raise MachineError(
                f"running trials with {self.title}: plait must not use its worker {worker}: {reason}"
            )

    def _broken(self, error: BaseException) -> MachineError:
        return MachineError(
            f"running trials with {self.title}: it broke ({first_line(error)}), for instance because a process of it "
            "was killed; plait keeps finished trials: run again with a new executor"
        )


def refused(worker: str, reason: str) -> Caution:
    """Return the caution about a worker that was not used."""
    return Caution(
        code=WORKER_REFUSED,
        message=f"worker {worker} ran no trials: {reason}",
        remedy="install the same version of plait on all workers, and use machines of one type",
    )
