"""Further processes of plait that share work with this one: reading trials, drawing figures.

A worker is `python -P -m plait.workers MODULE:FUNCTION`. It reads one request a line (JSON), calls the function with
it, and prints one answer a line. Trials and figures are independent of each other, so a request that a worker could not
answer is computed here instead, where an error of it is raised.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PATIENCE_S = 300.0
"""How long plait waits for an answer of any worker before it computes the rest itself."""
MOST_WORKERS = 8
_ENDS_S = 10.0


def shared_out(
    target: str, requests: Sequence[Any], own: Callable[[int], Any], *, each: int = 1
) -> Iterator[tuple[int, Any]]:
    """Yield the place of each request with its answer, as the answers come; this process computes answers as well.

    Args:
        target: `MODULE:FUNCTION` for workers; takes a request and returns its answer, both JSON values.
        requests: JSON values.
        own: takes the place of a request and returns its answer in this process; what it raises is raised here.
        each: a worker is started for so many requests at least, because its start takes time.

    Without permission or memory for workers, this process computes everything.
    """
    waiting = deque(enumerate(requests))
    answers: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
    number = min(len(os.sched_getaffinity(0)) - 1, len(requests) // max(1, each) - 1, MOST_WORKERS)
    workers = _started(target, number)
    threads: list[threading.Thread] = []
    try:
        with contextlib.suppress(RuntimeError):  # no further thread may start
            for worker in workers:
                thread = threading.Thread(target=_feed, args=(worker, waiting, answers), daemon=True)
                thread.start()
                threads.append(thread)
        yield from _collected(waiting, answers, workers[: len(threads)], own)
    finally:
        _end(workers, threads)


def _collected(
    waiting: deque[tuple[int, Any]],
    answers: queue.SimpleQueue[tuple[int, Any] | None],
    workers: Sequence[subprocess.Popen[str]],
    own: Callable[[int], Any],
) -> Iterator[tuple[int, Any]]:
    """Yield answers of the workers and of this process until every request has one."""
    feeding = len(workers)
    while waiting or feeding:
        with contextlib.suppress(IndexError):  # a worker has taken the last one
            place, _ = waiting.popleft()
            yield place, own(place)
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


def _end(workers: Sequence[subprocess.Popen[str]], threads: Sequence[threading.Thread]) -> None:
    for worker in workers:
        worker.kill()
    for thread in threads:
        thread.join(_ENDS_S)
    for worker in workers:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(_ENDS_S)


def _feed(
    worker: subprocess.Popen[str],
    waiting: deque[tuple[int, Any]],
    answers: queue.SimpleQueue[tuple[int, Any] | None],
) -> None:
    """Exchange requests and answers with a worker; a request that it does not answer goes back."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    while True:
        try:
            place, request = waiting.popleft()
        except IndexError:
            break
        try:
            worker.stdin.write(json.dumps(request) + "\n")
            worker.stdin.flush()
            answer = json.loads(worker.stdout.readline())
        except (OSError, ValueError):
            waiting.append((place, request))
            break
        answers.put((place, answer))
    answers.put(None)


def _started(target: str, number: int) -> list[subprocess.Popen[str]]:
    """Return `number` workers, or as many as the machine lets plait start."""
    package = str(Path(__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])]),
        "POLARS_MAX_THREADS": "1",  # every core has a process
    }
    workers: list[subprocess.Popen[str]] = []
    with contextlib.suppress(OSError):
        for _ in range(number):
            workers.append(  # noqa: PERF401 - those that started before an error count
                subprocess.Popen(
                    [sys.executable, "-P", "-m", "plait.workers", target],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    text=True,
                    encoding="utf-8",
                    start_new_session=True,  # Ctrl-C ends them through their parent
                )
            )
    return workers


def work(target: str) -> None:
    """Answer requests on standard input until it ends; the first error ends the worker."""
    module, _, name = target.partition(":")
    function = getattr(importlib.import_module(module), name)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    for line in sys.stdin:
        answers.write(json.dumps(function(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    work(sys.argv[1])
