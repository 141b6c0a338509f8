"""Cautions: reasons to check a result before trusting it. They are data, and the report lists them.

After an error plait runs nothing. A caution says that a run may not show what its author expects.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Iterable

_MANY = 3
"""How many names of cases a summary lists."""

ANALYSIS_FAILED = "ANALYSIS_FAILED"
"""Part of a report is missing, because the analysis raised an error."""
TRIALS_DISTURBED = "TRIALS_DISTURBED"
"""The machine disturbed trials in real time; figures leave them out."""
LOUD = (ANALYSIS_FAILED, TRIALS_DISTURBED, "FLOW_FAILED", "FELL_BACK", "CHECKSUM")
"""Codes of cautions that change the meaning of a result; reports list them first."""


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
    SHORT_TRANSFER = "short-transfer"
    QUEUE = "queue"
    STALL = "stall"
    DEAD_LINK = "dead-link"
    TOO_LATE = "too-late"
    PAUSE = "pause"


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


def is_complete(cautions: Iterable[Caution]) -> bool:
    """Return whether no part of a report is missing."""
    return all(caution.code != ANALYSIS_FAILED for caution in cautions)
