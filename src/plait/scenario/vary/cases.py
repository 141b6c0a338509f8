"""Expand a scenario into its cases: one scenario for each combination of the varied fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256

from plait.errors import FieldMistakesError, refuse_fields
from plait.scenario.located import locating
from plait.scenario.mistakes import Where
from plait.scenario.scenario import Scenario
from plait.scenario.vary.combinations import Row, fields_of, rows
from plait.scenario.vary.text import field_path
from plait.scenario.vary.variants import NoSuchField, TooMany, Variants
from plait.scenario.wording import nearest

_MAX_WORD_LENGTH = 40
_MAX_NAME_LENGTH = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9._=,+-]+")


@dataclass(frozen=True)
class Case:
    """One combination of a scenario's varied fields."""

    name: str
    """For example `transport=mptcp`; usable as a directory name, and unique within the scenario."""
    settings: dict[str, object]
    """The varied settings, by their names under `vary`."""
    scenario: Scenario
    """The scenario with these settings applied, and without `vary`."""
    varied: tuple[tuple[str, Where], ...] = ()
    """The fields of the settings, as paths with possible wildcards, and the place of each value in the text."""

    def place(self, where: Where) -> Where:
        """Return the place of a field's value in the scenario's text: the field itself, or under `vary`."""
        dotted = ".".join(map(str, where))
        for field, value in self.varied:
            if fnmatchcase(dotted, field) or fnmatchcase(dotted, f"{field}.*"):
                return value
        return where


@locating
def expand(scenario: Scenario) -> list[Case]:
    """Return the cases of a scenario, the baseline first; the last field under `vary` changes fastest.

    Raises ScenarioError for an invalid value, for a baseline or a label of what is no case, and for too many cases.
    """
    combinations = rows(scenario)
    variants = Variants(scenario)
    try:
        variants.foresee_generated([_values(fields_of(row)) for row in combinations])
    except TooMany as wrong:
        raise FieldMistakesError((("vary",), str(wrong))) from wrong
    values: dict[str, dict[int, object]] = {}
    for row in combinations:
        for key, choice in row.items():
            values.setdefault(key, {})[choice.number] = _named(key, choice.value)
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
        settings = {key: _named(key, choice.value) for key, choice in row.items()}
        fields = fields_of(row)
        varied = tuple((field_path(key), choice.where) for key, choice in fields.items())
        cases.append(Case(name, settings, _case_scenario(variants, fields), varied))
    _check_labels(scenario, [case.name for case in cases])
    return _baseline_first(scenario, cases)


def _named(key: str, value: object) -> object:
    """Return a varied value as cases show it: a kernel is a name, even if its version looks like a number."""
    return str(value) if key == "kernel" else value


def _values(row: Row) -> dict[str, object]:
    return {key: choice.value for key, choice in row.items()}


def _case_scenario(variants: Variants, row: Row) -> Scenario:
    """Return the scenario with the values of a row of fields."""
    try:
        return variants.make(_values(row))
    except NoSuchField as wrong:
        raise FieldMistakesError((row[wrong.path].where[:-1], str(wrong))) from wrong
    except TooMany as wrong:
        raise FieldMistakesError((("vary",), str(wrong))) from wrong
    except FieldMistakesError as wrong:
        where, problem = wrong.mistakes[0]
        place = _varied_value(row, where)
        raise FieldMistakesError((place, f"{'.'.join(map(str, where))}: {problem}")) from wrong


def _varied_value(row: Row, where: Sequence[str | int]) -> tuple[str | int, ...]:
    """Return the place of the value under `vary` that caused a mistake at `where`, or `vary` if it is uncertain."""
    dotted = ".".join(map(str, where))
    for key, choice in row.items():
        if field_path(key) == dotted:
            return choice.where
    return next(iter(row.values())).where if len(row) == 1 else ("vary",)


def _check_labels(scenario: Scenario, names: list[str]) -> None:
    """Raise ScenarioError for labels of cases that do not exist."""
    labelled = scenario.labels.cases if scenario.labels is not None else {}
    known = set(names)
    refuse_fields(
        (
            ("labels", "cases", name),
            f"there is no case '{name[:80]}'; {nearest(name, names) or f'the first case is {names[0]}'}",
        )
        for name in labelled
        if name not in known
    )


def _baseline_first(scenario: Scenario, cases: list[Case]) -> list[Case]:
    if scenario.baseline is None:
        return cases
    for case in cases:
        if case.name == scenario.baseline:
            return [case, *(other for other in cases if other is not case)]
    names = [case.name for case in cases]
    hint = nearest(scenario.baseline, names) or f"the first case is {names[0]}"
    problem = f"there is no case '{scenario.baseline[:80]}'; {hint}"
    raise FieldMistakesError((("baseline",), problem))


def _short_names(keys: list[str]) -> dict[str, str]:
    """Return the shortest unique endings of the varied paths: `rate` for `network.links.*.rate`."""
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
    """Return a label for each value, by number: a word, a few words, or otherwise the number."""
    return {i: _word(value) or f"v{i + 1}" for i, value in values.items()}


def _word(value: object) -> str:
    """Return a value as part of a file name; empty if it is neither one word nor a short list of words."""
    if isinstance(value, (list, tuple)):
        words = [_word(item) for item in value]
        joined = "+".join(words)
        return joined if all(words) and len(joined) <= _MAX_WORD_LENGTH else ""
    if not (isinstance(value, (str, int, float, bool)) or value is None):
        return ""
    text = str(value).lower() if isinstance(value, bool) else "none" if value is None else str(value)
    return _UNSAFE.sub("_", text.replace("%", "pct").replace("/", "_"))[:_MAX_WORD_LENGTH].strip(".,=_")


def _shorten(name: str) -> str:
    """Return the name, or its beginning and a hash if it is too long for a directory."""
    if len(name) <= _MAX_NAME_LENGTH:
        return name
    return f"{name[: _MAX_NAME_LENGTH - 9]}+{sha256(name.encode()).hexdigest()[:8]}"
