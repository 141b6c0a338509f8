"""Words of messages: the nearest valid name, and values cut to a line."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from heapq import nlargest

_MANY = 12
_COMPARED = 40
"""How many names to compare letter by letter, which takes some 50 us each."""
_LONG = 40


def nearest(name: str, names: Collection[str]) -> str:
    """Return `did you mean 'x'?`, or all names if none is near and they are few; empty otherwise."""
    close = closest(name, names)
    if close is not None:
        return f"did you mean '{close}'?"
    if 0 < len(names) <= _MANY:
        return f"use one of: {', '.join(sorted(names))}"
    return ""


def closest(name: str, names: Collection[str]) -> str | None:
    """Return the most similar name; None if none is near."""
    name = name[:_LONG]
    if len(names) > _COMPARED:
        names = nlargest(_COMPARED, names, key=lambda other: _shared_ends(name, other))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return close[0] if close else None


def _shared_ends(a: str, b: str) -> int:
    """Return the length of the common prefix and suffix of two names, which a typing error does not change."""
    return _shared(a, b) + _shared(a[::-1], b[::-1])


def _shared(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def abbreviated(value: object) -> str:
    """Return a value as a message shows it, cut to a line."""
    if isinstance(value, str):
        return repr(value if len(value) <= _LONG else f"{value[:_LONG]}..")
    text = str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}.."
