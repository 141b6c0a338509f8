"""Parts of a report that could not be computed: the one place that decides which errors a report survives.

An analysis that raises must not take the report of a finished study with it. Inside `collected()`, `part` returns a
substitute where its function raises, and notes the gap, which becomes a caution. Outside, the error propagates.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import PurePath
from typing import TypeVar

from polars.exceptions import PanicException

from plait.cautions import ANALYSIS_FAILED, Caution
from plait.errors import DataError

T = TypeVar("T")
S = TypeVar("S")
_NOT_OURS = (DataError, MemoryError, OSError)
"""Damaged files and a machine that lacks something: no report can be made of them."""
_REMEDY = (
    "the tables are complete; report this as a bug; `plait report` of a fixed version adds the missing part"
)


_Gaps = dict[str, Caution]
"""The cautions about missing parts by their messages, in the order in which the analysis met them."""
_COLLECTOR: ContextVar[_Gaps | None] = ContextVar("gaps", default=None)


@contextmanager
def collected() -> Iterator[_Gaps]:
    """Yield the collector of the gaps that `part` records in this block."""
    gaps: _Gaps = {}
    token = _COLLECTOR.set(gaps)
    try:
        yield gaps
    finally:
        _COLLECTOR.reset(token)


def part(missing: str, compute: Callable[[], T], without: S) -> T | S:
    """Return what `compute` returns; inside `collected()`, note the part `missing` and return `without` if it raises.

    Raises:
        DataError, MemoryError, OSError: always; anything else: outside `collected()`.
    """
    gaps = _COLLECTOR.get()
    if gaps is None:
        return compute()
    try:
        return compute()
    except _NOT_OURS:
        raise
    except (Exception, PanicException) as error:  # noqa: BLE001 - whatever an analysis raises, the rest is reported
        message = f"{missing}: missing, because the analysis raised {_named(error)}"
        gaps[message] = Caution(code=ANALYSIS_FAILED, message=message, remedy=_REMEDY)
        return without


def noted() -> tuple[Caution, ...]:
    """Return the cautions of this block so far; none outside `collected()`."""
    return tuple((_COLLECTOR.get() or {}).values())


def _named(error: BaseException) -> str:
    """Return an error's kind, its words, and the last line of plait that it passed."""
    lines = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "plait" in PurePath(frame.filename).parts
    ]
    words = " ".join(str(error).split())[:200]
    kind = f"{type(error).__name__}: {words}" if words else type(error).__name__
    if not lines:
        return kind
    parts = PurePath(lines[-1].filename).parts
    inside = parts[len(parts) - parts[::-1].index("plait") :]
    return f"{kind} ({'/'.join(inside)}:{lines[-1].lineno})"
