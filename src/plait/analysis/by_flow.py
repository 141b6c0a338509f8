"""The rows of one flow's side in a trial's tables: each table is divided once, not searched for each metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl


class DividedTables(Mapping[str, pl.DataFrame]):
    """The tables of a trial by name, which also remember their rows by flow and side."""

    def __init__(self, tables: Mapping[str, pl.DataFrame]) -> None:
        self._tables = tables
        self._parts: dict[str, dict[tuple[object, ...], pl.DataFrame]] = {}

    def __getitem__(self, table: str) -> pl.DataFrame:
        return self._tables[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def rows(self, table: str, flow: int, side: str) -> pl.DataFrame:
        """Return the rows of one side of a flow in a table that has the columns `flow` and `side`, in their order."""
        if table not in self._parts:
            self._parts[table] = self._tables[table].partition_by("flow", "side", as_dict=True)
        return self._parts[table].get((flow, side), self._tables[table].clear())


def rows_of(tables: Mapping[str, pl.DataFrame], table: str, flow: int, side: str) -> pl.DataFrame:
    """Return the rows of one side of a flow in a table; for many flows, pass `DividedTables`."""
    return (tables if isinstance(tables, DividedTables) else DividedTables(tables)).rows(table, flow, side)
