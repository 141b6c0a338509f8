"""Compare what two trials measured, without the random numbers that each kernel draws."""

from __future__ import annotations

from plait.dataset.digest import trial_digest
from plait.dataset.model import Tables

DRAWN = ("token", "local_port", "remote_port")
"""Columns with ports, and with tokens that follow from random keys."""


def measured_digest(tables: Tables) -> str:
    """Return the digest of a trial's tables without the columns that differ between seeds in any trial."""
    return trial_digest({name: frame.drop(DRAWN, strict=False) for name, frame in tables.items()})
