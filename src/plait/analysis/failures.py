"""Group trials that failed in the same way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Trial = TypeVar("Trial")

DECIDING_LINES = 2
"""The first lines of an error: its reason and its place; the rest (a stack, last lines of logs) differs by seed."""


def failed_alike(failed: Iterable[tuple[Trial, str]]) -> list[tuple[list[Trial], str]]:
    """Return the trials that failed by what went wrong, each time with the error of the first of them."""
    groups: dict[tuple[str, ...], tuple[list[Trial], str]] = {}
    for trial, error in failed:
        key = tuple(error.splitlines()[:DECIDING_LINES])
        groups.setdefault(key, ([], error))[0].append(trial)
    return list(groups.values())


def in_one_line(error: str) -> str:
    """Return the first line of an error, and the last one of what that line announces, such as a program's log."""
    first, *rest = [line.strip() for line in error.splitlines() if line.strip()] or [""]
    return f"{first} .. {rest[-1]}" if first.endswith(":") and rest else first
