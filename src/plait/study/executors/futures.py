"""Trials on any `concurrent.futures.Executor`: a pool of processes, or the executor of a cluster's own library."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Self

from plait.cautions import Caution
from plait.dataset.files import first_line
from plait.errors import MachineError
from plait.study.executors.batches import Batches
from plait.study.executors.executor import InFlight, StudyWork, nonempty
from plait.study.executors.shipment import Shipment, shipment
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
        ship = shipment(study)
        batches = Batches()
        parallel = self.workers if limit is None else min(limit, self.workers)
        retries: list[tuple[tuple[TrialTask, ...], int]] = []

        def waiting() -> Iterator[Future[tuple[tuple[TrialTask, ...], int, Reply]]]:
            fresh = batches.divide(remaining)
            while True:
                if retries:
                    batch, refusals = retries.pop()
                elif (following := next(fresh, None)) is not None:
                    batch, refusals = following, 0
                else:
                    return
                yield self._submit(ship, batch, refusals)

        flow = InFlight[tuple[tuple[TrialTask, ...], int, Reply]](lambda: 2 * parallel, study.stop)
        while True:
            for batch, refusals, reply in flow.results(waiting()):
                if reply.refusal is not None:
                    self._refuse(reply, refusals)
                    retries.append((batch, refusals + 1))
                for result in reply.results:
                    batches.learn(result)
                    yield result
            if not retries or study.stop.is_set():
                return

    def _refuse(self, reply: Reply, refusals: int) -> None:
        worker, reason = reply.worker, str(reply.refusal)
        self._refused[worker] = reason
        if refusals + 1 >= _MOST_REFUSALS:
            raise MachineError(
                f"running trials with {self.title}: plait must not use its worker {worker}: {reason}"
            )

    def _submit(
        self, ship: Shipment, batch: tuple[TrialTask, ...], refusals: int
    ) -> Future[tuple[tuple[TrialTask, ...], int, Reply]]:
        """Submit a batch; if the worker lacks files, submit it again with them."""
        outcome: Future[tuple[tuple[TrialTask, ...], int, Reply]] = Future()

        def submit(supplied: dict[str, bytes]) -> None:
            try:
                future = self._executor.submit(carry_out, ship, batch, supplied)
            except (BrokenExecutor, RuntimeError) as error:
                fail(self._broken(error))
                return
            outcome.add_done_callback(lambda _: future.cancel())
            future.add_done_callback(finish)

        def fail(error: BaseException) -> None:
            if outcome.set_running_or_notify_cancel():
                outcome.set_exception(error)

        def finish(future: Future[Reply]) -> None:
            if outcome.done():  # the study ended early
                return
            try:
                reply = future.result()
                if reply.missing:
                    submit({sha256: ship.file(sha256).read() for sha256 in reply.missing})
                elif outcome.set_running_or_notify_cancel():
                    outcome.set_result((batch, refusals, reply))
            except BrokenExecutor as error:
                fail(self._broken(error))
            except BaseException as error:  # noqa: BLE001 - it reaches the study through the future
                fail(error)

        submit({})
        return outcome

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
