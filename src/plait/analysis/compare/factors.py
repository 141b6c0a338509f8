"""The factors of a study: their levels in words, and the factor that cases are compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from plait.analysis.labels.cases import NamedCase
from plait.analysis.wording import MISSING, short_name, value_words

SMALLEST = 0.01
"""The smallest difference of interest of a metric for which the scenario has none, as a ratio."""


@dataclass(frozen=True)
class Design:
    """How the cases of a study may be compared."""

    strata: tuple[str, ...] = ()
    """Factors whose levels are different networks."""
    zipped: tuple[tuple[str, ...], ...] = ()
    """Groups of settings that change together."""
    margins: Mapping[str, float] = field(default_factory=dict)
    """The smallest difference of interest by metric, as a ratio, where the scenario has one."""

    def margin_of(self, metric: str) -> float:
        """Return the smallest difference of interest of a metric; that of a flow is that of the metric."""
        return self.margins.get(metric, self.margins.get(metric.rpartition(".")[2], SMALLEST))


PLAIN = Design()
_Case = TypeVar("_Case", bound=NamedCase)


def stratum(case: NamedCase, strata: Sequence[str]) -> tuple[str, ...]:
    """Return the levels of a case at the factors that are different networks."""
    return tuple(level(case, name) for name in strata)


def network_words(stratum: Mapping[str, str]) -> str:
    """Return a network by its levels: `wifi-lte`; of several strata with their names."""
    if len(stratum) == 1:
        return next(iter(stratum.values()))
    return ", ".join(f"{name} {value}" for name, value in stratum.items())


def by_stratum(cases: Sequence[_Case], strata: Sequence[str]) -> dict[tuple[str, ...], list[_Case]]:
    """Return the cases of each network; all together without strata."""
    groups: dict[tuple[str, ...], list[_Case]] = {}
    for case in cases:
        groups.setdefault(stratum(case, strata), []).append(case)
    return groups


def main_factor(cases: Sequence[NamedCase], strata: Sequence[str] = ()) -> str | None:
    """Return the setting that cases are compared by: the transport when it varies, else the one listed first.

    It is none of the `strata`, whose levels are different networks.
    """
    names = dict.fromkeys(name for case in cases for name in case.settings if name not in strata)
    return "transport" if "transport" in names else next(iter(names), None)


def other_settings(
    case: NamedCase, factor: str | None, zipped: Sequence[Sequence[str]] = ()
) -> dict[str, Any]:
    """Return a case's settings but for the main factor, and for those that change together with it (`zipped`).

    Cases that agree in these are compared with each other.
    """
    moving = next((group for group in zipped if factor in group), (factor,))
    return {name: value for name, value in case.settings.items() if name not in moving}


def varied(cases: Sequence[NamedCase]) -> list[str]:
    """Return the settings that have at least two values (a case without the setting counts as one), in their order."""
    names = dict.fromkeys(name for case in cases for name in case.settings)
    return [name for name in names if len({level(case, name) for case in cases}) > 1]


def level(case: NamedCase, factor: str) -> str:
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
            (end for end in ends if sum(f".{other}".endswith(f".{end}") for other in factors) == 1), factor
        )
    return names


def joined_factors(
    cases: Sequence[NamedCase], zipped: Sequence[Sequence[str]]
) -> dict[tuple[str, ...], list[str]]:
    """Return what varies independently: the settings of each factor, and the level of each case.

    Settings that change together (`zip`) are one factor.
    """
    joined: dict[tuple[str, ...], list[str]] = {}
    for name in varied(cases):
        group = next((group for group in zipped if name in group), (name,))
        moving = tuple(member for member in group if member in varied(cases))
        joined[moving] = [" / ".join(level(case, setting) for setting in moving) for case in cases]
    return joined
