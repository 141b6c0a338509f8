"""Numbers with their units, and settings, as a person reads them; the same everywhere they are shown."""

from __future__ import annotations

import math
from typing import Any

MISSING = "\N{EN DASH}"
"""Shown for a value that was not measured."""

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def significant(value: float, digits: int = 3) -> str:
    """Return `value` with `digits` significant digits, never in exponent form: 4.78, 92.5, 1240."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    rounded = round(value, decimals)
    # Rounding may carry into the next decade: 9.996 is 10.0, not 10.00.
    if rounded and math.floor(math.log10(abs(rounded))) > math.floor(math.log10(abs(value))):
        decimals = max(decimals - 1, 0)
    return f"{value:.{decimals}f}"


def rate(value: float | None) -> str:
    """Return bits per second as "4.78 Mbit/s"."""
    return _scaled(value, "bit/s")


def size(value: float | None) -> str:
    """Return bytes as "64.2 kB" (powers of ten)."""
    return _scaled(value, "B")


def seconds(value: float | None) -> str:
    """Return seconds as "37.9 s" or "420 ms"."""
    if value is None:
        return MISSING
    # 999.7 ms would read 1000 ms
    return f"{significant(value)} s" if abs(value) >= 0.9995 else f"{significant(value * 1e3)} ms"


def micros(value: float | None) -> str:
    """Return microseconds as "1.12 s" or "20.4 ms"."""
    return seconds(None if value is None else value / 1e6)


def percent(value: float | None, digits: int = 3) -> str:
    """Return a ratio as "95.6 %"."""
    return MISSING if value is None else f"{significant(value * 100, digits)} %"


def change(ratio: float, decimals: int | None = None) -> str:
    """Return a ratio as the change that it is: 1.918 is "+91.8 %"; below 0.05 % with two decimals."""
    if decimals is None:
        decimals = 1 if ratio == 1 or abs(ratio - 1) >= 0.0005 else 2
    percentage = round((ratio - 1) * 100, decimals) + 0.0  # no minus before a zero
    return f"{percentage:+.{decimals}f} %".replace("-", "\N{MINUS SIGN}")


def p_words(p_value: float) -> str:
    """Return a p value as "p = 0.032"."""
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.2g}"


def within(margin: float) -> str:
    """Return the smallest difference of interest as "within 1 %"."""
    return f"within {plain(percent(margin, 2))}"


def times(ratio: float) -> str:
    """Return a ratio as "1.92 times", with as many digits as it needs to differ from 1."""
    texts = (significant(ratio, digits) for digits in (3, 4, 5))
    return f"{next((text for text in texts if float(text) != 1), significant(ratio))} times"


def change_interval(low: float, high: float) -> str:
    """Return an interval of ratios as changes, with one or two decimals; in words when they cannot show it."""
    for decimals in (1, 2):
        if round((low - 1) * 100, decimals) != round((high - 1) * 100, decimals):
            return f"95 % interval {change(low, decimals)} to {change(high, decimals)}"
    return "95 % interval narrower than 0.01 %"


def count(value: float | None) -> str:
    """Return a count that may be a mean: "12", "12.4"."""
    if value is None:
        return MISSING
    return f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.1f}"


def plain(text: str) -> str:
    """Return a number with its unit without zeros that say nothing: "5.00 Mbit/s" is "5 Mbit/s"."""
    number, _, unit = text.partition(" ")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}".rstrip()


def number_word(count: int) -> str:
    """Return a small number as a word, a large one in digits."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[count] if 0 <= count < len(words) else str(count)


def all_of(count: int, noun: str) -> str:
    """Return a whole number of things: "the trial", "both trials", "all 3 trials"."""
    words = {1: f"the {noun}", 2: f"both {noun}s"}
    return words.get(count, f"all {count} {noun}s")


def capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def lowered(text: str) -> str:
    """Return a text that begins with a small letter, unless it begins with an abbreviation."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def short_name(setting: str, parts: int = 1) -> str:
    """Return the end of a setting's path: `network.links.*.rate` is "rate"; a number keeps the part before it."""
    names = setting.split(".")
    if names[-1].isdigit():
        parts = max(parts, 2)
    return ".".join(names[-parts:])


def value_words(value: Any) -> str:
    """Return a setting's value in words: lists and mappings without brackets."""
    if isinstance(value, dict):
        return " ".join(f"{key} {value_words(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        separator = ", " if any(isinstance(inner, dict) for inner in value) else "/"
        return separator.join(map(value_words, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scaled(value: float | None, unit: str) -> str:
    """Return a value with an SI prefix and three significant digits."""
    if value is None:
        return MISSING
    for factor, prefix in _PREFIXES:
        # 999.7 of the smaller unit reads 1000: it belongs to the larger one.
        if abs(value) >= factor * 0.9995:
            return f"{significant(value / factor)} {prefix}{unit}"
    return f"{significant(value)} {unit}"
