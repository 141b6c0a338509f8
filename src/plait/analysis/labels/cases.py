"""Labels of cases: the label, or else the levels, one for each factor: `redundant with cubic`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from plait.analysis.wording import short_name, value_words

LONGEST_VALUE = 28
SPEAKING = ("transport", "scheduler", "congestion_control", "engine", "path_manager")
"""Fields whose values say what they are: `redundant`, `cubic`. Other values need the name of the field."""


class NamedCase(Protocol):
    """A case, in any form; `label` is optional."""

    @property
    def name(self) -> str:
        """Its name, which is unique."""

    @property
    def settings(self) -> dict[str, Any]:
        """The varied settings, by their names under `vary`."""


def labels(cases: Sequence[NamedCase], by_name: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what to call each case, by name: its label, or its levels where no other case has the same.

    `by_name` has the labels by name where the cases themselves do not have them.
    """
    called = {case.name: (by_name or {}).get(case.name) or getattr(case, "label", None) for case in cases}
    words = {case.name: called[case.name] or case_label(case.name, case.settings) for case in cases}
    taken = Counter(words.values())
    return {name: label if taken[label] == 1 else name for name, label in words.items()}


def case_label(name: str, settings: Mapping[str, Any]) -> str:
    """Return a case in prose by its levels: `MPTCP, rate 5mbit`, `redundant with cubic`; `name` if nothing varies."""
    fields = _fields(tuple(settings))
    words = [_level(key, value) for key, value in settings.items()]
    speaks = [
        can_stand and not word[:1].isdigit() for (_, can_stand), word in zip(fields, words, strict=True)
    ]
    levels = [word for word, speaking in zip(words, speaks, strict=True) if speaking]
    if len(set(levels)) < len(levels):
        speaks, levels = [False] * len(words), []
    named = [
        f"{field} {word}"
        for (field, _), word, speaking in zip(fields, words, speaks, strict=True)
        if not speaking
    ]
    whole = " with ".join(levels[:2]) + "".join(f" and {word}" for word in levels[2:])
    return ", ".join(part for part in (whole, *named) if part) or name


@lru_cache(maxsize=64)
def _fields(keys: tuple[str, ...]) -> tuple[tuple[str, bool], ...]:
    """Return the name of each field in words, and whether its values are clear without it."""
    ends = [short_name(key) for key in keys]
    alone = len(keys) == 1 and keys != ("transport",)
    return tuple(
        (short_name(key, 2 if ends.count(end) > 1 else 1).replace("_", " "), end in SPEAKING and not alone)
        for key, end in zip(keys, ends, strict=True)
    )


def short_labels(cases: Sequence[NamedCase]) -> dict[str, str]:
    """Return what to call each case in little room; as `labels` does where that would not distinguish them."""
    whole = labels(cases)
    short = {case.name: short_label(whole[case.name], case.settings) for case in cases}
    return short if len(set(short.values())) == len(short) else whole


def short_label(label: str, settings: Mapping[str, Any]) -> str:
    """Return what to call a case in little room: its values, and the names of fields whose values are numbers.

    `label` is its whole label, which stays if it does not come from the settings, or if fewer than two vary.
    """
    values = [(name, str(value)) for name, value in settings.items()]
    if (
        len(values) < 2
        or len({value for _, value in values}) < len(values)
        or label != case_label("", settings)
    ):
        return label
    return ", ".join(
        f"{short_name(name).replace('_', ' ')} {value}" if value[:1].isdigit() else _level(name, value)
        for name, value in values
    )


def _level(factor: str, value: Any) -> str:
    """Return a setting's value, short enough for a label."""
    text = value_words(value)
    if factor == "transport":
        return text.upper()
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "\N{HORIZONTAL ELLIPSIS}"
