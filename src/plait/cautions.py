"""Cautions: reasons to check a result before trusting it. They are data, and the report lists them.

After an error plait runs nothing. A caution says that a run may not show what its author expects.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

_MANY = 3
"""How many names of cases a summary lists."""

ANALYSIS_FAILED = "ANALYSIS_FAILED"
"""Part of a report is missing, because the analysis raised an error."""
TRIALS_DISTURBED = "TRIALS_DISTURBED"
"""The machine disturbed trials in real time; figures leave them out."""
_PART_MISSING = (ANALYSIS_FAILED, "FIGURE_EMPTY", "JUDGE_EMPTY")
"""Part of what the scenario asked for is not there."""
_OTHER_MEANING = ("DATA_CHANGED", "CHECKSUM", "FLOW_FAILED", "FELL_BACK", TRIALS_DISTURBED, "TRIALS_MISSING")
"""Figures are missing, or are those of something else."""
_FEWER_PATHS = ("IDLE_PATH", "SUBFLOW_CLOSED", "JOIN_REFUSED", "JOIN_UNANSWERED", "ADD_ADDR_UNUSED")
"""Multipath TCP had fewer paths than the plan has."""
_LESS_PRECISE = ("INTERVAL_WIDE",)
"""The conclusion holds, with a wider interval than was asked for."""
LOUD = (*_PART_MISSING, *_OTHER_MEANING)
"""Codes of cautions that change the meaning of a result."""


class Code(StrEnum):
    """The codes of cautions about a plan; docs/reference/lint.md explains each."""

    SUBFLOW_LIMIT = "subflow-limit"
    ADD_ADDR_LIMIT = "add-addr-limit"
    NO_ROUTE = "no-route"
    NO_SIGNAL = "no-signal"
    NO_ENDPOINT = "no-endpoint"
    WRONG_SIDE = "wrong-side"
    MPTCP_OFF = "mptcp-off"
    SINGLE_PATH = "single-path"
    SAME_PATH = "same-path"
    SHARED_BOTTLENECK = "shared-bottleneck"
    RECEIVE_BUFFER = "receive-buffer"
    SEND_BUFFER = "send-buffer"
    DURATION = "duration"
    UNTIL = "until"
    SAMPLE = "sample"
    UNSAMPLED = "unsampled"
    SHORT_TRANSFER = "short-transfer"
    QUEUE = "queue"
    STALL = "stall"
    DEAD_LINK = "dead-link"
    TOO_LATE = "too-late"
    PAUSE = "pause"
    BACKUP = "backup"
    STRIPPED = "stripped"
    SAME_CASES = "same-cases"
    UNREAD = "unread"
    UNCROSSED = "uncrossed"
    NO_CHANGE = "no-change"
    BUCKET = "bucket"
    ECN = "ecn"


class Caution(BaseModel):
    """One caution, its reason and its remedy."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    """For a plan one of `Code`, for data one that `analysis.cautions` defines."""
    message: str
    remedy: str | None = None
    where: str | None = None
    """The flow, host or link direction concerned; null for the whole case."""
    field: str | None = None
    """The scenario field to change first, `mptcp.limits.h1.subflows`."""
    line: int | None = None
    column: int | None = None
    """Place of that field, or of its nearest parent, in the scenario file; both count from 1."""
    figures: dict[str, float] = {}
    """The numbers behind the caution; a name ends in its unit."""
    cases: tuple[str, ...] = ()
    """The cases concerned; empty if these are all cases."""

    @property
    def is_loud(self) -> bool:
        """Whether it changes the meaning of a result."""
        return self.code in LOUD

    @property
    def summary(self) -> str:
        """Subject, problem and cases as a sentence, without remedy and code."""
        subject = "" if self.where is None else f"{self.where}: "
        if not self.cases:
            return f"{subject}{self.message}"
        more = f", and {len(self.cases) - _MANY} more" if len(self.cases) > _MANY else ""
        return f"{subject}{self.message} (case {', '.join(self.cases[:_MANY])}{more})"

    def __str__(self) -> str:
        remedy = "" if self.remedy is None else f"; {self.remedy}"
        return f"{self.summary}{remedy} [{self.code}]"


_RANKED = (*LOUD, *_FEWER_PATHS, *Code, *_LESS_PRECISE)
"""All codes, by what they do to the conclusion; the most harmful is first."""


def by_kind(cautions: Iterable[Caution]) -> tuple[tuple[Caution, ...], ...]:
    """Return the cautions by code, ranked by what they do to the conclusion; each caution counts once.

    Those of a code begin with the one that concerns the most trials.
    """
    kinds: dict[str, list[Caution]] = {}
    for caution in {str(caution): caution for caution in cautions}.values():
        kinds.setdefault(caution.code, []).append(caution)
    return tuple(_largest_first(kinds[code]) for code in sorted(kinds, key=_rank))


def ranked(cautions: Iterable[Caution]) -> tuple[Caution, ...]:
    """Return each caution once, ranked by what it does to the conclusion."""
    return tuple(caution for kind in by_kind(cautions) for caution in kind)


def _rank(code: str) -> int:
    return _RANKED.index(code) if code in _RANKED else len(_RANKED)


def _largest_first(cautions: list[Caution]) -> tuple[Caution, ...]:
    largest = max(cautions, key=lambda caution: caution.figures.get("trials", 0))
    return (largest, *(caution for caution in cautions if caution is not largest))


def is_complete(cautions: Iterable[Caution]) -> bool:
    """Return whether no part of a report is missing."""
    return all(caution.code != ANALYSIS_FAILED for caution in cautions)
