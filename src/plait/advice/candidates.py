"""The registry of the kinds of changes, and the candidates of a situation.

A candidate has the settings of the scenario that stand for the change, and the commands that make it and take it back
on a host. One that changes nothing of the situation does not occur.
"""

from __future__ import annotations

from plait.advice.changes import (
    backup,
    buffers,
    congestion_control,
    coupled,
    endpoint,
    first_line,
    limits,
    more_subflows,
    shaper,
    transport,
    unsent,
)
from plait.advice.changes.model import NOW, Candidate
from plait.advice.situation import Situation

CHANGES = tuple(
    kind.CHANGE
    for kind in (
        *(congestion_control, buffers, unsent, backup, endpoint, limits, first_line, transport, shaper),
        *(more_subflows, coupled),
    )
)


def candidates(situation: Situation) -> list[Candidate]:
    """Return all candidates of a situation, after the settings as they are."""
    return [NOW, *(candidate for change in CHANGES for candidate in change.candidates(situation))]


def against_cause(situation: Situation, cause: str) -> list[Candidate]:
    """Return the candidates that may help against a cause of `plait explain`."""
    return [
        candidate
        for change in CHANGES
        if cause in change.causes
        for candidate in change.candidates(situation)
    ]
