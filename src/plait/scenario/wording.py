"""How mistakes are put into words: the nearest right name, and values cut to a line."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_MANY = 12
_LONG = 40


def nearest(name: str, known: Collection[str]) -> str:
    """`did you mean 'x'?`, or the known names when none is near and they are few; empty when neither helps."""
    close = closest(name, known)
    if close is not None:
        return f"did you mean '{close}'?"
    if 0 < len(known) <= _MANY:
        return f"there is: {', '.join(sorted(known))}"
    return ""


def closest(name: str, known: Collection[str]) -> str | None:
    """The known name that is most like this one, if one is near."""
    close = difflib.get_close_matches(name[:_LONG], known, n=1, cutoff=0.6) if len(known) <= 1000 else []
    return close[0] if close else None


def shown(value: object) -> str:
    """A value as a message shows it: on one line, and not longer than that."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}.."
