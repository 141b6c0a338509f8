"""The causes that limit nothing, and what no rule explains."""

from __future__ import annotations

from plait.explain.cause import Cause
from plait.explain.causes.kind import Kind

KINDS = (
    Kind(Cause.AT_CAPACITY, title="at capacity", clause="the links were full", is_harmless=True),
    Kind(
        Cause.ON_TIME,
        title="on time",
        clause="the messages were as fast as the network allows",
        is_harmless=True,
    ),
    Kind(
        Cause.NOT_KNOWN,
        title="unknown",
        clause="the samples do not show why",
        next_step="capture packets, or sample more often; captures alone do not show what waits in the sender",
    ),
)
