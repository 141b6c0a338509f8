"""The registry of the kinds of changes, and the candidates of a situation.

A candidate has the settings of the scenario that stand for the change, and the commands that make it and take it back
on a host. One that changes nothing of the situation does not occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plait.advice.changes.endpoints import backups, first_lines, full_paths, higher_limits
from plait.advice.changes.model import NOW, Candidate
from plait.advice.changes.more_subflows import second_subflows
from plait.advice.changes.settings import (
    coupled_controls,
    larger_buffers,
    one_line,
    stock_controls,
    unsent_bound,
)
from plait.advice.changes.shaper import shapers
from plait.advice.situation import Situation

CHANGES: dict[Callable[[Situation], Iterator[Candidate]], set[str]] = {
    stock_controls: {"loss-recovery", "queue-full", "too-short"},
    larger_buffers: {"receive-window", "receive-memory", "send-buffer", "head-of-line"},
    unsent_bound: {"sender-idle", "queue-full"},
    backups: {"head-of-line", "scheduler-idle-path", "last-bytes"},
    full_paths: {"subflow-never", "backup"},
    higher_limits: {"subflow-never"},
    first_lines: {"initial-path-poor", "too-short"},
    one_line: {"head-of-line", "shared-bottleneck"},
    shapers: {"queue-full", "competing-traffic"},
    second_subflows: {"loss-recovery"},
    coupled_controls: {"shared-bottleneck"},
}
"""The kinds of changes, and the causes of `plait explain` against which each may help."""


def candidates(situation: Situation) -> list[Candidate]:
    """Return all candidates of a situation, after the settings as they are."""
    return [NOW, *(candidate for change in CHANGES for candidate in change(situation))]


def against_cause(situation: Situation, cause: str) -> list[Candidate]:
    """Return the candidates that may help against a cause of `plait explain`."""
    return [
        candidate for change, causes in CHANGES.items() if cause in causes for candidate in change(situation)
    ]
