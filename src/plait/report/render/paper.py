"""Figures at the widths of a paper: a column or the page of a publisher, at type sizes that can be read in print.

A pixel of a specification is 1/96 inch, so that labels of 11 pixels have 8 points. Single charts are laid out for their
width; those of several panels are set out in as many columns as fit, and then scaled to the width exactly.
"""

from __future__ import annotations

import json
import math
import re
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plait.errors import RequestError
from plait.report.render.text_width import text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

Spec = dict[str, Any]


@dataclass(frozen=True)
class Paper:
    """The widths of one column and of the page (both columns), in mm."""

    column_mm: float
    page_mm: float


PAPERS = {
    "plain": Paper(85.0, 175.0),
    # IEEE Author Center, "Resolution and Size": 3.5 and 7.16 inches.
    "ieee": Paper(88.9, 181.9),
    # acmart 2.x, format sigconf: columnwidth and textwidth are 241.15 and 506.30 points of 1/72.27 inch.
    "acm": Paper(84.7, 177.9),
    # USENIX templates (usenix2019_v3): two columns of 3.33 inches in 7 inches.
    "usenix": Paper(84.6, 177.8),
}
"""The widths that `style` names."""
PAGE_MM = PAPERS["plain"].page_mm
COLUMN_MM = PAPERS["plain"].column_mm
LEAST_MM, MOST_MM = 40.0, 400.0
PIXELS_PER_MM = 96 / 25.4
_SIZE = re.compile(r'(<svg[^>]*?) width="([\d.]+)(?:mm)?" height="([\d.]+)(mm|)"')
_NAMES = re.compile(r"\((\{.*\})\)\[datum\.label\]")
"""How a key replaces the names of columns by words (`plait.report.figures.kinds.over_time_chart`)."""
MOST_ENTRIES = 12
_APART = 3
"""Least pixels between labels."""
_TICK = 56
"""Pixels of an axis in a panel for each tick."""
_BETWEEN = 6
"""Least pixels between labels of numbers."""
_INSIDE = 14
"""Pixels between the ends of a scale and its first and last value (`padding` of figures of sweeps)."""
_SYMBOL = 34
"""Pixels that the symbol of an entry takes, with its distance to the next one."""
FEW_PANELS = 3
LOWER = 0.66
"""The part of its height that each of more panels has where they stand above each other."""
NARROW_MM = 120.0
"""In a narrower figure no numbers stand beside the points: they would cover others."""
_NEAR = 4
"""Pixels by which a figure may differ from its width before it is scaled."""
_BESIDE = 62
"""Pixels beside the axes of a panel: labels, title."""


def width_in_mm(text: str, paper: Paper) -> float:
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


def fitted(spec: Spec, width_mm: float) -> Spec:
    """Return one chart laid out to be `width_mm` wide, axes and labels included."""
    width = width_mm * PIXELS_PER_MM
    drawn = _with_turned_labels(_for_paper(spec, numbers=width_mm >= NARROW_MM), width - _BESIDE - 12)
    drawn = _with_fitting_ticks(drawn, width - _BESIDE - 12)
    return {
        **with_narrow_keys(drawn, width - _BESIDE - 12),
        "width": round(width),
        "autosize": {"type": "fit-x", "contains": "padding"},
        "usermeta": {"width_mm": width_mm},
    }


def together(schema: str, panels: Sequence[Spec], width_mm: float) -> Spec:
    """Return several panels as one chart, in as many columns as fit into `width_mm`.

    One key above serves all; panels that keep their colours to themselves (`resolve`) have a key each.
    """
    own_colours = any("resolve" in panel for panel in panels)
    total = width_mm * PIXELS_PER_MM
    widths = [int(panel.get("width", 240)) for panel in panels]
    columns = max(1, min(len(panels), 3, int((total + 24) // (min(150, max(widths)) + _BESIDE))))
    if len(panels) == 4:
        columns = min(columns, 2)
    inner = int((total - 24 * (columns - 1)) / columns - _BESIDE)
    key = max(map(_widest_entry, panels)) if own_colours else 0.0
    while columns > 1 and inner < key:
        columns -= 1
        inner = int((total - 24 * (columns - 1)) / columns - _BESIDE)
    panels = _with_shared_titles(panels, columns, inner)
    laid_out = [
        with_narrow_keys(
            {
                **_with_fitting_ticks(_with_turned_labels(_for_paper(panel, inside=True), inner), inner),
                "width": inner,
            },
            inner if own_colours else total - _BESIDE - 12,
        )
        for panel in panels
    ]
    resolve = {"scale": {"color": "independent", "strokeDash": "independent"}} if own_colours else {}
    return {
        "$schema": schema,
        "concat": laid_out,
        "columns": columns,
        "spacing": {"row": 24, "column": 24},
        "usermeta": {"width_mm": width_mm},
        **({"resolve": resolve} if resolve else {}),
    }


def _with_shared_titles(panels: Sequence[Spec], columns: int, inner: int) -> list[Spec]:
    """Return the panels, those of which name only once what all name: at the left side, and at the lower end."""
    titles = [[_axis(panel, channel).get("title") for panel in panels] for channel in ("x", "y")]
    made = []
    for number, panel in enumerate(panels):
        copy = deepcopy(panel)
        if len(set(map(str, titles[0]))) == 1 and number + columns < len(panels):
            _axis(copy, "x")["title"] = None
        if len(set(map(str, titles[1]))) == 1 and number % columns:
            _axis(copy, "y")["title"] = None
        if "title" in copy:
            copy["title"] = _folded(copy["title"], inner)
        if columns == 1 and len(panels) > FEW_PANELS and "y" in copy.get("encoding", {}) and "height" in copy:
            quantitative = copy["encoding"]["y"].get("type") == "quantitative"
            copy["height"] = round(copy["height"] * LOWER) if quantitative else copy["height"]
        if _axis(copy, "x").get("tickCount"):
            _axis(copy, "x")["tickCount"] = max(2, min(4, inner // _TICK))
        made.append(copy)
    return made


def _with_turned_labels(panel: Spec, width: float) -> Spec:
    """Return a panel, `width` pixels wide, whose labels of values along its axis are turned if they have no room."""
    x = panel.get("encoding", {}).get("x", {})
    domain = (x.get("scale") or {}).get("domain")
    if x.get("type") not in {"nominal", "ordinal"} or not domain:
        return panel
    widest = max(text_width(str(value), 11) for value in domain)
    if widest + _APART > width / len(domain):
        _axis(panel, "x").update({"labelAngle": -40, "labelAlign": "right", "labelBaseline": "middle"})
    return panel


def _with_fitting_ticks(panel: Spec, width: float) -> Spec:
    """Return a panel whose horizontal axis has only ticks that have room for their labels."""
    axis, x = _axis(panel, "x"), panel.get("encoding", {}).get("x", {})
    values = axis.get("values")
    if not values or len(values) < 2:
        return panel
    is_log = (x.get("scale") or {}).get("type") == "log"
    places = [math.log(value) if is_log else value for value in values]
    step = (width - 2 * _INSIDE) / (places[-1] - places[0])
    kept: list[float] = []
    end = -math.inf
    last = _INSIDE + (places[-1] - places[0]) * step - text_width(f"{values[-1]:g}", 11) / 2
    for value, place in zip(values, places, strict=True):
        middle, half = _INSIDE + (place - places[0]) * step, text_width(f"{value:g}", 11) / 2
        if value == values[-1] or (middle - half >= end + _BETWEEN and middle + half + _BETWEEN <= last):
            kept.append(value)
            end = middle + half
    axis["values"] = kept
    return panel


def _folded(title: Any, width: float) -> Any:
    """Return a title in as many lines as its panel, `width` pixels wide, needs: a wider one would widen the panel."""
    if isinstance(title, dict):
        return {**title, "text": _folded(title["text"], width)}
    if not isinstance(title, str) or text_width(title, 12.5, bold=True) <= width:
        return title
    lines = [""]
    for word in title.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, 12.5, bold=True) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _axis(panel: Spec, channel: str) -> Spec:
    """Return the axis of a channel, of all layers or of the first that has one; an empty one without any."""
    for node in (panel, *panel.get("layer", ())):
        axis = node.get("encoding", {}).get(channel, {}).get("axis")
        if isinstance(axis, dict):
            return axis
    return {}


def refitted(spec: Spec, svg: str) -> Spec | None:
    """Return a chart of several panels with panels as wide as its width leaves them; None if `svg` has that width.

    How wide labels beside the axes are, only the drawing shows.
    """
    size = _SIZE.search(svg)
    if size is None or "concat" not in spec:
        return None
    missing = spec["usermeta"]["width_mm"] * PIXELS_PER_MM - float(size[2])
    if abs(missing) < _NEAR:
        return None
    change = missing / spec["columns"]
    return {
        **spec,
        "concat": [{**panel, "width": max(40, int(panel["width"] + change))} for panel in spec["concat"]],
    }


def scaled(svg: str, width_mm: float) -> str:
    """Return the drawing scaled to a width of `width_mm`; its height keeps the proportion."""
    return _resized(svg, width_mm, "mm")


def in_points(svg: str) -> str:
    """Return a drawing sized in millimetres as one in points without a unit, as makers of PDF and PNG take it."""
    size = _SIZE.search(svg)
    if size is None or size[4] != "mm":
        return svg
    return _resized(svg, float(size[2]) * 72 / 25.4, "")


def _resized(svg: str, width: float, unit: str) -> str:
    match = _SIZE.search(svg)
    if match is None:
        return svg
    height = float(match[3]) * width / float(match[2])
    size = f'{match[1]} width="{width:.6g}{unit}" height="{height:.6g}{unit}"'
    return svg[: match.start()] + size + svg[match.end() :]


def with_narrow_keys(node: Any, width: float) -> Any:
    """Return a chart whose keys have no more columns than `width` pixels hold: more would leave the figure."""
    if isinstance(node, list):
        return [with_narrow_keys(item, width) for item in node]
    if not isinstance(node, dict):
        return node
    made = {name: value if name == "data" else with_narrow_keys(value, width) for name, value in node.items()}
    legend, domain = made.get("legend"), (made.get("scale") or {}).get("domain") if "scale" in made else None
    if isinstance(legend, dict) and isinstance(domain, list) and "gradientLength" not in legend:
        entry = _entry(legend, domain)
        columns = max(1, min(len(domain), int(width // entry)))
        made["legend"] = {
            **legend,
            "columns": columns,
            "labelLimit": max(40, width - _SYMBOL),
            "symbolLimit": MOST_ENTRIES,
        }
    return made


def _entry(legend: Spec, domain: Sequence[Any]) -> float:
    """Return the width of the widest entry of a key."""
    names = _NAMES.match(legend.get("labelExpr", ""))
    texts = list(json.loads(names[1]).values()) if names else [str(text) for text in domain]
    return max((text_width(text, 11) for text in texts), default=0) + _SYMBOL


def _widest_entry(panel: Spec) -> float:
    """Return the width of the widest entry of the keys of a panel's layers."""
    channels = [node.get("encoding", {}).get("color", {}) for node in (panel, *panel.get("layer", ()))]
    return max(
        (
            _entry(channel["legend"], channel["scale"]["domain"])
            for channel in channels
            if isinstance(channel.get("legend"), dict) and "domain" in (channel.get("scale") or {})
        ),
        default=0.0,
    )


def _for_paper(spec: Spec, *, inside: bool = False, numbers: bool = True) -> Spec:
    """Return the chart without what only answers a pointer.

    `inside` another one it does not name its language; without `numbers` none stand beside its points.
    """
    copy = deepcopy(spec)
    if inside:
        copy.pop("$schema", None)
    if "layer" in copy:
        copy["layer"] = [layer for layer in copy["layer"] if "params" not in layer]
        if not numbers:
            for layer in copy["layer"]:
                layers = layer.get("layer", ())
                if layers:
                    layer["layer"] = [inner for inner in layers if not _is_number(inner)]
    return copy


def _is_number(layer: Spec) -> bool:
    """Return whether a layer has numbers beside points (`plait.report.figures.kinds.cases`)."""
    return str(layer.get("name", "")).startswith("number")
