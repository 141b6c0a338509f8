"""What people call a case: its label, or else its levels, one for each factor: `redundant with cubic`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from plait.analysis.wording import short_name, value_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        """What varies, by its name under `vary`."""


def labels(cases: Sequence[NamedCase], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what to call each case, by name: its label, or its levels where no other case has the same.

    `given` has the labels by name where the cases themselves do not have them.
    """
    called = {case.name: (given or {}).get(case.name) or getattr(case, "label", None) for case in cases}
    words = {case.name: called[case.name] or case_label(case.name, case.settings) for case in cases}
    taken = Counter(words.values())
    return {name: label if taken[label] == 1 else name for name, label in words.items()}


def case_label(name: str, settings: Mapping[str, Any]) -> str:
    """Return a case in prose by its levels: `MPTCP, rate 5mbit`, `redundant with cubic`; `name` if nothing varies."""
    words = {key: _level(key, value) for key, value in settings.items()}
    short = [short_name(key) for key in settings]
    speaking = [key for key in settings if short_name(key) in SPEAKING and not words[key][:1].isdigit()]
    if len({words[key] for key in speaking}) < len(speaking) or list(settings) == speaking[:1] != [
        "transport"
    ]:
        speaking = []
    named = [
        f"{short_name(key, 2 if short.count(short_name(key)) > 1 else 1).replace('_', ' ')} {words[key]}"
        for key in settings
        if key not in speaking
    ]
    levels = [words[key] for key in speaking]
    whole = " with ".join(levels[:2]) + "".join(f" and {word}" for word in levels[2:])
    return ", ".join(part for part in (whole, *named) if part) or name


def short_labels(cases: Sequence[NamedCase], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what to call each case in little room; as `labels` does where that would not distinguish them."""
    whole = labels(cases, given)
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
        f"{short_name(name).replace('_', ' ')} {value}" if value[:1].isdigit() else value_words(value)
        for name, value in values
    )


def _level(factor: str, value: Any) -> str:
    """Return a setting's value, short enough for a label."""
    text = value_words(value)
    if factor == "transport":
        return text.upper()
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "\N{HORIZONTAL ELLIPSIS}"
