"""The charts over time of one trial: goodput stacked by subflow, round-trip time, window, and queues of links.

A figure is a Vega-Lite specification (a JSON value) whose colours are tokens, see `plait.report.render.theme`. Data are
columns of numbers (`s0`, `s1`, .. one per series), so that no name of the user's is ever part of a formula.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from plait.analysis.metrics.catalogue import unit_of
from plait.analysis.series import Points, TrialSeries
from plait.analysis.wording import significant
from plait.report.figures.kind import Spec
from plait.report.figures.marks import field, levels, numbers
from plait.report.render.theme import dashes, path_token

HEIGHT = 120
CLIP = 1.25
"""Goodput is drawn up to this multiple of what the links allow."""
MOST_NAMED = 12
"""Marks with words in one chart; more would hide what they explain."""
_SYMBOLS: dict[bool, Spec] = {
    True: {"symbolType": "square", "symbolSize": 100, "symbolStrokeWidth": 0},
    False: {"symbolType": "stroke"},
}
KINDS = {
    "goodput": ("Goodput, {}", "goodput_bps"),
    "rtt": ("Round-trip time, {}", "rtt_us"),
    "cwnd": ("Congestion window, segments", "cwnd_segments"),
    "queue": ("Queue, {}", "queue_bytes"),
}
"""By kind of chart: its title, and the column of its data."""


@dataclass(frozen=True)
class Line:
    """One series as it is drawn: its label, colour token, and points in the unit shown."""

    label: str
    colour: str
    points: Points
    path: str = ""
    """The path of a subflow."""


@dataclass(frozen=True)
class Key:
    """The series that several charts share, so that one key serves them all."""

    entries: tuple[tuple[str, str], ...]
    """Label and colour token of each entry."""
    of: dict[str, str]
    """The entry of each line, by the line's label."""
    by_path: bool = False
    """The stack of goodput has an area for each path, not for each subflow."""


@dataclass(frozen=True)
class Frame:
    """Common scales of several charts, which make them comparable: the length of the time axis, and units and tops."""

    seconds: float
    units: dict[str, tuple[float, str]]
    """By kind, the unit shown: in that of the column, and its name."""
    tops: dict[str, float]
    """By kind, the largest value on the axis, in the unit shown."""


def frame_of(trials: Sequence[TrialSeries]) -> Frame:
    """Return the frame that holds the charts of all these trials."""
    peak = max([*map(_stack_peak, trials), *(series.ideal_bps or 0.0 for series in trials)], default=0.0)
    tops = {"goodput": peak}
    for kind in ("rtt", "cwnd", "queue"):
        values = (value for series in trials for line in lines(series, kind) for _, value in line.points)
        tops[kind] = max((value for value in values if not math.isnan(value)), default=0.0)
    units = {kind: unit_of(column).scale(tops[kind]) for kind, (_, column) in KINDS.items()}
    seconds = max((series.duration_s for series in trials), default=0.0)
    ideals = [series.ideal_bps for series in trials if series.ideal_bps is not None]
    if len(ideals) == len(trials) and ideals:
        # Data that waited for a lost segment arrive in bursts far above the links' rate: they leave the chart.
        tops["goodput"] = min(tops["goodput"], CLIP * max(ideals))
    # Above the stack there is room for the label of what the links allow.
    room = {
        kind: top / units[kind][0] * (1.2 if kind == "goodput" else 1.05) or 1.0 for kind, top in tops.items()
    }
    return Frame(seconds, units, room)


def lines(series: TrialSeries, kind: str, divisor: float = 1.0) -> list[Line]:
    """Return the lines of one kind of chart, in the unit of its column times `divisor`."""
    if kind == "queue":
        return _queue_lines(series, divisor)
    drawn = []
    for subflow in series.subflows:
        scaled = tuple((t, value / divisor) for t, value in getattr(subflow, KINDS[kind][1]))
        drawn.append(Line(subflow.label, path_token(subflow.colour), scaled, subflow.path))
    return drawn


def chart(
    series: TrialSeries, kind: str, frame: Frame, *, legend: bool = False, key: Key | None = None
) -> Spec | None:
    """Return one chart of one case; None when nothing of that kind was measured.

    `key` has the entries of all lines where several charts share one key.
    """
    if key is not None and key.by_path and kind == "goodput":
        series = replace(series, subflows=series.by_path)
    divisor, unit = frame.units[kind]
    drawn = [line for line in lines(series, kind, divisor) if line.points]
    if not drawn:
        return None
    if key is not None:
        drawn = [line for label, _ in key.entries for line in drawn if key.of[line.label] == label]
    shapes = _shape_layer(drawn, kind, frame.tops[kind], legend=legend)
    if key is not None:
        _colour_by_entry(shapes, key, [key.of[line.label] for line in drawn])
    layers = [_rule_layer(drawn), shapes]
    if series.marks:
        layers.append(_marks_layer(series.marks, named=kind == "goodput"))
    if kind == "goodput" and series.ideal_bps is not None:
        layers.append(_ideal_layer(series.ideal_bps / divisor, frame))
    independent = {"color": "independent", "strokeDash": "independent"}
    return {
        "title": KINDS[kind][0].format(unit),
        "width": 420,
        "height": HEIGHT,
        "data": _data(drawn, series.duration_s if kind == "goodput" else None),
        "encoding": {
            "x": numbers(
                "t",
                scale={"domain": [0, frame.seconds], "nice": False},
                axis={"title": None, "tickCount": 6, "labelExpr": "datum.label + ' s'"},
            )
        },
        "layer": layers,
        **({"resolve": {"scale": independent}} if key is None else {}),
    }


def _queue_lines(series: TrialSeries, divisor: float) -> list[Line]:
    """Return a line per queue, in the colour of its path; queues of the same path differ in their dashes."""
    drawn: list[Line] = []
    for number, queue in enumerate(series.queues):
        colour = path_token(queue.colour if queue.colour is not None else number)
        points = tuple((t, value / divisor) for t, value in queue.queue_bytes)
        drawn.append(Line(queue.label, colour, points))
    return drawn


def _stack_peak(series: TrialSeries) -> float:
    totals: dict[float, float] = {}
    for subflow in series.subflows:
        for t, value in subflow.goodput_bps:
            totals[t] = totals.get(t, 0.0) + value
    return max(totals.values(), default=0.0)


def _data(drawn: Sequence[Line], end_s: float | None) -> Spec:
    """Return the lines as CSV columns over the union of their times; the last bin is closed by a row at its end."""
    columns = [dict(line.points) for line in drawn]
    times = sorted({t for column in columns for t in column})
    rows = ["t," + ",".join(f"s{number}" for number in range(len(drawn)))]
    rows += [",".join([_number(t), *(_number(column.get(t)) for column in columns)]) for t in times]
    if end_s is not None and times:
        last = [_number(column.get(times[-1])) for column in columns]
        rows.append(",".join([_number(end_s), *last]))
    parse = {"t": "number"} | {f"s{number}": "number" for number in range(len(drawn))}
    return {"values": "\n".join(rows), "format": {"type": "csv", "parse": parse}}


def _number(value: float | None) -> str:
    """Return a number for CSV with five significant digits; an empty text for None, and NaN as JavaScript reads it."""
    return "" if value is None else "NaN" if math.isnan(value) else f"{value:.5g}"


def _shape_layer(drawn: Sequence[Line], kind: str, top: float, *, legend: bool) -> Spec:
    """Return the lines, or for goodput the stack of areas."""
    keys = [f"s{number}" for number in range(len(drawn))]
    names = json.dumps(dict(zip(keys, [line.label for line in drawn], strict=True)))
    key = {"labelExpr": f"({names})[datum.label]"} | _SYMBOLS[kind == "goodput"] if legend else None
    colour = {**levels("k", keys, range=[line.colour for line in drawn]), "legend": key}
    axis = {"title": None, "tickCount": 4, "minExtent": 34}
    y = numbers("v", scale={"domain": [0, top], "nice": False}, axis=axis)
    layer: Spec = {
        "transform": [{"fold": keys, "as": ["k", "v"]}, {"filter": "isValid(datum.v) || isNaN(datum.v)"}],
        "encoding": {"y": y, "color": colour},
    }
    if kind == "goodput":
        layer["mark"] = {"type": "area", "interpolate": "step-after", "opacity": 0.88, "clip": True}
        y["stack"] = "zero"
        # The first subflow lies at the bottom.
        layer["transform"].append({"calculate": "toNumber(slice(datum.k, 1))", "as": "place"})
        layer["encoding"]["order"] = numbers("place")
    else:
        layer["mark"] = {"type": "line", "clip": True}
        # In black and white, and for whoever sees no colours, lines differ in their dashes.
        layer["encoding"]["strokeDash"] = {**levels("k", keys, range=dashes(len(drawn))), "legend": key}
    return layer


def _colour_by_entry(layer: Spec, key: Key, entries_of_lines: Sequence[str]) -> None:
    """Give the lines, in the order of their columns, the colours of `entries_of_lines` in place of their own."""
    places = {label: f"e{number}" for number, (label, _) in enumerate(key.entries)}
    entries = {f"s{number}": places[label] for number, label in enumerate(entries_of_lines)}
    names = json.dumps({place: label for label, place in places.items()})
    layer["transform"].append({"calculate": f"({json.dumps(entries)})[datum.k]", "as": "e"})
    layer["encoding"]["detail"] = {"field": "k", "type": "nominal"}
    ranges = {"color": [colour for _, colour in key.entries], "strokeDash": dashes(len(places))}
    for channel, values in ranges.items():
        encoding = layer["encoding"].get(channel)
        if encoding is not None:
            encoding |= levels("e", list(places.values()), range=values)
            if encoding["legend"] is not None:
                encoding["legend"] = {**encoding["legend"], "labelExpr": f"({names})[datum.label]"}


def _rule_layer(drawn: Sequence[Line]) -> Spec:
    """Return the line under the pointer and its tooltip with the values of all series."""
    tooltip = [
        numbers("t", title="s", format=".3~f"),
        *(numbers(f"s{number}", title=line.label, format=".4~r") for number, line in enumerate(drawn)),
    ]
    nearest = {"type": "point", "fields": ["t"], "nearest": True, "on": "pointerover", "clear": "pointerout"}
    return {
        "params": [{"name": "at", "select": nearest}],
        "mark": {"type": "rule", "color": "@faint", "strokeWidth": 1},
        "encoding": {
            "opacity": {"condition": {"param": "at", "empty": False, "value": 1}, "value": 0},
            "tooltip": tooltip,
        },
    }


def _marks_layer(marks: Sequence[tuple[float, str]], *, named: bool) -> Spec:
    """Return a line for each moment at which the network was changed; its words run along it where there is room."""
    rule = {"type": "rule", "strokeDash": [2, 2], "color": "@muted", "strokeWidth": 1}
    layers: list[Spec] = [{"mark": rule}]
    if named and len(marks) <= MOST_NAMED:
        mark = {"type": "text", "angle": 270, "align": "right", "baseline": "bottom", "dx": -2, "dy": -2}
        words = mark | {"fontSize": 9.5, "limit": HEIGHT - 4}
        # A halo keeps words readable over the areas of a stack.
        halo = {"stroke": "@surface", "strokeWidth": 3, "strokeJoin": "round"}
        halo |= {"color": "@surface", "opacity": 0.85}
        layers += [
            {"mark": words | look, "encoding": {"y": {"value": 0}, "text": {"field": "text"}}}
            for look in (halo, {"color": "@ink"})
        ]
    return {
        "data": {"values": [{"t": t, "text": words} for t, words in marks]},
        "encoding": {"tooltip": [{"field": "text", "title": "event"}]},
        "layer": layers,
    }


def _ideal_layer(ideal: float, frame: Frame) -> Spec:
    """Return the dashed line of what the links allow, with its value."""
    rule = {"type": "rule", "strokeDash": [4, 3], "color": "@muted", "strokeWidth": 1}
    words = {"type": "text", "align": "right", "baseline": "bottom", "dy": -3, "fontSize": 10.5}
    return {
        "data": {"values": [{"v": ideal, "t": frame.seconds, "text": f"links allow {significant(ideal)}"}]},
        "encoding": {"y": numbers("v")},
        "layer": [
            {"mark": rule, "encoding": {"x": None}},
            {
                "mark": words | {"color": "@muted"},
                "encoding": {"x": numbers("t"), "text": field("text")},
            },
        ],
    }
