"""Tables of the page as views: columns, and cells of text with small print or a bar of shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class BarSegment:
    """One part of a bar."""

    percent: str
    colour: int
    """The number of the path whose colour it has."""
    name: str


@dataclass(frozen=True)
class Cell:
    """One cell."""

    text: str
    small: tuple[str, ...] = ()
    """Lines of small print below the text."""
    bar: tuple[BarSegment, ...] = ()
    """A bar above the text."""


@dataclass(frozen=True)
class Column:
    """The heading of a column, and what the column holds: names of cases, or values."""

    heading: str
    kind: Literal["case", "n"] = "n"


@dataclass(frozen=True)
class Table:
    """A table."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
