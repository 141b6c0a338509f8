"""From Python values to the data files that a page loads: a script with one call, whose argument is JSON.

A page that was opened as a file cannot fetch others, but it can load scripts. So the data have this form everywhere.
JSON text cannot end the script or begin a tag: `<` is escaped, as is everything beyond ASCII.
"""

from __future__ import annotations

import json
import math
from typing import Any

DIGITS = 7


def data_script(key: str, value: Any) -> bytes:
    """Return the script that hands `value` to the page under `key`."""
    return f"plait.put({_json(key)},{_json(value)});\n".encode("ascii")


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def rounded(value: float | None) -> float | int | None:
    """Return a number with seven significant digits; None for what is not finite."""
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not math.isfinite(value):
        return None
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def number_of(value: object) -> float | int | None:
    """Return a number of a stranger's JSON; None for null.

    Raises TypeError for anything else.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{type(value).__name__} is no number")
    return rounded(value)
