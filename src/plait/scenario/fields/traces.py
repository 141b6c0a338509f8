"""Parse traces: recorded conditions of a link, in the format of mahimahi or as CSV; `inputs` reads the files.

mahimahi: one time in ms per line, in ascending order. Each is an opportunity to deliver 1500 bytes of IP packets.

CSV: a header with `time` and any of `rate`, `delay`, `loss`, each with its unit (`time [s],rate [mbit]`), or without a
unit if every value has one. The first row is for time 0; each holds until the next.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from plait.parts import Delay, Part
from plait.units import Duration, Rate, Ratio

Format = Literal["mahimahi", "csv"]

OPPORTUNITY_BYTES = 1500
"""Bytes of IP packets per opportunity."""
MAX_OPPORTUNITIES = 4_000_000
MAX_ROWS = 100_000
MAX_TRACE_BYTES = 64 * 2**20
LAST_MS = (2**32 - 1) // 1000
STANDSTILL = Rate(8)
"""The rate of a row with rate 0, in bit/s: the least rate of the kernel's tbf is 1 byte/s."""

_COLUMN = re.compile(r"\s*(time|rate|delay|loss)\s*(?:[\[(]\s*([^\])]*?)\s*[\])])?\s*", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_ZERO_RATE = re.compile(r"0+(\.0*)?\s*([kmgt]?bit)?", re.IGNORECASE)


class TraceSpec(Part):
    """A recorded trace for a direction of a link."""

    file: str
    """Path of the file, relative to the scenario file, or absolute."""
    format: Format | None = None
    """Format of the file. Default: csv for names that end in .csv, else mahimahi."""
    loop: bool = True
    """Whether to repeat the trace. Otherwise its last CSV row stays, and a mahimahi link delivers nothing more."""

    @property
    def kind(self) -> Format:
        """The format, explicit or by the name of the file."""
        return self.format or ("csv" if self.file.lower().endswith(".csv") else "mahimahi")


@dataclass(frozen=True)
class Opportunities:
    """A mahimahi trace."""

    times_ms: array[int]

    @property
    def period_ms(self) -> int:
        """The last time, at which a looped trace starts again."""
        return self.times_ms[-1]

    @property
    def rate_bps(self) -> int:
        """The mean rate of the trace in bit/s of IP packets."""
        return len(self.times_ms) * OPPORTUNITY_BYTES * 8 * 1000 // max(1, self.period_ms)


@dataclass(frozen=True)
class TraceRow:
    """A row of a CSV trace: the conditions from `at` ns on, by the names of its columns."""

    at: int
    conditions: dict[str, Rate | Delay | Ratio]


@dataclass(frozen=True)
class Rows:
    """A CSV trace."""

    rows: tuple[TraceRow, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the conditions that it sets."""
        return tuple(self.rows[0].conditions)

    def steps(self, end: int, *, loop: bool) -> Iterator[TraceRow]:
        """Yield the rows with their start times, up to `end` ns; `loop` repeats them without the last."""
        period = self.rows[-1].at
        for lap in range(end // period + 1 if loop else 1):
            for row in self.rows[:-1] if loop else self.rows:
                at = lap * period + row.at
                if at > end:
                    return
                yield TraceRow(at, row.conditions)


Trace = Opportunities | Rows


def read_trace(text: str, kind: Format, *, loop: bool) -> Trace:
    """Return the trace in a text. Raises ValueError, `line 3: problem; remedy`."""
    return _opportunities(text, loop=loop) if kind == "mahimahi" else _rows(text, loop=loop)


def _opportunities(text: str, *, loop: bool) -> Opportunities:
    times = array("I")
    before = 0
    for number, line in enumerate(text.splitlines(), 1):
        word = line.strip()
        if not word:
            continue
        if not (word.isascii() and word.isdigit()) or int(word[:20]) > LAST_MS:
            raise ValueError(
                f"line {number}: '{word[:30]}' is not a time in ms; write a whole number up to {LAST_MS}"
            )
        if int(word) < before:
            raise ValueError(
                f"line {number}: {word} ms comes after {before} ms; write times in ascending order"
            )
        if len(times) == MAX_OPPORTUNITIES:
            raise ValueError(
                f"line {number}: there are more than {MAX_OPPORTUNITIES} opportunities; shorten the trace"
            )
        before = int(word)
        times.append(before)
    if not times:
        raise ValueError("the file is empty; write the time of an opportunity in ms on each line")
    if loop and not before:
        raise ValueError("all opportunities are at 0 ms, so the trace cannot repeat; write loop: false")
    return Opportunities(times)


def _rows(text: str, *, loop: bool) -> Rows:
    reader = csv.reader(text.splitlines())
    columns: list[tuple[str, str]] = []
    rows: list[TraceRow] = []
    for cells in reader:
        if not cells or not "".join(cells).strip():
            continue
        where = f"line {reader.line_num}"
        try:
            if not columns:
                columns = _header(cells)
                continue
            row = _row(cells, columns)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        if not rows and row.at:
            raise ValueError(f"{where}: the first row is for time {Duration(row.at)}; write a row for time 0")
        if rows and row.at <= rows[-1].at:
            raise ValueError(
                f"{where}: the time {Duration(row.at)} is not after {Duration(rows[-1].at)}; "
                "write times in ascending order"
            )
        if len(rows) == MAX_ROWS:
            raise ValueError(f"{where}: there are more than {MAX_ROWS} rows; shorten the trace")
        rows.append(row)
    if not rows:
        raise ValueError(
            "the file has no rows; write a header such as time [s],rate [mbit] and a row for time 0"
        )
    if loop and len(rows) < 2:
        raise ValueError("the trace has one row, so it cannot repeat; add a row, or write loop: false")
    return Rows(tuple(rows))


def _header(cells: list[str]) -> list[tuple[str, str]]:
    """Return (column, unit or empty) in their order."""
    columns = []
    for cell in cells:
        match = _COLUMN.fullmatch(cell)
        if match is None:
            raise ValueError(
                f"'{cell.strip()[:30]}' is not a column; write time, rate, delay or loss, for example rate [mbit]"
            )
        columns.append((match[1].lower(), match[2] or ""))
    names = [name for name, _ in columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"there are two columns {twice}; remove one")
    if "time" not in names or len(names) < 2:
        raise ValueError(
            "a trace needs the column time and one of rate, delay, loss; write for example time [s],rate [mbit]"
        )
    return columns


def _row(cells: list[str], columns: list[tuple[str, str]]) -> TraceRow:
    if len(cells) != len(columns):
        raise ValueError(
            f"there are {len(cells)} values for {len(columns)} columns; write one value for each"
        )
    values: dict[str, Any] = {}
    for (name, unit), cell in zip(columns, cells, strict=True):
        text = cell.strip()
        if unit and _NUMBER.fullmatch(text):
            text += unit
        try:
            values[name] = _READERS[name](text)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return TraceRow(int(values["time"]), {name: values[name] for name in _CONDITIONS if name in values})


class _Time(Duration):
    """A time in a trace."""

    step = 1000


def _rate(text: str) -> Rate:
    """Return a rate; 0 stops the link."""
    return STANDSTILL if _ZERO_RATE.fullmatch(text) else Rate.parse(text)


_CONDITIONS = {"rate": _rate, "delay": Delay.parse, "loss": Ratio.parse}
_READERS = {"time": _Time.parse, **_CONDITIONS}
