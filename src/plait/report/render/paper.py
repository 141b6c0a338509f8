"""Figures at the widths of a paper: a column or the page of a publisher, at type sizes that can be read in print.

A pixel of a specification is 1/96 inch, so that labels of 11 pixels have 8 points. Single charts are laid out for their
width; `plait.report.render.grid` sets out those of several panels, which are then scaled to the width exactly.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from plait.errors import RequestError
from plait.report.render.formats import width_of
from plait.report.render.text_width import folded, text_width

Spec = dict[str, Any]


@dataclass(frozen=True)
class _Paper:
    """The widths of one column and of the page (both columns), in mm."""

    column_mm: float
    page_mm: float


PAPERS = {
    "plain": _Paper(85.0, 175.0),
    # IEEE Author Center, "Resolution and Size": 3.5 and 7.16 inches.
    "ieee": _Paper(88.9, 181.9),
    # acmart 2.x, format sigconf: columnwidth and textwidth are 241.15 and 506.30 points of 1/72.27 inch.
    "acm": _Paper(84.7, 177.9),
    # USENIX templates (usenix2019_v3): two columns of 3.33 inches in 7 inches.
    "usenix": _Paper(84.6, 177.8),
}
"""The widths that `style` names."""
PAGE_MM = PAPERS["plain"].page_mm
COLUMN_MM = PAPERS["plain"].column_mm
LEAST_MM, MOST_MM = 40.0, 400.0
PIXELS_PER_MM = 96 / 25.4
_NAMES = re.compile(r"\((\{.*\})\)\[datum\.label\]")
"""How a key replaces the names of columns by words (`plait.report.figures.kinds.over_time_chart`)."""
MOST_ENTRIES = 12
_APART = 3
"""Least pixels between labels."""
_NUMBER_GAP = 6
"""Least pixels between labels of numbers."""
_INSIDE = 14
"""Pixels between the ends of a scale and its first and last value (`padding` of figures of sweeps)."""
_KEY_LINE = 18
"""Height of an entry of a key that is one column."""
_SYMBOL = 44
"""Pixels that the symbol of an entry takes, with its distance to the next one."""
HIGHEST_MM = 118.0
"""Height that a chart with rows does not exceed unless its rows would become unreadable."""
_AROUND = 90
"""Pixels above and below the rows of a chart: key, labels, title."""
_ROW, _CELL = 13, 26
"""Least height of a row beside whose label there are boxes, and of one whose cells have two lines of text."""
_NOTE = 11
"""Font size of the words above a figure."""
_DIGITS = (11.5, 10.0, 9.0)
"""Font sizes of the numbers in cells, the best one first."""
_BOUND = 8.5
"""Font size of the intervals below them."""
_GAP = 4
"""Pixels between the boxes of two rows."""
NARROW_MM = 120.0
"""A narrower figure has no numbers beside the points, because they would cover others."""
_NEAR = 4
"""Pixels by which a figure may differ from its width before it is scaled."""
_BESIDE = 62
"""Pixels beside the axes of a panel: labels, title."""


def width_in_mm(text: str, paper: _Paper) -> float:
    """Return the width that a user names: `page`, `column`, or a number of mm.

    Raises:
        RequestError: it is neither.
    """
    named = {"page": paper.page_mm, "column": paper.column_mm}
    try:
        width = named[text] if text in named else float(text)
    except ValueError:
        width = math.nan
    if not LEAST_MM <= width <= MOST_MM:
        raise RequestError(
            f"--width {text[:20]}: this is no width of a figure; write page, column, or a number from {LEAST_MM:g} to "
            f"{MOST_MM:g} (mm)"
        )
    return width


def fitted(spec: Spec, width_mm: float, note: str = "") -> Spec:
    """Return one chart laid out to be `width_mm` wide, including axes and labels, with `note` above it."""
    width = width_mm * PIXELS_PER_MM
    (drawn,) = with_readable_cells(
        [for_paper(spec, numbers=width_mm >= NARROW_MM)], width - _beside(spec) - 12
    )
    drawn = with_turned_labels(drawn, width - _BESIDE - 12)
    drawn = _with_bounded_height(with_fitting_ticks(drawn, width - _BESIDE - 12, rows=2))
    return {
        **with_narrow_keys(drawn, width - _BESIDE - 12),
        **({"title": title_above([note], width - 12)} if note else {}),
        "width": round(width),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "usermeta": {"width_mm": width_mm},
    }


def _beside(spec: Spec) -> float:
    """Return the pixels beside a panel with a row for each name: labels and title."""
    widest = max((text_width(name, 11) for name in names_along(channel_of(spec, "y"))), default=0.0)
    return max(_BESIDE, widest + 30)


def with_turned_labels(panel: Spec, width: float) -> Spec:
    """Return a panel, `width` pixels wide, whose labels of values along its axis are turned if they have no room."""
    x = channel_of(panel, "x")
    names = names_along(x)
    widest = max((text_width(name, 11) for name in names), default=0.0)
    if names and widest + _APART > width / len(names):
        x["axis"].update({"labelAngle": -40, "labelAlign": "right", "labelBaseline": "middle"})
    return panel


def with_fitting_ticks(panel: Spec, width: float, *, rows: int = 1) -> Spec:
    """Return a panel whose labels of values along a horizontal axis have room, in at most two `rows`.

    A value without room in any row has no tick.
    """
    x = channel_of(panel, "x")
    axis = x.get("axis", {})
    values = axis.get("values")
    if not values or len(values) < 2:
        return panel
    is_log = (x.get("scale") or {}).get("type") == "log"
    places = [math.log(value) if is_log else value for value in values]
    step = (width - 2 * _INSIDE) / (places[-1] - places[0])
    upper, lower = _in_rows(values, [_INSIDE + (place - places[0]) * step for place in places], rows)
    axis["values"] = sorted([*upper, *lower])
    if lower:
        text = f"format(datum.value, '{axis.get('format', '')}')"
        in_rows = f"indexof({lower}, datum.value) < 0 ? {text} : ['', {text}]"
        axis |= {"labelExpr": in_rows, "labelOverlap": False}
    return panel


def _in_rows(
    values: Sequence[float], middles: Sequence[float], count: int
) -> tuple[list[float], list[float]]:
    """Return the values whose labels fit into the upper row, which has the last value, and those in the lower row.

    `middles` are the places of their labels in pixels, in rising order.
    """
    halves = [text_width(f"{value:g}", 11) / 2 for value in values]
    rows: tuple[list[float], list[float]] = ([], [])
    ends = [-math.inf, -math.inf]
    for value, middle, half in zip(values, middles, halves, strict=True):
        for row, limit in enumerate((middles[-1] - halves[-1] - _NUMBER_GAP, math.inf)[:count]):
            is_free = middle - half >= ends[row] + _NUMBER_GAP and middle + half <= limit
            if is_free or (row == 0 and value == values[-1]):
                rows[row].append(value)
                ends[row] = middle + half
                break
    return rows


def title_in_lines(title: Any, width: float, size: float) -> Any:
    """Return a title in as many lines as its panel, `width` pixels wide, needs: a wider one would widen the panel."""
    if isinstance(title, list):
        return [line for part in title for line in folded(part, width, size, bold=True)]
    if not isinstance(title, str):
        return title
    lines = folded(title, width, size, bold=True)
    return lines if len(lines) > 1 or text_width(title, size, bold=True) > width else title


def title_above(notes: Sequence[str], width: float) -> Spec:
    """Return the words above a figure, in lines of at most `width` pixels."""
    text = "; ".join(notes)
    return {
        "text": title_in_lines(text[0].upper() + text[1:], width, _NOTE),
        "fontSize": _NOTE,
        "fontWeight": "normal",
        "color": "@muted",
        "frame": "bounds",
        "offset": 6,
    }


def channel_of(panel: Spec, channel: str) -> Spec:
    """Return a channel with an axis, of all layers or of the first that has one; an empty one without any."""
    for node in (panel, *panel.get("layer", ())):
        encoding: Spec = node.get("encoding", {}).get(channel, {})
        if isinstance(encoding.get("axis"), dict):
            return encoding
    return {}


def names_along(channel: Spec) -> list[str]:
    """Return the values along an axis of names; nothing for numbers."""
    if channel.get("type") not in {"nominal", "ordinal"}:
        return []
    return [str(value) for value in (channel.get("scale") or {}).get("domain") or ()]


def lower_rows(panel: Spec) -> float:
    """Return the least height of a row of a panel: two lines of text in cells, one beside boxes."""
    return _CELL if any(_field_of(layer) == "bound" for layer in panel.get("layer", ())) else _ROW


def with_readable_cells(panels: Sequence[Spec], width: float) -> list[Spec]:
    """Return heat maps, `width` pixels wide, with the numbers that their cells have room for, the same in all.

    Those are the values with their intervals, the values alone, in smaller digits, or none: the key has the colours.
    """
    numbers = [(layer, panel) for panel in panels for layer in panel.get("layer", ()) if _field_of(layer)]

    def room(field: str, size: float) -> bool:
        """Return whether the texts of a field fit into the cells of every panel."""
        return all(
            text_width(str(row[field]), size) + _APART
            <= width / max(1, len(names_along(channel_of(panel, "x"))))
            for _, panel in numbers
            for row in panel["data"]["values"]
        )

    sizes = [size for size in _DIGITS if room("shown", size)]
    whole = sizes[:1] == [_DIGITS[0]] and room("bound", _BOUND)
    if not numbers or whole:
        return list(panels)
    kept = {"shown": {"fontSize": sizes[0], "dy": 0}} if sizes else {}
    return [
        {
            **panel,
            "layer": [
                {**layer, "mark": {**layer["mark"], **kept.get(field, {})}} if field else layer
                for layer in panel["layer"]
                if not (field := _field_of(layer)) or field in kept
            ],
        }
        if any(map(_field_of, panel.get("layer", ())))
        else panel
        for panel in panels
    ]


def _field_of(layer: Spec) -> str | None:
    """Return the field of the numbers that a layer writes into cells."""
    mark, encoding = layer.get("mark"), layer.get("encoding", {})
    is_text = isinstance(mark, dict) and mark.get("type") == "text" and "y" not in encoding
    field: str | None = encoding.get("text", {}).get("field") if is_text else None
    return field if field in {"shown", "bound"} else None


def own_scales(panels: Sequence[Spec]) -> bool:
    """Return whether colours mean another value in each panel, which then has a key of its own."""
    domains = [
        str(channel["scale"].get("domain"))
        for panel in panels
        for layer in panel.get("layer", ())
        if "gradientLength" in ((channel := layer.get("encoding", {}).get("color", {})).get("legend") or {})
    ]
    return len(set(domains)) > 1


def _with_bounded_height(spec: Spec) -> Spec:
    """Return a chart with rows that is no higher than `HIGHEST_MM`, unless its rows would become unreadable."""
    rows = len(names_along(channel_of(spec, "y")))
    if not rows:
        return spec
    room = HIGHEST_MM * PIXELS_PER_MM - _AROUND
    height = max(lower_rows(spec) * rows, min(spec.get("height", room), room))
    return {**with_lower_marks(spec, height / rows), "height": round(height)}


def _rewritten(node: Any, change: Callable[[Spec], None]) -> Any:
    """Return a copy of a chart in which `change` was applied to each object, the inner ones first; not to data."""
    if isinstance(node, list):
        return [_rewritten(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    copy = {name: value if name == "data" else _rewritten(value, change) for name, value in node.items()}
    change(copy)
    return copy


def with_lower_marks(chart: Any, row: float) -> Any:
    """Return a chart whose boxes and strokes are no higher than a row of `row` pixels leaves room for."""

    def lower(node: Spec) -> None:
        if node.get("type") in {"bar", "tick"} and "size" in node:
            node["size"] = min(node["size"], max(4, row - _GAP))

    return _rewritten(chart, lower)


def refitted(spec: Spec, svg: str) -> Spec | None:
    """Return a chart of several panels with panels as wide as its width leaves them; None if `svg` has that width.

    How wide labels beside the axes are, only the drawing shows.
    """
    width = width_of(svg)
    if width is None or "concat" not in spec:
        return None
    missing = spec["usermeta"]["width_mm"] * PIXELS_PER_MM - width
    if abs(missing) < _NEAR:
        return None
    change = missing / spec["columns"]
    return {
        **spec,
        "concat": [{**panel, "width": max(40, int(panel["width"] + change))} for panel in spec["concat"]],
    }


def with_narrow_keys(chart: Any, width: float) -> Any:
    """Return a chart whose keys have no more columns than `width` pixels hold: more would leave the figure."""

    def narrow(channel: Spec) -> None:
        key = _key_of(channel)
        if key is not None and key.names:
            columns = max(1, min(len(key.names), int(width // key.entry)))
            channel["legend"] = {
                **channel["legend"],
                "columns": columns,
                "labelLimit": max(40, width - _SYMBOL),
                "symbolLimit": MOST_ENTRIES,
            }

    return _rewritten(chart, narrow)


def with_key_at(chart: Any, x: float, y: float) -> Any:
    """Return a chart whose keys are one column that begins at a place of the whole figure, in pixels."""
    column = {"orient": "none", "legendX": x, "legendY": y, "columns": 1, "direction": "vertical"}

    def move(channel: Spec) -> None:
        if isinstance(channel.get("legend"), dict):
            channel["legend"] = channel["legend"] | column

    return _rewritten(chart, move)


@dataclass(frozen=True)
class _Key:
    """The key of a channel: its title, and its entries; a bar of colours has none."""

    title: str
    names: tuple[str, ...]

    @property
    def entry(self) -> float:
        """The width of the widest entry."""
        return max((text_width(name, 11) for name in self.names), default=0) + _SYMBOL

    def lines(self, width: float) -> int:
        """Return how many lines it takes above panels `width` pixels wide, its title included."""
        return -(-max(1, len(self.names)) // max(1, int(width // self.entry))) + bool(self.title)


def _key_of(channel: Any) -> _Key | None:
    legend = channel.get("legend") if isinstance(channel, dict) else None
    domain = (channel.get("scale") or {}).get("domain") if isinstance(legend, dict) else None
    if not isinstance(legend, dict) or not isinstance(domain, list | tuple):
        return None
    words = _NAMES.match(legend.get("labelExpr", ""))
    names = json.loads(words[1]).values() if words else map(str, domain)
    return _Key(str(legend.get("title") or ""), () if "gradientLength" in legend else tuple(names))


def _keys(panels: Sequence[Spec]) -> list[_Key]:
    """Return the different keys of panels."""
    channels = (
        channel
        for panel in panels
        for node in (panel, *panel.get("layer", ()))
        for channel in node.get("encoding", {}).values()
    )
    return list(dict.fromkeys(key for channel in channels if (key := _key_of(channel)) is not None))


def key_size(panels: Sequence[Spec]) -> tuple[float, float]:
    """Return the width and height of the only key of these panels as one column; zeros for none, or for several."""
    keys = _keys(panels)
    if len(keys) != 1 or not keys[0].names:
        return 0.0, 0.0
    (key,) = keys
    width = max(key.entry, text_width(key.title, 11, bold=True))
    return width, _KEY_LINE * (len(key.names) + bool(key.title))


def key_lines(panels: Sequence[Spec], width: float) -> int:
    """Return how many lines the keys above panels take in `width` pixels, their titles included."""
    return sum(key.lines(width) for key in _keys(panels) if key.names or not own_scales(panels))


def for_paper(spec: Spec, *, inside: bool = False, numbers: bool = True) -> Spec:
    """Return the chart without what only answers a pointer.

    `inside` another one it does not name its language; without `numbers` it has none beside its points.
    """
    copy = deepcopy(spec)
    if inside:
        copy.pop("$schema", None)
    if "layer" in copy:
        copy["layer"] = [layer for layer in copy["layer"] if "params" not in layer]
        for layer in copy["layer"]:
            if not numbers and "layer" in layer:  # of `plait.report.figures.kinds.cases`
                layer["layer"] = [
                    inner for inner in layer["layer"] if not inner.get("name", "").startswith("number-")
                ]
    return copy
