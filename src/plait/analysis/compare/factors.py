"""What varies in a study: factors and their levels in words, and the factor that cases are compared by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from plait.analysis.wording import MISSING, short_name, value_words

if TYPE_CHECKING:
    from collections.abc import Sequence


class HasSettings(Protocol):
    """A case, in any form."""

    @property
    def settings(self) -> dict[str, Any]:
        """What varies, by its name under `vary`."""


def main_factor(cases: Sequence[HasSettings]) -> str | None:
    """Return the setting that cases are compared by: the transport when it varies, else the one listed first."""
    names = list(dict.fromkeys(name for case in cases for name in case.settings))
    return "transport" if "transport" in names else next(iter(names), None)


def other_settings(case: HasSettings, factor: str | None) -> dict[str, Any]:
    """Return a case's settings but for the main factor: cases that agree in these are compared with each other."""
    return {name: value for name, value in case.settings.items() if name != factor}


def varied(cases: Sequence[HasSettings]) -> list[str]:
    """Return the settings that have at least two values (a case without the setting counts as one), in their order."""
    names = dict.fromkeys(name for case in cases for name in case.settings)
    return [name for name in names if len({level(case, name) for case in cases}) > 1]


def level(case: HasSettings, factor: str) -> str:
    """Return the value of a setting in a case as a person reads it, in full; a dash where the case does not set it."""
    if factor not in case.settings:
        return MISSING
    text = value_words(case.settings[factor])
    return text.upper() if factor == "transport" else text


def factor_names(factors: Sequence[str]) -> dict[str, str]:
    """Return the shortest name of each factor that no other has: `rate`, or `h1-s1.rate`."""
    names = {}
    for factor in factors:
        parts = range(1, factor.count(".") + 2)
        ends = [short_name(factor, count) for count in parts]
        names[factor] = next(
            (end for end in ends if sum(_ends_in(other, end) for other in factors) == 1), factor
        )
    return names


def _ends_in(factor: str, end: str) -> bool:
    return factor == end or factor.endswith(f".{end}")
