"""The factors of a study for figures: settings as numbers with units, steps, and cases that fall into panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from plait.analysis.compare.factors import level, main_factor
from plait.analysis.compare.factors import varied as varied_settings
from plait.analysis.labels.cases import NamedCase
from plait.analysis.wording import MISSING, capital, lowered, short_name, value_words
from plait.units import Duration, Packets, Rate, Ratio, Size

STEPS = 3
"""Least number of values along an axis; fewer are clearer as cases."""
MANY_POINTS = 5
"""Least number of points that can fill a space; fewer are a list."""
MOST_CELLS = 400
"""More cells of a grid would be too small to see."""
_SWITCHES = {"true", "false", "yes", "no", "on", "off", "none"}
"""Levels that do not say of what they are."""
_BINARY = (Size, 1024.0, "KiB")
_QUANTITIES = (
    (Rate, 1e6, "Mbit/s"),
    (Duration, 1e6, "ms"),
    (Size, 1e3, "kB"),
    (Ratio, 0.01, "%"),
    (Packets, 1, "packets"),
)


@dataclass(frozen=True)
class Factor:
    """One setting: its values in the order of the cases, as numbers in `unit` when all are numbers of one kind."""

    setting: str
    given: tuple[Any, ...]
    numbers: tuple[float, ...] | None
    unit: str
    parts: int = 1
    """Number of last parts of its path that make its name unique."""

    @property
    def name(self) -> str:
        """Its name on axes."""
        return short_name(self.setting, self.parts)

    @property
    def title(self) -> str:
        """Its name and unit."""
        return f"{self.words}, {self.unit}" if self.unit else self.words

    @property
    def words(self) -> str:
        """Its name in words; a path stays one."""
        return self.name if "." in self.name else capital(self.name.replace("_", " "))

    def labelled(self, text: str, *, within: bool = False) -> str:
        """Return one of its values with its name and unit: as the title of a panel, or `within` words."""
        name = lowered(self.words) if within else self.words
        return f"{name} {text} {self.unit}".rstrip()

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
        words = [MISSING if value is None else value_words(value) for value in self.given]
        return [word.upper() for word in words] if self.setting == "transport" else words


def grid_of(varied: Sequence[Factor]) -> tuple[Factor, Factor] | None:
    """Return the first two factors that form a grid of at most `MOST_CELLS` cells, the one with more steps first."""
    pairs = [(x, y) for x in varied for y in varied if x is not y]
    for x, y in pairs:
        cells = len(set(zip(x.texts, y.texts, strict=True)))
        if 1.5 * max(x.steps, y.steps) <= cells <= MOST_CELLS and x.steps >= y.steps:
            return x, y
    return None


def factors(cases: Sequence[NamedCase]) -> list[Factor]:
    """Return what varies, without settings that only go along with another one (`zip`)."""
    varied = []
    for setting in dict.fromkeys(key for case in cases for key in case.settings):
        values = tuple(case.settings.get(setting) for case in cases)
        factor = Factor(setting, values, *numbers_of(values))
        if factor.steps > 1:
            varied.append(factor)
    kept = [
        factor
        for place, factor in enumerate(varied)
        if not any(
            (rival.steps, -rival_place) > (factor.steps, -place) and _follows(factor, rival)
            for rival_place, rival in enumerate(varied)
        )
    ]
    return [replace(factor, parts=_parts(factor, kept)) for factor in kept]


def telling_settings(cases: Sequence[NamedCase]) -> list[str]:
    """Return the settings that tell the cases apart: those that only go along with another one are left out."""
    every = varied_settings(cases)
    kept = [factor.setting for factor in factors(cases)]
    kept = [setting for setting in every if setting in kept]
    different = [
        len({tuple(level(case, name) for name in names) for case in cases}) for names in (kept, every)
    ]
    return kept if different[0] == different[1] else every


def factor_of(cases: Sequence[NamedCase], setting: str | None) -> Factor | None:
    """Return the factor of a setting; None for a setting that does not vary."""
    return next((factor for factor in factors(cases) if factor.setting == setting), None)


def steps(cases: Sequence[NamedCase]) -> list[Factor]:
    """Return the factors that are numbers with enough steps for an axis; most steps first, the compared one last."""
    compared = main_factor(cases)
    stepped = [factor for factor in factors(cases) if factor.numbers is not None and factor.steps >= STEPS]
    return sorted(stepped, key=lambda factor: (factor.setting == compared, -factor.steps))


def labels_without(cases: Sequence[NamedCase], settings: Sequence[str]) -> dict[str, str]:
    """Return what to call each case, by name, where these settings have another role: by its levels of the others."""
    labels = label_of_levels([factor for factor in factors(cases) if factor.setting not in settings])
    return dict(zip((case.name for case in cases), labels or [""] * len(cases), strict=True))


def label_of_levels(remaining: Sequence[Factor]) -> list[str]:
    """Return the label of each case by its levels of these factors: `wifi-lte, cubic`, or `Rate 10 Mbit/s`.

    A level that is a word has no name of its factor in front, unless the word alone is ambiguous.
    """
    if not remaining:
        return []
    words = [set(factor.texts) for factor in remaining]
    columns = []
    for number, factor in enumerate(remaining):
        rivals = set().union(*words[:number], *words[number + 1 :])
        speaks = factor.numbers is None and all(
            _speaks(text) and text not in rivals for text in words[number]
        )
        columns.append(
            [text if speaks else factor.labelled(text, within=number > 0) for text in factor.texts]
        )
    return [", ".join(levels) for levels in zip(*columns, strict=True)]


def _speaks(text: str) -> bool:
    return text[:1].isalpha() and text.lower() not in _SWITCHES


def numbers_of(settings: Sequence[Any]) -> tuple[tuple[float, ...] | None, str]:
    """Return settings as numbers and their unit; None when they are not all numbers of one kind."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in settings):
        return tuple(float(value) for value in settings), ""
    if not all(isinstance(value, str) for value in settings):
        return None, ""
    binary = any(value.endswith("iB") for value in settings)
    for quantity, divisor, unit in (_BINARY, *_QUANTITIES) if binary else _QUANTITIES:
        try:
            return tuple(float(quantity.parse(value)) / divisor for value in settings), unit
        except ValueError:
            continue
    return None, ""


def _parts(factor: Factor, varied: Sequence[Factor]) -> int:
    """Return how many parts of its path no other factor's ends with."""
    part_count = factor.setting.count(".") + 1
    rivals = [rival.setting for rival in varied if rival is not factor]
    return next(
        (
            n
            for n in range(1, part_count)
            if all(short_name(factor.setting, n) != short_name(o, n) for o in rivals)
        ),
        part_count,
    )


def _follows(factor: Factor, rival: Factor) -> bool:
    """Return whether each value of the other factor goes with just one value of this one, as in a `zip`.

    Of many numbers, one has to grow as the other does, or as it falls: those of a Latin hypercube do neither.
    """
    pairs = set(zip(factor.texts, rival.texts, strict=True))
    if len(pairs) != rival.steps or rival.steps < 3:
        return False
    if factor.numbers is None or rival.numbers is None or factor.steps < MANY_POINTS:
        return rival.numbers is None or rival.steps < MANY_POINTS or factor.steps == rival.steps
    order = [number for _, number in sorted(set(zip(factor.numbers, rival.numbers, strict=True)))]
    return order in (sorted(order), sorted(order, reverse=True))


def _plain(number: float) -> str:
    return f"{number:.6g}"
