"""The cases of a scenario: every combination of what it varies, each a scenario of its own. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING

from plait.scenario.read.located import error_at
from plait.scenario.read.wording import nearest
from plait.scenario.scenario import Scenario
from plait.scenario.vary.combinations import rows
from plait.scenario.vary.variants import NoSuchField, TooMany, Variants, WrongVariant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.scenario.mistakes import Where
    from plait.scenario.vary.combinations import Row

_MAX_WORD_LENGTH = 40
_MAX_NAME_LENGTH = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._=,+-]+")


@dataclass(frozen=True)
class Case:
    """One point of what a scenario varies."""

    name: str
    """`transport=mptcp`; usable as the name of a directory, unique within the scenario."""
    settings: dict[str, object]
    """What varies, by the names used under `vary`."""
    scenario: Scenario
    """With these settings put in, and nothing left to vary."""
    varied: tuple[tuple[str, Where], ...] = ()
    """The fields that were set, as paths that may hold wildcards, and where the value of each stands."""

    def place(self, where: Where) -> Where:
        """Where the value of the field `where` stands in the scenario's text: there, or under `vary`."""
        dotted = ".".join(map(str, where))
        for field, value in self.varied:
            if fnmatchcase(dotted, field) or fnmatchcase(dotted, f"{field}.*"):
                return value
        return where


def expand(scenario: Scenario) -> list[Case]:
    """The cases of a scenario, the baseline first; the last field under `vary` changes fastest.

    Raises ScenarioError for a value that its field does not take, a baseline that is no case, too many cases.
    """
    combinations = rows(scenario)
    variants = Variants(scenario)
    try:
        variants.foresee_generated(
            [{key: choice.value for key, choice in row.items()} for row in combinations]
        )
    except TooMany as wrong:
        raise error_at(scenario, [(("vary",), str(wrong))]) from wrong
    values: dict[str, dict[int, object]] = {}
    for row in combinations:
        for key, choice in row.items():
            values.setdefault(key, {})[choice.number] = choice.value
    short = _short_names(list(values))
    labels = {key: _labels(numbered) for key, numbered in values.items()}
    cases: list[Case] = []
    taken: Counter[str] = Counter()
    for row in combinations:
        parts = [f"{short[key]}={labels[key][choice.number]}" for key, choice in row.items()]
        name = _shorten(",".join(parts) or "default")
        taken[name] += 1
        if taken[name] > 1:
            name = f"{name}+{taken[name]}"
        settings = {key: choice.value for key, choice in row.items()}
        varied = tuple((Scenario.SHORTHANDS.get(key, key), choice.where) for key, choice in row.items())
        cases.append(Case(name, settings, _case_scenario(scenario, variants, row), varied))
    return _baseline_first(scenario, cases)


def _case_scenario(scenario: Scenario, variants: Variants, row: Row) -> Scenario:
    """The scenario with the chosen values put in."""
    try:
        return variants.make({key: choice.value for key, choice in row.items()})
    except NoSuchField as wrong:
        raise error_at(scenario, [(row[wrong.path].where[:-1], str(wrong))]) from wrong
    except TooMany as wrong:
        raise error_at(scenario, [(("vary",), str(wrong))]) from wrong
    except WrongVariant as wrong:
        where, problem = wrong.mistakes[0]
        place = _varied_value(row, where)
        raise error_at(scenario, [(place, f"{'.'.join(map(str, where))}: {problem}")]) from wrong


def _varied_value(row: Row, where: Sequence[str | int]) -> tuple[str | int, ...]:
    """Which value under `vary` a mistake at `where` comes from, if that can be told."""
    dotted = ".".join(map(str, where))
    for key, choice in row.items():
        if Scenario.SHORTHANDS.get(key, key) == dotted:
            return choice.where
    return next(iter(row.values())).where if len(row) == 1 else ("vary",)


def _baseline_first(scenario: Scenario, cases: list[Case]) -> list[Case]:
    if scenario.baseline is None:
        return cases
    for case in cases:
        if case.name == scenario.baseline:
            return [case, *(other for other in cases if other is not case)]
    names = [case.name for case in cases]
    hint = nearest(scenario.baseline, names) or f"one is {names[0]}"
    problem = f"no case is called '{scenario.baseline[:80]}'; {hint}"
    raise error_at(scenario, [(("baseline",), problem)])


def _short_names(keys: list[str]) -> dict[str, str]:
    """The shortest endings of the varied paths that tell them apart: `network.links.*.rate` is `rate`."""
    parts = {key: tuple(key.split(".")) for key in keys}
    shared = Counter(path[-n:] for path in parts.values() for n in range(1, len(path) + 1))
    out = {}
    for key in keys:
        for n in range(1, len(parts[key]) + 1):
            ending = parts[key][-n:]
            if shared[ending] == 1:
                break
        out[key] = _UNSAFE.sub("_", ".".join(ending).replace("*", "all"))
    return out


def _labels(values: dict[int, object]) -> dict[int, str]:
    """A short word for each value by its number; that number where the value is not one word, or a few of them."""
    return {i: _word(value) or f"v{i + 1}" for i, value in values.items()}


def _word(value: object) -> str:
    """A value as a part of a file's name; empty where it is neither one word nor a short list of words."""
    if isinstance(value, (list, tuple)):
        words = [_word(item) for item in value]
        joined = "+".join(words)
        return joined if all(words) and len(joined) <= _MAX_WORD_LENGTH else ""
    if not (isinstance(value, (str, int, float, bool)) or value is None):
        return ""
    text = str(value).lower() if isinstance(value, bool) else "none" if value is None else str(value)
    return _UNSAFE.sub("_", text.replace("%", "pct").replace("/", "_"))[:_MAX_WORD_LENGTH].strip(".,=_")


def _shorten(name: str) -> str:
    """The name, cut where a directory's would be too long, with a mark of what was cut."""
    if len(name) <= _MAX_NAME_LENGTH:
        return name
    return f"{name[: _MAX_NAME_LENGTH - 9]}+{sha256(name.encode()).hexdigest()[:8]}"
