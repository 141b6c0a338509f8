"""Read and write the tables of a trial as Parquet, with errors that name the file and the remedy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl
from polars.exceptions import PanicException, PolarsError

from plait.dataset.model import ALL_TABLES, LATER_COLUMNS
from plait.errors import DataError
from plait.files import Folder

MOST_TABLE_BYTES = 1 << 30
MOST_CELLS = 1 << 29
"""Rows times columns of one table: 4 GiB in memory. A Parquet file of some kilobytes can claim any number of rows."""

# polars reports damage as its own errors, as OSError, and sometimes as a panic of its Rust core.
READ_ERRORS = (PolarsError, PanicException, OSError, ValueError)
RERUN = "delete the trial's folder and run the study again (finished trials are not run twice)"


def check_columns(columns: Mapping[str, object], table: str, path: Path) -> None:
    """Raise DataError unless `columns` are exactly those of `table` in the contract.

    Args:
        columns: the columns that there are, with their types.
        table: its name, a key of `ALL_TABLES`.
        path: its file, for the message.
    """
    expected = ALL_TABLES[table]
    problems = [
        *(f"`{name}` of table `{table}` is missing" for name in expected if name not in columns),
        *(
            f"`{name}` of table `{table}` is {columns[name]}, expected {dtype}"
            for name, dtype in expected.items()
            if columns.get(name, dtype) != dtype
        ),
        *(f"`{name}` does not belong to table `{table}`" for name in columns if name not in expected),
    ]
    if problems:
        raise DataError(
            f"{path}: column {problems[0]}; "
            "the agent and plait have different versions: build both from the same source"
        )
    if list(columns) != list(expected):
        raise DataError(
            f"{path}: the columns of table `{table}` are in the order {', '.join(columns)}; "
            f"expected {', '.join(expected)}"
        )


def read_table(folder: Folder, table: str) -> pl.DataFrame:
    """Return one table of the trial in `folder`, checked against the contract.

    Raises:
        DataError: the file is missing or damaged, its columns differ, or it is larger than plait writes.
    """
    path = folder.path / f"{table}.parquet"
    try:
        frame = _lazy(folder, table).collect()
    except FileNotFoundError as error:
        raise DataError(f"{path}: the table `{table}` is missing; {RERUN}") from error
    except READ_ERRORS as error:
        raise DataError(
            f"{path}: this is not a readable Parquet file ({first_line(error)}); {RERUN}"
        ) from error
    _check_height(frame, table, path)
    return frame


def read_tables(folder: Folder, tables: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Return several tables of the trial in `folder` as `read_table` does, in one pass.

    A pass costs more than the few rows of a table, so that one pass for all takes half the time.

    Raises:
        DataError: as `read_table`.
    """
    try:
        frames = pl.collect_all([_lazy(folder, table) for table in tables])
    except READ_ERRORS:  # one of them names its file
        return {table: read_table(folder, table) for table in tables}
    for table, frame in zip(tables, frames, strict=True):
        _check_height(frame, table, folder.path / f"{table}.parquet")
    return dict(zip(tables, frames, strict=True))


def _lazy(folder: Folder, table: str) -> pl.LazyFrame:
    """Return a table that is not decoded yet; its columns are those of the contract (DataError, or READ_ERRORS)."""
    path = folder.path / f"{table}.parquet"
    # Reading from bytes takes half the time of reading from a path, as these files are small.
    content = folder.read(path.name, MOST_TABLE_BYTES)
    lazy = pl.scan_parquet(content, use_statistics=False, n_rows=most_rows(table) + 1, parallel="none")
    columns = lazy.collect_schema()
    missing = [column for column in LATER_COLUMNS.get(table, ()) if column not in columns]
    lazy = lazy.with_columns(pl.lit(None, ALL_TABLES[table][column]).alias(column) for column in missing)
    check_columns(lazy.collect_schema(), table, path)
    return lazy


def _check_height(frame: pl.DataFrame, table: str, path: Path) -> None:
    most = most_rows(table)
    if frame.height > most:
        raise DataError(
            f"{path}: the table `{table}` has more than {most} rows, the most that plait reads; "
            "make the trial shorter, or sample less often"
        )


def most_rows(table: str) -> int:
    """Return the most rows of a table that plait writes and reads."""
    return MOST_CELLS // len(ALL_TABLES[table])


def write_table(frame: pl.DataFrame, folder: Path, table: str) -> None:
    """Write one table of a trial to `folder`/TABLE.parquet.

    Raises:
        DataError: the columns differ from the contract, there are too many rows, or the file cannot be written.
    """
    path = folder / f"{table}.parquet"
    check_columns(frame.schema, table, path)
    _check_height(frame, table, path)
    try:
        # Statistics help queries over many files; plait reads these small files completely.
        with Folder(folder).create(path.name) as file:
            frame.write_parquet(file, compression="zstd", compression_level=3, statistics=False)
    except READ_ERRORS as error:
        raise DataError(
            f"{path}: cannot write the table ({first_line(error)}); check space and permissions"
        ) from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's text, because polars adds pages of context."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).splitlines()[0] if str(error) else type(error).__name__
