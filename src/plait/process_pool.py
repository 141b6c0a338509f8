"""Further processes of plait that share work with this one: reading trials, drawing figures.

A worker is `python -P -m plait.process_pool MODULE...`, which imports these modules. It reads one request a line
(JSON): `MODULE:FUNCTION` and an argument. It calls the function and prints one answer a line. It is no process of
`multiprocessing`, which would import the user's script again, with all that the script does. Trials and figures are
independent of each other, so a request that a worker could not answer is computed here instead, where an error of it is
raised. `kept` lets the same workers serve several pieces of work, because the start of one takes a second.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

PATIENCE_S = 300.0
"""How long plait waits for an answer of any worker before it computes the rest itself."""
MOST_WORKERS = 8
_ENDS_S = 10.0


class _Process:
    """One further process; it answers one request at a time, of any caller."""

    def __init__(self, modules: Sequence[str] = ()) -> None:
        """Start the process, which imports these modules (OSError)."""
        package = str(Path(__file__).parents[1])
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "POLARS_MAX_THREADS": "1",  # every core has a process
        }
        self._asking = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "plait.process_pool", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C ends them through their parent
        )

    def answer(self, target: str, request: object) -> Any:
        """Return the answer to a request (OSError or ValueError: the worker has ended)."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(json.dumps([target, request]) + "\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def try_to_answer(self, target: str, request: object) -> None:
        """Let the worker answer a request if it can."""
        with contextlib.suppress(OSError, ValueError):
            self.answer(target, request)

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End the process, even if it is busy."""
        self._process.kill()

    def wait(self) -> None:
        """Wait for the end of the process, which `kill` caused."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDS_S)


class ProcessPool:
    """ProcessPool that serve several pieces of work, one after the other."""

    def __init__(self) -> None:
        self._workers: list[_Process] = []
        self._ahead: list[threading.Thread] = []

    def ready(self, number: int, modules: Sequence[str] = ()) -> list[_Process]:
        """Return the workers that run, after the start of some up to `number`, or as many as the machine permits."""
        self._workers = [worker for worker in self._workers if worker.is_alive]
        with contextlib.suppress(OSError):
            while len(self._workers) < min(number, _spare_cores()):
                self._workers.append(_Process(modules))
        return list(self._workers)

    def begin(self, target: str, request: object) -> None:
        """Let a worker answer a request while this process does something else.

        The answer is of no interest: the function keeps its result in a cache.
        """
        for worker in self.ready(1)[:1]:
            with contextlib.suppress(RuntimeError):  # no further thread may start
                thread = threading.Thread(target=worker.try_to_answer, args=(target, request), daemon=True)
                thread.start()
                self._ahead.append(thread)

    def finish(self) -> None:
        """Wait for the answers to what `begin` asked."""
        for thread in self._ahead:
            thread.join(PATIENCE_S)
        self._ahead.clear()

    def end(self) -> None:
        """End all workers."""
        for worker in self._workers:
            worker.kill()
        for thread in self._ahead:
            thread.join(_ENDS_S)
        for worker in self._workers:
            worker.wait()
        self._workers.clear()


_KEPT: ContextVar[ProcessPool | None] = ContextVar("kept workers", default=None)


@contextlib.contextmanager
def kept() -> Iterator[ProcessPool]:
    """Yield workers that serve all work of this block."""
    workers = ProcessPool()
    token = _KEPT.set(workers)
    try:
        yield workers
    finally:
        _KEPT.reset(token)
        workers.end()


def kept_pool() -> ProcessPool | None:
    """Return the workers of the block; None outside of `kept`."""
    return _KEPT.get()


@contextlib.contextmanager
def _available() -> Iterator[ProcessPool]:
    """Yield the workers of the block, or some that end with their work."""
    workers = _KEPT.get()
    if workers is not None:
        yield workers
        return
    workers = ProcessPool()
    try:
        yield workers
    finally:
        workers.end()


def _spare_cores() -> int:
    """Return how many processes besides this one can run at once, `MOST_WORKERS` at most."""
    return min(len(os.sched_getaffinity(0)) - 1, MOST_WORKERS)


def shared_out(
    target: str, requests: Sequence[Any], compute: Callable[[int], Any], *, batch: int = 1
) -> Iterator[tuple[int, Any]]:
    """Yield the place of each request with its answer, as the answers come; this process computes answers as well.

    Args:
        target: `MODULE:FUNCTION` for workers; takes a request and returns its answer, both JSON values.
        requests: JSON values.
        compute: takes the place of a request and returns its answer in this process; what it raises is raised here.
        batch: the least number of requests for which a worker starts, because its start takes time.

    Without permission or memory for workers, this process computes everything.
    """
    waiting = deque(enumerate(requests))
    answers: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
    with _available() as pool:
        workers = pool.ready(len(requests) // max(1, batch) - 1)[: max(0, len(requests) - 1)]
        threads: list[threading.Thread] = []
        consumed = False
        try:
            with contextlib.suppress(RuntimeError):  # no further thread may start
                for worker in workers:
                    thread = threading.Thread(
                        target=_feed, args=(worker, target, waiting, answers), daemon=True
                    )
                    thread.start()
                    threads.append(thread)
            yield from _collected(waiting, answers, workers[: len(threads)], compute)
            consumed = True
        finally:
            if not consumed:
                pool.end()
            for thread in threads:
                thread.join(_ENDS_S)


def _collected(
    waiting: deque[tuple[int, Any]],
    answers: queue.SimpleQueue[tuple[int, Any] | None],
    workers: Sequence[_Process],
    compute: Callable[[int], Any],
) -> Iterator[tuple[int, Any]]:
    """Yield answers of the workers and of this process until every request has one."""
    feeding = len(workers)
    while waiting or feeding:
        with contextlib.suppress(IndexError):  # a worker has taken the last one
            place, _ = waiting.popleft()
            yield place, compute(place)
        with contextlib.suppress(queue.Empty):
            while feeding:
                answer = answers.get(timeout=None if waiting else PATIENCE_S, block=not waiting)
                if answer is None:
                    feeding -= 1
                    break
                yield answer
        if feeding and not waiting and answers.empty():
            for worker in workers:  # none answers: their requests come back
                worker.kill()


def _feed(
    worker: _Process,
    target: str,
    waiting: deque[tuple[int, Any]],
    answers: queue.SimpleQueue[tuple[int, Any] | None],
) -> None:
    """Exchange requests and answers with a worker; a request that it does not answer goes back."""
    while True:
        try:
            place, request = waiting.popleft()
        except IndexError:
            break
        try:
            answer = worker.answer(target, request)
        except (OSError, ValueError):
            worker.kill()
            waiting.append((place, request))
            break
        answers.put((place, answer))
    answers.put(None)


def work() -> None:
    """Answer requests on standard input until it ends; the first error ends the worker."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    for line in sys.stdin:
        target, request = json.loads(line)
        module, _, name = target.partition(":")
        answer = getattr(importlib.import_module(module), name)(request)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    for preloaded in sys.argv[1:]:
        importlib.import_module(preloaded)
    work()
