"""Which executor the user gives: one of Python, or one of plait."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import TYPE_CHECKING

from plait.study.executors.futures import FuturesExecutor

if TYPE_CHECKING:
    from plait.study.executors.executor import TrialExecutor


def executor_of(asked: Executor | TrialExecutor | None) -> TrialExecutor | None:
    """Return the executor; None for threads on this machine."""
    return FuturesExecutor(asked) if isinstance(asked, Executor) else asked
