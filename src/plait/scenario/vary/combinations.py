"""Combine the values under `vary` to the settings of each case: products, zips, hypercubes, exclusions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from plait.errors import FieldMistakesError
from plait.scenario.mistakes import Where
from plait.scenario.scenario import Scenario
from plait.scenario.vary.ranges import read_range
from plait.seeds import derived

_TRIES = 24
"""How many hypercubes to draw, of which the one with the most distant points is used."""


@dataclass(frozen=True)
class VariedValue:
    """One value of one field in a case."""

    value: Any
    number: int
    """Index among the field's values."""
    where: Where
    """Its path in the scenario."""
    sets: dict[str, Any] | None = None
    """The fields that a level of a named factor sets; None for a value of a field."""


Row = dict[str, VariedValue]
"""The values that a case sets, by the names under `vary`."""


def fields_of(row: Row) -> Row:
    """Return the fields that a case sets: those of the levels of named factors, too."""
    fields: Row = {}
    for key, choice in row.items():
        if choice.sets is None:
            fields[key] = choice
            continue
        for path, value in choice.sets.items():
            fields[path] = VariedValue(value, choice.number, (*choice.where, path))
    return fields


def rows(scenario: Scenario) -> list[Row]:
    """Return the settings of every case; the last field under `vary` changes fastest.

    Raises ScenarioError if exclusions leave none.
    """
    axes = _axes(scenario.vary)
    crossed = [{key: value for part in parts for key, value in part.items()} for parts in product(*axes)]
    return _without(scenario, crossed)


def _axes(vary: dict[str, Any]) -> list[list[Row]]:
    """Return the independent axes under `vary`, each as a list of rows."""
    axes: list[list[Row]] = []
    for key, entry in vary.items():
        if key == "zip":
            together = {name: _settings(values, ("vary", key, name)) for name, values in entry.items()}
            axes.append(
                [dict(zip(together, row, strict=True)) for row in zip(*together.values(), strict=True)]
            )
        elif key == "cases":
            axes.append(
                [
                    {name: VariedValue(value, i, ("vary", key, i, name)) for name, value in case.items()}
                    for i, case in enumerate(entry)
                ]
            )
        elif key == "latin_hypercube":
            axes.append(_hypercube(entry))
        elif isinstance(entry, dict) and key != "exclude":
            levels = enumerate(entry.items())
            axes.append(
                [{key: VariedValue(level, i, ("vary", key, level), sets)} for i, (level, sets) in levels]
            )
        elif key != "exclude":
            axes.append([{key: value} for value in _settings(entry, ("vary", key))])
    return axes


def _settings(values: Sequence[Any], where: Where) -> list[VariedValue]:
    return [VariedValue(value, i, (*where, i)) for i, value in enumerate(values)]


def _hypercube(entry: dict[str, Any]) -> list[Row]:
    """Return the points of a Latin hypercube (McKay, Beckman, Conover, Technometrics 21, 1979).

    Each field's range has as many strata as there are points, and each stratum has one point. Of several such designs,
    the function returns the one with the largest minimum distance (maximin: Johnson, Moore, Ylvisaker, 1990).
    """
    import numpy as np

    points, fields = entry["points"], entry["fields"]
    # numpy freezes the stream of RandomState, but not those of newer generators.
    generator = np.random.RandomState(derived(entry["seed"], "latin hypercube") % 2**32)
    best, widest = None, -1.0
    for _ in range(_TRIES):
        order = np.stack([generator.permutation(points) for _ in fields], axis=1)
        design = (order + generator.random_sample(order.shape)) / points
        apart = min(
            (float(((design[i + 1 :] - design[i]) ** 2).sum(axis=1).min()) for i in range(points - 1)),
            default=0.0,
        )
        if apart > widest:
            best, widest = design, apart
    assert best is not None
    return [
        {
            name: VariedValue(_value_at(values, float(share)), i, ("vary", "latin_hypercube", "fields", name))
            for (name, values), share in zip(fields.items(), best[i], strict=True)
        }
        for i in range(points)
    ]


def _value_at(values: str | Sequence[Any], share: float) -> Any:
    """Return the value at a fraction (0 to 1) of a range, or of a list of choices."""
    return read_range(values).text_at(share) if isinstance(values, str) else values[int(share * len(values))]


def _without(scenario: Scenario, crossed: list[Row]) -> list[Row]:
    """Return the rows that no exclusion matches; an exclusion that matches no row, or all, is a mistake."""
    kept = crossed
    for i, case in enumerate(scenario.vary.get("exclude", ())):
        excluded = {key: {_plain(value) for value in values} for key, values in case.items()}
        left = [row for row in kept if not _fits(row, excluded)]
        if len(left) == len(kept) and not any(_fits(row, excluded) for row in crossed):
            settings = ", ".join(f"{key}={'|'.join(map(str, values))}" for key, values in case.items())
            remedy = "write the values as in the names of cases (`plait plan`)"
            raise FieldMistakesError((("vary", "exclude", i), f"no case has {settings[:120]}; {remedy}"))
        kept = left
    if not kept:
        raise FieldMistakesError((("vary", "exclude"), "exclude removes every case; exclude fewer"))
    return kept


def _fits(row: Row, excluded: dict[str, set[str]]) -> bool:
    return all(key in row and _plain(row[key].value) in values for key, values in excluded.items())


def _plain(value: Any) -> str:
    """Return a value without the optional space of quantities: `1 mbit` is `1mbit`."""
    return str(value).replace(" ", "")
