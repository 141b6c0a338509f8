r"""Digests of measured data: equal data has equal digests on every machine.

The digest covers only content (table and column names, types, values and nulls, in order) in the encoding below. It
does not depend on the bytes of a Parquet file, its compression, or the version of a library.

    trial   = SHA-256 of, for every table by name: header, then every column
    header  = "plait-table 1\n" name "\n" rows "\n"
    column  = name "\n" type "\n", one bit per row for "has a value" (least significant first), then
              int64: little-endian values, 0 where null
              bool:  one bit per row, 0 where null
              string: length in bytes of each (int64, 0 where null), then all UTF-8 bytes

A column that earlier versions of the tables lack (`LATER_COLUMNS`) is left out where it is null in all rows, so results
of earlier versions keep their digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plait.dataset.model import LATER_COLUMNS, Tables

_MOST_EXACT = 2.0**53
"""Below it, float64 holds every integer exactly."""
_KINDS: dict[pl.DataType, str] = {pl.Int64(): "int64", pl.Boolean(): "bool", pl.String(): "string"}


def trial_digest(tables: Tables) -> str:
    """Return "sha256:..." over the content of a trial's tables.

    Raises:
        TypeError: a column has a type other than Int64, String and Boolean, the types of the contract.
    """
    digest = hashlib.sha256()
    for name in sorted(tables):
        frame = tables[name]
        digest.update(f"plait-table 1\n{name}\n{frame.height}\n".encode())
        later = LATER_COLUMNS.get(name, ())
        for column in frame.get_columns():
            if column.name in later and column.null_count() == frame.height:
                continue
            digest.update(_header(column))
            for content in _content(column):
                digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def study_digest(trials: Iterable[tuple[str, int, str]]) -> str:
    """Return "sha256:..." over (case, index, trial digest) of every completed trial, in sorted order."""
    digest = hashlib.sha256(b"plait-study 1\n")
    for case, index, trial in sorted(trials):
        digest.update(json.dumps([case, index, trial]).encode() + b"\n")
    return f"sha256:{digest.hexdigest()}"


def _header(column: pl.Series) -> bytes:
    """Return the name and type that precede a column's content."""
    kind = _KINDS.get(column.dtype)
    if kind is None:
        raise TypeError(f"column {column.name}: no canonical form for {column.dtype}")
    return f"{column.name}\n{kind}\n".encode()


def _content(column: pl.Series) -> tuple[bytes, ...]:
    """Return which rows of a column have a value, and the values.

    Tables are small, so a call of polars for each column would cost more than its rows: numpy and lists do the work.
    """
    if column.dtype == pl.Int64:
        known, integers = _integers(column)
        return _bits(known), integers.astype("<i8", copy=False).tobytes()
    values = column.to_list()
    known = np.fromiter((value is not None for value in values), bool, len(values))
    if column.dtype == pl.Boolean:
        return _bits(known), _bits(np.fromiter((value is True for value in values), bool, len(values)))
    texts = [b"" if text is None else text.encode() for text in values]
    lengths = np.fromiter(map(len, texts), "<i8", len(texts)).tobytes()
    return _bits(known), lengths, b"".join(texts)


def _integers(column: pl.Series) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which rows of an Int64 column have a value, and the values with 0 for null."""
    if not column.null_count():
        return np.ones(len(column), dtype=bool), column.to_numpy()
    floats = column.to_numpy()  # float64, NaN for null
    known = ~np.isnan(floats)
    filled = np.where(known, floats, 0.0)
    if np.abs(filled).max(initial=0.0) >= _MOST_EXACT:
        return known, column.fill_null(0).to_numpy()
    return known, filled.astype(np.int64)


def _bits(values: NDArray[np.bool_]) -> bytes:
    """Return truth values as bits, the first row in the least significant one."""
    return np.packbits(values, bitorder="little").tobytes()
