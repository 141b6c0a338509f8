"""Cautions: reasons to check before a result is trusted. They are data, and land in the report.

An error means that nothing was run; a caution means that what runs may not show what was hoped for.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Code(StrEnum):
    """What a caution is about."""

    RECEIVE_BUFFER = "receive-buffer"
    QUEUE = "queue"
    DURATION = "duration"
    SHARED_BOTTLENECK = "shared-bottleneck"
    SINGLE_PATH = "single-path"


class Caution(BaseModel):
    """One caution, its reason, and what would remove it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    """What it is about: of a plan one of `Code`, of data one of `analysis.observe`."""
    message: str
    remedy: str | None = None
    where: str | None = None
    """The flow, host or link direction that it is about; null for a case as a whole."""

    def __str__(self) -> str:
        where = "" if self.where is None else f"{self.where}: "
        remedy = "" if self.remedy is None else f"; {self.remedy}"
        return f"{where}{self.message}{remedy} [{self.code}]"
