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

    code: Code
    where: str
    """The flow or link direction that it is about."""
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message}; {self.remedy} [{self.code}]"
