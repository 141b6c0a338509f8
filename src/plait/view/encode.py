"""From Python values to the data files that a page loads: a script with one call, whose argument is JSON.

A page that was opened as a file cannot fetch others, but it can load scripts. So the data have this form everywhere.
JSON text cannot end the script or begin a tag: `<` is escaped, as is everything beyond ASCII.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def rounded_column(column: NDArray[np.float64]) -> list[float | None]:
    """Return `rounded` of many numbers, in a tenth of the time; NaN becomes None."""
    with np.errstate(all="ignore"):
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(np.abs(column))))
        short = np.where(np.isfinite(scale), np.round(column * scale) / scale, column)
    finite = np.isfinite(short)
    whole = finite & (np.floor(short) == short) & (np.abs(short) < 2**53)
    rounded_values: list[float | None] = short.tolist()
    for place in np.flatnonzero(~finite).tolist():
        rounded_values[place] = None
    for place, value in zip(
        np.flatnonzero(whole).tolist(), short[whole].astype(np.int64).tolist(), strict=True
    ):
        rounded_values[place] = value
    return rounded_values
