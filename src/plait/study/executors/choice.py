"""Which executor the user asks for: none, one of Python, one of plait, or a cluster by its address."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING

from plait.errors import RequestError
from plait.study.executors.futures import FuturesExecutor

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.study.executors.executor import TrialExecutor


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
