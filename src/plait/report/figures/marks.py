"""Parts of the specifications of all kinds: layers of marks, scales of levels, and dots of trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait.analysis.rows import CaseRows, TrialRow
from plait.report.figures.kind import Spec
from plait.report.render.theme import case_token, dashes, shapes

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
MOST_DOTS = 300
"""Dots of one case; more cover each other, and a figure of 10 000 takes 100 MB to draw."""


def layer(rows: Sequence[dict[str, Any]], mark: Spec | str, **encoding: object) -> Spec:
    """Return a layer of the same marks, one for each row of data."""
    return {"data": {"values": list(rows)}, "mark": mark, "encoding": encoding}


def field(name: str, title: str = "") -> Spec:
    """Return the encoding of a column of the data; `title` is its name in a tooltip."""
    return {"field": name, "title": title} if title else {"field": name}


def levels(name: str, order: Sequence[str], scale_type: str = "nominal", **scale: object) -> Spec:
    """Return the encoding of a column of words, in this order."""
    return {"field": name, "type": scale_type, "sort": list(order), "scale": {"domain": list(order), **scale}}


def numbers(name: str = "", **channel: object) -> Spec:
    """Return the encoding of a column of numbers, or without a name of those of each layer."""
    return {**({"field": name} if name else {}), "type": "quantitative", **channel}


def number_axis(title: str | list[str], *, count: int = 6, **axis: object) -> Spec:
    """Return an axis of numbers with about `count` labels."""
    return {"title": title, "tickCount": count, **axis}


def spanning(low: float, high: float, title: str) -> Spec:
    """Return the encoding of numbers from `low` to `high`, whose title says so if lengths do not show their ratios."""
    titles = [title, "(axis starts above 0)"] if low > 0 else title
    scale = {"domain": [low, high], "nice": False, "zero": False}
    return numbers(scale=scale, axis=number_axis(titles, grid=True))


def distinct(name: str, order: Sequence[str], second: str, legend: Spec | None, *, first: int = 0) -> Spec:
    """Return the channels by which levels differ: colours from number `first` on, and `shape` or `strokeDash`.

    In black and white, and for whoever sees no colours, levels differ in the second channel.
    """
    colours = [case_token(number + first) for number in range(len(order))]
    second_values = shapes(len(order)) if second == "shape" else dashes(len(order))
    return {
        channel: {**levels(name, order, range=values), "legend": legend}
        for channel, values in (("color", colours), (second, second_values))
    }


def with_dots(case: CaseRows, metric: str) -> list[tuple[TrialRow, float]]:
    """Return the trials of a case that have a dot, in their order, with their values of the metric.

    Of more than MOST trials, these are the ones with the least and the largest value, and those between at equal
    distances by rank.
    """
    trials = case.measured(metric)
    if len(trials) > MOST_DOTS:
        trials.sort(key=lambda trial: (trial[1], trial[0].index))
        last = len(trials) - 1
        trials = [trials[round(place * last / (MOST_DOTS - 1))] for place in range(MOST_DOTS)]
        trials.sort(key=lambda trial: trial[0].index)
    return trials


def what_dots_are(cases: Sequence[CaseRows]) -> str:
    """Return the words of a caption for the dots."""
    if all(len(case.rows) <= MOST_DOTS for case in cases):
        return "Each dot is a trial"
    few = f"of more than {MOST_DOTS} trials of a case, {MOST_DOTS} have one, at equal distances by rank"
    return f"Each dot is a trial; {few}"
