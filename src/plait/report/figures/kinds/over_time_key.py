"""The one key of a figure over time: an entry for each line, or for each path where there are too many lines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plait.report.figures.kinds.over_time_chart import Key, lines
from plait.report.render.theme import PATHS, path_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.report.figures.kinds.over_time_chart import Line, Panel

OTHERS = "others"
"""The entry of all lines beyond the colours."""


def key_of(panels: Sequence[Panel], kind: str) -> Key:
    """Return the key of several charts.

    Lines that have different colours in some of the charts get new ones. Where there are more labels than colours,
    subflows have the colours of their paths, and of queues the fullest have their own.
    """
    drawn = [[line for line in lines(panel, kind) if line.points] for panel in panels]
    labels = list(dict.fromkeys(line.label for own in drawn for line in own))
    distinct = all(len({line.label for line in own}) == len(own) for own in drawn)
    colours: dict[str, set[str]] = {label: set() for label in labels}
    for line in (line for own in drawn for line in own):
        colours[line.label].add(line.colour)
    if len(labels) <= PATHS and distinct:
        kept = [next(iter(colours[label])) for label in labels]
        if all(len(own) == 1 for own in colours.values()) and len(set(kept)) == len(kept):
            return Key(tuple(zip(labels, kept, strict=True)), {label: label for label in labels})
        return _numbered(labels, {label: label for label in labels})
    every = [line for own in drawn for line in own]
    if all(line.path for line in every):
        return _by_path(panels, every, kind)
    return _numbered(*_largest({label: label for label in labels}, every))


def _by_path(panels: Sequence[Panel], every: Sequence[Line], kind: str) -> Key:
    paths = {line.label: line.path for line in every}
    if kind == "goodput":
        every = [line for panel in panels for line in _of_paths(panel)]
        paths = {line.label: line.label for line in every}
    order, of = list(dict.fromkeys(paths.values())), paths
    if len(order) > PATHS:
        order, of = _largest(paths, every)
    return _numbered(order, of, by_path=True)


def _of_paths(panel: Panel) -> list[Line]:
    return lines(replace(panel, series=replace(panel.series, subflows=panel.series.by_path)), "goodput")


def _largest(of: dict[str, str], every: Sequence[Line]) -> tuple[list[str], dict[str, str]]:
    """Return the entries with the largest sums of values, then `OTHERS`, and the entry of each line by its label."""
    sums: dict[str, float] = {}
    for line in every:
        sums[of[line.label]] = sums.get(of[line.label], 0.0) + sum(value for _, value in line.points)
    kept = set(sorted(sums, key=lambda entry: -sums[entry])[: PATHS - 1])
    order = [entry for entry in sums if entry in kept]
    return [*order, OTHERS], {label: entry if entry in kept else OTHERS for label, entry in of.items()}


def _numbered(order: Sequence[str], of: dict[str, str], *, by_path: bool = False) -> Key:
    return Key(tuple((entry, path_token(number)) for number, entry in enumerate(order)), of, by_path)
