"""How mistakes are put into words: the nearest right name, and values cut to a line."""

from __future__ import annotations

import difflib
from heapq import nlargest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_MANY = 12
_COMPARED = 40
"""Names that are compared letter by letter, which takes some 50 us each."""
_LONG = 40


def nearest(name: str, names: Collection[str]) -> str:
    """`did you mean 'x'?`, or the known names when none is near and they are few; empty when neither helps."""
    close = closest(name, names)
    if close is not None:
        return f"did you mean '{close}'?"
    if 0 < len(names) <= _MANY:
        return f"there is: {', '.join(sorted(names))}"
    return ""


def closest(name: str, names: Collection[str]) -> str | None:
    """The known name that is most like this one, if one is near."""
    name = name[:_LONG]
    if len(names) > _COMPARED:
        names = nlargest(_COMPARED, names, key=lambda other: _shared_ends(name, other))
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return close[0] if close else None


def _shared_ends(a: str, b: str) -> int:
    """Return how many characters two names share at their beginnings and ends: where a typing error leaves them."""
    return _shared(a, b) + _shared(a[::-1], b[::-1])


def _shared(a: str, b: str) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def abbreviated(value: object) -> str:
    """A value as a message shows it: on one line, and not longer than that."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}.."
