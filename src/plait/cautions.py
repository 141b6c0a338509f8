"""Cautions: reasons to check before a result is trusted. They are data, and land in the report.

An error means that nothing was run; a caution means that what runs may not show what was hoped for.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Iterable

_MANY = 3
"""Names of cases that are told."""


ANALYSIS_FAILED = "ANALYSIS_FAILED"
"""Part of a report is missing, because the analysis raised an error."""
LOUD = (ANALYSIS_FAILED, "FLOW_FAILED", "FELL_BACK", "CHECKSUM")
"""Codes of data that make a result something else than it seems: told first, and not to be overlooked."""


class Code(StrEnum):
    """What a caution of a plan is about; docs/reference/lint.md tells each of them."""

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
    """One caution, its reason, and what would remove it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    """What it is about: of a plan one of `Code`, of data one of `analysis.observe`."""
    message: str
    remedy: str | None = None
    where: str | None = None
    """The flow, host or link direction that it is about; null for a case as a whole."""
    field: str | None = None
    """The field of the scenario that would be changed first, `mptcp.limits.h1.subflows`."""
    line: int | None = None
    column: int | None = None
    """Of that field, or of what is around it, in the scenario's file; both from 1."""
    figures: dict[str, float] = {}
    """What was compared, by a name that ends in the unit where there is one."""
    cases: tuple[str, ...] = ()
    """The cases that it holds for, when there are others."""

    @property
    def summary(self) -> str:
        """What is the matter with what, and in which cases: a sentence without remedy and code."""
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
