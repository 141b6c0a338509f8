"""What varies in a study, as figures see it: settings as numbers with units, steps, and cases that fall into panels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plait.analysis.factors import main_factor
from plait.analysis.wording import case_label, short_name
from plait.units import Duration, Rate, Ratio, Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.factors import HasSettings
    from plait.analysis.model import CaseSummary
    from plait.analysis.summarise import CaseRows

STEPS = 3
"""Fewer values are better told apart as cases."""
_QUANTITIES = ((Rate, 1e6, "Mbit/s"), (Duration, 1e6, "ms"), (Size, 1e3, "kB"), (Ratio, 0.01, "%"))


@dataclass(frozen=True)
class Factor:
    """One setting: its values in the order of the cases, as numbers in `unit` when all are numbers of one kind."""

    setting: str
    given: tuple[Any, ...]
    numbers: tuple[float, ...] | None
    unit: str

    @property
    def title(self) -> str:
        """Its name and unit."""
        name = short_name(self.setting)
        return f"{name}, {self.unit}" if self.unit else name

    @property
    def steps(self) -> int:
        """How many different values it takes."""
        return len(set(self.order))

    @property
    def order(self) -> list[str]:
        """Its values as texts, each once: numbers by size, others as they are given."""
        if self.numbers is None:
            return list(dict.fromkeys(self.texts))
        return [_plain(number) for number in sorted(set(self.numbers))]

    @property
    def texts(self) -> list[str]:
        """The value of each case as a text."""
        if self.numbers is not None:
            return [_plain(number) for number in self.numbers]
        return [str(value) for value in self.given]


def factors(cases: Sequence[HasSettings]) -> list[Factor]:
    """Return what varies, without settings that only go along with an earlier one (`zip`)."""
    found: list[Factor] = []
    for setting in dict.fromkeys(key for case in cases for key in case.settings):
        given = tuple(case.settings.get(setting) for case in cases)
        numbers, unit = numbers_of(given)
        one = Factor(setting, given, numbers, unit)
        if one.steps > 1 and not any(_together(one, other) for other in found):
            found.append(one)
    return found


def steps(cases: Sequence[HasSettings]) -> list[Factor]:
    """Return the factors that are numbers with enough steps for an axis; most steps first, the compared one last."""
    compared = main_factor(cases)
    found = [one for one in factors(cases) if one.numbers is not None and one.steps >= STEPS]
    return sorted(found, key=lambda one: (one.setting == compared, -one.steps))


def label_without(case: CaseRows | CaseSummary, settings: Sequence[str], known: Sequence[Factor]) -> str:
    """Return what a case is called beside the axes: its label without these settings, and without what goes along."""
    kept = {one.setting for one in known} - set(settings)
    left = {name: value for name, value in case.settings.items() if name in kept}
    return case_label("", left) if left else ""


def numbers_of(given: Sequence[Any]) -> tuple[tuple[float, ...] | None, str]:
    """Return settings as numbers and their unit; None when they are not all numbers of one kind."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        return tuple(float(value) for value in given), ""
    if not all(isinstance(value, str) for value in given):
        return None, ""
    for quantity, divisor, unit in _QUANTITIES:
        try:
            return tuple(float(quantity.parse(value)) / divisor for value in given), unit
        except ValueError:
            continue
    return None, ""


def _together(one: Factor, other: Factor) -> bool:
    """Return whether each value of one goes with just one value of the other, and has several of them."""
    pairs = set(zip(one.texts, other.texts, strict=True))
    return len(pairs) == one.steps == other.steps and one.steps > 2


def _plain(number: float) -> str:
    return f"{number:.6g}"
