"""Lays columns of text out side by side: no word is broken, no value cut, and what has no room is left out whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from plait.report.table import Column

GAP = 2
NUMBER = "#"
"""The column of the numbers of cases, which count from 1."""
LEAST_VALUES = 12
"""Room that factors leave for the first value."""


def fit(columns: Sequence[Column], width: int) -> tuple[list[Column], list[Column]]:
    """Return the columns that fit into `width` characters in their order, and those that do not.

    Units move to the headings if that gives room to more columns. Where not even all factors fit, each row has the
    number of its case.
    """
    if _width(columns) <= width:
        return list(columns), []
    factors = [column for column in columns if column.is_factor]
    wanted = [column.compact for column in columns]
    values = [_least(column) + GAP for column in wanted if not column.is_factor]
    reserve = max(LEAST_VALUES, values[0]) if values else 0
    if sum(_least(column) + GAP for column in factors) > width - reserve:
        count = len(columns[0].cells)
        wanted.insert(0, Column(NUMBER, NUMBER, tuple(map(str, range(1, count + 1))), is_factor=True))
    kept: list[Column] = []
    dropped: list[Column] = []
    for column in wanted:
        room = width - (reserve if column.is_factor else 0)
        full = any(not unfit.is_factor for unfit in dropped)
        fits = _width([*kept, column]) <= room and (column.is_factor or not full)
        (kept if fits else dropped).append(column)
    return kept, dropped


def table(
    columns: Sequence[Column],
    width: int,
    text: Callable[[str], str],
    *,
    ascii_only: bool,
    sections: Collection[int] = (),
) -> Table:
    """Return the table, whose columns fit into `width`; there is a line above the rows in `sections`."""
    drawn = Table(
        box=box.ASCII2 if ascii_only else box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column, wide in zip(columns, _widths(columns, width), strict=True):
        is_left = column.is_factor or column.is_words
        drawn.add_column(Text(text(column.heading)), justify="left" if is_left else "right", width=wide)
    for number, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if number in sections:
            drawn.add_section()
        drawn.add_row(
            *(
                Text(text(cell), style=column.styles.get(cell, ""))
                for column, cell in zip(columns, cells, strict=True)
            )
        )
    return drawn


def _least(column: Column) -> int:
    """Return the characters that a column takes at least: of its longest word, or value that must not be folded."""
    words = max(map(len, column.heading.split()), default=1)
    cells = (max(map(len, cell.split()), default=0) if column.folds else len(cell) for cell in column.cells)
    return max(words, *cells) if column.cells else words


def _width(columns: Sequence[Column]) -> int:
    return sum(map(_least, columns)) + GAP * (len(columns) - 1)


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Return the width of each column: its least, then room for cells, headings of two lines, and of one."""
    spare = width - _width(columns)
    widths = [_least(column) for column in columns]
    for wish in (_widest_cell, _two_lines, lambda column: len(column.heading)):
        for number, column in enumerate(columns):
            growth = max(0, min(spare, wish(column) - widths[number]))
            widths[number] += growth
            spare -= growth
    return widths


def _widest_cell(column: Column) -> int:
    return max(map(len, column.cells), default=0)


def _two_lines(column: Column) -> int:
    """Return the characters in which the heading takes two lines."""
    words = column.heading.split()
    splits = [(" ".join(words[:position]), " ".join(words[position:])) for position in range(len(words))]
    return min((max(map(len, split)) for split in splits), default=0)
