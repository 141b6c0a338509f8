"""The rows and columns of one flow's side in a trial's tables: each table is divided once, not for each metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plait.analysis.translation import SUBFLOW_ENDS, path_name
from plait.dataset.model import Tables
from plait.plan.model.plan import Flow


class DividedTables(Mapping[str, pl.DataFrame]):
    """The tables of a trial by name, which also remember the places of each flow's and side's rows."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._places: dict[str, dict[tuple[int, str | None], list[int]]] = {}
        self._lists: dict[tuple[str, str], list[Any]] = {}

    def __getitem__(self, table: str) -> pl.DataFrame:
        return self._tables[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def rows(self, table: str, flow: int, side: str | None = None) -> pl.DataFrame:
        """Return the rows of a flow in their order; in a table with the column `side`, those of this side."""
        places = self._places_in(table).get((flow, side))
        return self._tables[table][places] if places else self._tables[table].clear()

    def columns(self, table: str, flow: int, side: str, *names: str) -> list[list[Any]]:
        """Return columns of one side of a flow in a table that has the columns `flow` and `side`.

        A metric needs a few columns of a few rows. Lists of these cost a fraction of calls of polars.
        """
        places = self._places_in(table).get((flow, side), [])
        return [
            [column[place] for place in places] for column in (self.column(table, name) for name in names)
        ]

    def column(self, table: str, name: str) -> list[Any]:
        """Return all values of one column of a table."""
        values = self._lists.get((table, name))
        if values is None:
            values = self._lists[table, name] = self._tables[table][name].to_list()
        return values

    def _places_in(self, table: str) -> dict[tuple[int, str | None], list[int]]:
        """Return the numbers of the rows of each flow and side; the side is None in a table without that column."""
        places = self._places.get(table)
        if places is None:
            places = self._places[table] = {}
            has_sides = "side" in self._tables[table].columns
            sides = self.column(table, "side") if has_sides else repeat(None)
            for number, key in enumerate(zip(self.column(table, "flow"), sides, strict=False)):
                places.setdefault(key, []).append(number)
        return places


def divided(tables: Tables) -> DividedTables:
    """Return the tables with a memory of their rows by flow; for many flows, divide them once."""
    return tables if isinstance(tables, DividedTables) else DividedTables(tables)


def columns_of(tables: Tables, table: str, flow: int, side: str, *names: str) -> list[list[Any]]:
    """Return columns of one side of a flow in a table; for many flows, pass `DividedTables`."""
    return divided(tables).columns(table, flow, side, *names)


def rows_of(tables: Tables, table: str, flow: int, side: str) -> pl.DataFrame:
    """Return the rows of one side of a flow in a table; for many flows, pass `DividedTables`."""
    return divided(tables).rows(table, flow, side)


def known_samples(frame: pl.DataFrame, column: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the times in us and the values of an integer column where both are known, in the order of rows.

    Integers from 2^53 are rounded to float64. Calls of polars that drop the nulls take ten times as long.
    """
    times_us, values = (frame[name].to_numpy().astype(float, copy=False) for name in ("t_us", column))
    known = ~(np.isnan(times_us) | np.isnan(values))  # polars converts null to NaN
    return (times_us, values) if known.all() else (times_us[known], values[known])


def increases(counters: pl.DataFrame, counter: str) -> dict[str, int]:
    """Return by how much a counter of the kernel grew, at each node where it did."""
    rows = counters.filter(pl.col("counter") == counter).select("node", "before", "after")
    return {node: last - first for node, first, last in rows.iter_rows() if last > first}


@dataclass
class SenderSubflow:
    """A subflow of the sending side of a flow: its path, and its greatest counters until the flow ended."""

    path: str
    acked_bytes: int | None = None
    retransmitted_segments: int | None = None


def sender_subflows(tables: Tables, flow: Flow, end_us: int | None) -> list[SenderSubflow]:
    """Return the subflows of the sending side of `flow`, with their counters at its end (`end_us`).

    A subflow without a sample until then has those of its next row: the agent samples each flow as it ends, and a
    short one may have no other sample.
    """
    names = ("t_us", "subflow", "acked_bytes", "retransmitted_segments", *SUBFLOW_ENDS)
    columns = columns_of(tables, "subflows", flow.carrier, flow.sender, *names)
    subflows: dict[int, SenderSubflow] = {}
    last_us: dict[int, int] = {}
    for t_us, number, acked, segments, *ends in zip(*columns, strict=True):
        if t_us is None:
            continue
        if number not in subflows:
            subflows[number] = SenderSubflow(
                path_name(flow.paths, dict(zip(SUBFLOW_ENDS, ends, strict=True)))
            )
            last_us[number] = t_us if end_us is None else max(t_us, end_us)
        if end_us is not None and t_us > last_us[number]:
            continue
        subflow = subflows[number]
        subflow.acked_bytes = _greater(subflow.acked_bytes, acked)
        subflow.retransmitted_segments = _greater(subflow.retransmitted_segments, segments)
    return list(subflows.values())


def _greater(first: int | None, second: int | None) -> int | None:
    """Return the greater number; the known one where the other is not."""
    return second if first is None else first if second is None else max(first, second)
