"""The figure of a sweep: a metric against what varies in steps (a rate, a delay, a size), a line per other setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plait.analysis.factors import main_factor
from plait.analysis.judged import JUDGED
from plait.analysis.wording import case_label, short_name, show
from plait.report.cases_chart import SCHEMA, scale_of
from plait.report.theme import case_token
from plait.units import Duration, Rate, Ratio, Size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import CaseSummary
    from plait.analysis.summarise import CaseRows

Spec = dict[str, Any]

STEPS = 3
"""Fewer values are better told apart as cases."""
MOST_LINES = 6
LOGARITHMIC = 30
"""From this ratio of greatest to least value on, the axis is logarithmic."""

_QUANTITIES = ((Rate, 1e6, "Mbit/s"), (Duration, 1e6, "ms"), (Size, 1e3, "kB"), (Ratio, 0.01, "%"))


@dataclass(frozen=True)
class Sweep:
    """What is swept: the setting, its value at each case in `unit`, and the label of each case's line."""

    setting: str
    unit: str
    values: dict[str, float]
    lines: dict[str, str]


def sweep_of(cases: Sequence[CaseRows | CaseSummary]) -> Sweep | None:
    """Return the setting with most steps among those that are numbers; None when there is none to draw."""
    factor = main_factor(cases)
    found: list[tuple[int, Sweep]] = []
    for setting in dict.fromkeys(key for case in cases for key in case.settings):
        given = [case.settings.get(setting) for case in cases]
        numbers = _numbers(given)
        if numbers is None:
            continue
        values, unit = numbers
        lines = {
            case.name: case_label("", {k: v for k, v in case.settings.items() if k != setting})
            for case in cases
        }
        steps = len(set(values))
        pairs = set(zip(values, lines.values(), strict=True))
        if steps >= STEPS and len(set(lines.values())) <= MOST_LINES and len(pairs) == len(cases):
            names = [case.name for case in cases]
            sweep = Sweep(setting, unit, dict(zip(names, values, strict=True)), lines)
            found.append((steps - (setting == factor), sweep))
    return max(found, key=lambda entry: entry[0])[1] if found else None


def sweep_spec(
    rows: Sequence[CaseRows], summaries: Sequence[CaseSummary], metric: str, sweep: Sweep
) -> Spec | None:
    """Return the figure of `metric` ("goodput_bps", "completion_s") over a sweep; None when no trial has it."""
    values = [v for case in rows for row in case.rows if (v := row.metrics.get(metric)) is not None]
    if not values:
        return None
    divisor, unit = scale_of(metric, max(values))
    order = list(dict.fromkeys(sweep.lines.values()))
    least, most = min(sweep.values.values()), max(sweep.values.values())
    name = short_name(sweep.setting)
    title = f"{name}, {sweep.unit}" if sweep.unit else name
    scale = {"type": "log"} if least > 0 and most / least >= LOGARITHMIC else {"zero": False}
    return {
        "$schema": SCHEMA,
        "width": 520,
        "height": 280,
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "scale": {**scale, "padding": 14},
                "axis": {"title": title, "values": sorted(set(sweep.values.values())), "labelOverlap": True},
            },
            "y": {
                "type": "quantitative",
                "scale": {"zero": True},
                "axis": {"title": f"{JUDGED[metric].title}, {unit}", "tickCount": 6},
            },
            "color": {
                "field": "line",
                "type": "nominal",
                "sort": order,
                "scale": {"domain": order, "range": [case_token(number) for number in range(len(order))]},
                "legend": {"symbolType": "stroke"} if len(order) > 1 else None,
            },
        },
        "layer": [
            _trials(rows, metric, divisor, sweep),
            *_means(summaries, metric, divisor, sweep),
        ],
    }


def _trials(rows: Sequence[CaseRows], metric: str, divisor: float, sweep: Sweep) -> Spec:
    data = [
        {
            "x": sweep.values[case.name],
            "line": sweep.lines[case.name],
            "y": value / divisor,
            "shown": show(metric, value),
            "trial": f"{row.index:03d}",
        }
        for case in rows
        for row in case.rows
        if (value := row.metrics.get(metric)) is not None
    ]
    return {
        "data": {"values": data},
        "mark": {"type": "circle", "size": 26, "opacity": 0.45},
        "encoding": {
            "y": {"field": "y"},
            "tooltip": [
                {"field": "line", "title": "case"},
                {"field": "x", "title": short_name(sweep.setting)},
                {"field": "trial", "title": "trial"},
                {"field": "shown", "title": JUDGED[metric].noun},
            ],
        },
    }


def _means(summaries: Sequence[CaseSummary], metric: str, divisor: float, sweep: Sweep) -> list[Spec]:
    """Return the line through the means, and their intervals."""
    data = []
    for case in summaries:
        stats = case.metrics.get(metric)
        if stats is None or stats.mean is None:
            continue
        low, high = stats.ci95 or (stats.mean, stats.mean)
        data.append(
            {
                "x": sweep.values[case.name],
                "line": sweep.lines[case.name],
                "mean": stats.mean / divisor,
                "low": low / divisor,
                "high": high / divisor,
            }
        )
    return [
        {"data": {"values": data}, "mark": "line", "encoding": {"y": {"field": "mean"}}},
        {
            "data": {"values": data},
            "mark": {"type": "rule", "strokeWidth": 2},
            "encoding": {"y": {"field": "low"}, "y2": {"field": "high"}},
        },
    ]


def _numbers(given: Sequence[Any]) -> tuple[list[float], str] | None:
    """Return settings as numbers and their unit; None when they are not all numbers of one kind."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in given):
        return [float(value) for value in given], ""
    if not all(isinstance(value, str) for value in given):
        return None
    for quantity, divisor, unit in _QUANTITIES:
        try:
            return [float(quantity.parse(value)) / divisor for value in given], unit
        except ValueError:
            continue
    return None
