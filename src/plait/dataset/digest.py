r"""Digests of measured data: equal data has equal digests on every machine.

The digest covers only content (table and column names, types, values and nulls, in order) in the encoding below. It
does not depend on the bytes of a Parquet file, its compression, or the version of a library.

    trial   = SHA-256 of, for every table by name: header, then every column
    header  = "plait-table 1\n" name "\n" rows "\n"
    column  = name "\n" type "\n", one bit per row for "has a value" (least significant first), then
              int64: little-endian values, 0 where null
              bool:  one bit per row, 0 where null
              string: length in bytes of each (int64, 0 where null), then all UTF-8 bytes
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import polars.selectors as cs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KNOWN = "\0known"
_KINDS: dict[pl.DataType, str] = {pl.Int64(): "int64", pl.Boolean(): "bool", pl.String(): "string"}


def trial_digest(tables: Mapping[str, pl.DataFrame]) -> str:
    """Return "sha256:..." over the content of a trial's tables.

    Raises:
        TypeError: a column has a type other than Int64, String and Boolean, the types of the contract.
    """
    digest = hashlib.sha256()
    for name in sorted(tables):
        frame = tables[name]
        digest.update(f"plait-table 1\n{name}\n{frame.height}\n".encode())
        headers = [_header(column) for column in frame.get_columns()]
        filled, known = _without_nulls(frame)
        for header, column in zip(headers, filled, strict=True):
            digest.update(header)
            digest.update(_presence(known.get(column.name), frame.height))
            if column.dtype == pl.Boolean:
                digest.update(_bits(column))
            elif column.dtype == pl.String:
                texts = [text.encode() for text in column.to_list()]
                digest.update(np.fromiter(map(len, texts), "<i8", len(texts)).tobytes())
                digest.update(b"".join(texts))
            else:
                digest.update(_integers(column))
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


def _without_nulls(frame: pl.DataFrame) -> tuple[list[pl.Series], dict[str, pl.Series]]:
    """Return the columns with 0, false or an empty text for null, and by name which rows of those with nulls are known.

    It is one call of polars, which costs more than these few rows.
    """
    partial = [column.name for column in frame.get_columns() if column.null_count()]
    if not partial:
        return frame.get_columns(), {}
    made = frame.select(
        cs.by_dtype(pl.Int64).fill_null(0),
        cs.by_dtype(pl.Boolean).fill_null(value=False),
        cs.by_dtype(pl.String).fill_null(""),
        pl.struct(pl.col(partial).is_not_null()).alias(_KNOWN),
    )
    known = made.drop_in_place(_KNOWN).struct.unnest()
    return [made[name] for name in frame.columns], {name: known[name] for name in partial}


def _presence(known: pl.Series | None, rows: int) -> bytes:
    """Return for each row whether it has a value, as bits; all have one where `known` is missing."""
    if known is None:
        return np.packbits(np.ones(rows, dtype=bool), bitorder="little").tobytes()
    return _bits(known)


def _integers(column: pl.Series) -> bytes:
    """Return an Int64 column without nulls as little-endian bytes."""
    return column.to_numpy().astype("<i8", copy=False).tobytes()


def _bits(column: pl.Series) -> bytes:
    """Return a Boolean column without nulls as bits, the first row in the least significant one."""
    return np.packbits(column.to_numpy(), bitorder="little").tobytes()
