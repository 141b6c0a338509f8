"""Which executor the user asks for: none, one of Python, one of plait, or a cluster by its address."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from plait.errors import RequestError
from plait.study.executors.executor import TrialExecutor
from plait.study.executors.futures import FuturesExecutor


def executor_of(
    asked: Executor | TrialExecutor | str | None,
    notify: Callable[[str], None] = lambda _: None,
    *,
    insecure: bool = False,
) -> TrialExecutor | None:
    """Return the executor; None for threads on this machine.

    `insecure` accepts a cluster without TLS. Raise RequestError if a text names no cluster, or if `insecure` has no
    effect.
    """
    if isinstance(asked, str):
        from plait.study.executors.cluster.executor import ClusterExecutor

        return ClusterExecutor(asked, notify, insecure=insecure)
    if insecure:
        raise RequestError("--insecure without --cluster tcp://HOST:PORT has no effect; omit it")
    return FuturesExecutor(asked) if isinstance(asked, Executor) else asked
