"""Panels of one figure as a grid: one key, each axis named once, and labels only at the left side and the lower end.

The height of a grid is bounded, so that a figure leaves room for the text of a paper. Lengths are pixels of 1/96 inch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from plait.analysis.wording import lowered
from plait.report.render.paper import (
    PIXELS_PER_MM,
    channel_of,
    for_paper,
    key_lines,
    key_size,
    lower_rows,
    names_along,
    own_scales,
    title_above,
    title_in_lines,
    with_fitting_ticks,
    with_key_at,
    with_lower_marks,
    with_narrow_keys,
    with_readable_cells,
    with_turned_labels,
)
from plait.report.render.text_width import text_width

Spec = dict[str, Any]

MOST_MM = 118.0
"""Height that a grid does not exceed unless its rows would become unreadable: half of a column of text."""
_LEAST = (100, 80, 64)
"""Least widths of a panel, the best one first."""
_LEAST_DASHED = 110
"""Least width of a panel in which dashes distinguish lines."""
_PER_VALUE = 22
"""Least width of each value along a nominal axis."""
_APART = 14
"""Pixels between panels side by side."""
_PANEL_GAP = 8
"""Pixels between a panel and the title of the one below."""
_TITLE = 11.5
"""Font size of a panel's title, and of the line above all panels."""
_LINE = 14
_LABELS, _AXIS_TITLE = 20, 18
"""Heights of an axis' labels and of its title."""
_COLOURS = 42
"""Height of the key to the colours of one heat map."""
_EDGE = 18
"""Pixels around all, and for half a label beyond the last panel."""
_TICK = 25
"""Width of a label of numbers that are not known."""
_APART_NUMBERS = 9
"""Least pixels between labels of a horizontal axis."""
_UPRIGHT = 26
"""Pixels of a vertical axis for each of its ticks."""
_FLUSH = 6
"""Labels of vertical axes that are nearer to an end stay within it: titles of panels side by side are level then."""
_CLOSE = -2
"""Least pixels between the boxes of these labels: figures fill less than the height of theirs."""
_LEAST_HEIGHT = 46
"""Least height of a panel whose vertical axis has numbers."""
_TALLEST = 0.9
"""Greatest height of such a panel, in its widths."""


@dataclass(frozen=True)
class _Grid:
    """How panels are set out: their number in a row, the size of each, and whether they share their axes."""

    columns: int
    width: int
    heights: tuple[int, ...]
    shares_x: bool
    shares_y: bool
    tall: float
    """The expected height of all."""


def together(schema: str, panels: Sequence[Spec], width_mm: float, note: str = "") -> Spec:
    """Return several panels as one chart, `width_mm` wide, with one key above them, and `note` above the key."""
    total = width_mm * PIXELS_PER_MM
    drawn = [for_paper(panel, inside=True) for panel in panels]
    axes = [[channel_of(panel, channel) for panel in drawn] for channel in ("x", "y")]
    shares_x, shares_y = _share_axis(axes[0]), _share_axis(axes[1])
    layouts = list(_layouts(drawn, total, shares_x=shares_x, shares_y=shares_y))
    grid = next((layout for layout in layouts if layout.tall <= MOST_MM * PIXELS_PER_MM), layouts[-1])
    drawn = with_readable_cells(drawn, grid.width)
    titles, named = _short_titles([panel.get("title") for panel in drawn], grid.width)
    notes = [text for text in (note, named) if text]
    laid_out = [
        with_narrow_keys(_placed(panel, number, len(drawn), grid), total - 2 * _EDGE)
        for number, panel in enumerate(drawn)
    ]
    for panel, title in zip(laid_out, titles, strict=True):
        if title is not None:
            panel["title"] = {"text": title, "fontSize": _TITLE, "offset": 4}
    _name_once(laid_out, grid)
    for number, panel in enumerate(laid_out):
        _number_names(panel, number)
    lines = max((len(title) if isinstance(title, list) else 1 for title in titles if title), default=0)
    gap = _LINE * lines + 6 + _PANEL_GAP
    spacing = {
        "row": gap + (0 if shares_x else _LABELS + _AXIS_TITLE) + (_COLOURS if own_scales(drawn) else 0),
        "column": _APART + (0 if shares_y else _label_width(drawn, titled=not _one_title(axes[1]), gap=True)),
    }
    return {
        "$schema": schema,
        **({"title": title_above(notes, total - _EDGE)} if notes else {}),
        "concat": _with_key_in_hole(laid_out, grid, spacing),
        "columns": grid.columns,
        "bounds": "flush",
        "spacing": spacing,
        **({"resolve": {"scale": {"color": "independent"}}} if own_scales(drawn) else {}),
        "usermeta": {"width_mm": width_mm},
    }


def _number_names(view: Spec, number: int) -> None:
    """Give the views of a panel names that no other panel has: of two views with one name, Vega draws one twice."""
    if "name" in view:
        view["name"] = f"{view['name']}-{number}"
    for inner in view.get("layer", ()):
        _number_names(inner, number)


def _layouts(panels: Sequence[Spec], total: float, *, shares_x: bool, shares_y: bool) -> Iterator[_Grid]:
    """Yield ways to set out panels, the best to read first and the lowest last.

    Of those with as many rows, the one with the fewest columns has the widest panels.
    """
    label_room = _label_width(panels, titled=True)
    gap = _APART + (0 if shares_y else label_room)
    x = [channel_of(panel, "x") for panel in panels]
    values = max((len(names_along(channel)) for channel in x), default=0)
    dashed = any("strokeDash" in panel.get("encoding", {}) for panel in panels)
    for least in (_LEAST_DASHED, *_LEAST) if dashed else _LEAST:
        wide = max(least, _PER_VALUE * values)
        most_columns = max(1, int((total - label_room - _EDGE + gap) // (wide + gap)))
        columns = min(most_columns, len(panels))
        columns = -(-len(panels) // -(-len(panels) // columns))
        width = int((total - label_room - _EDGE - gap * (columns - 1)) / columns)
        rows = -(-len(panels) // columns)
        around = _LABELS + _AXIS_TITLE + _EDGE + key_lines(panels, total - 2 * _EDGE) * _LINE + 2 * _LINE
        room_above = (_LINE + 6 + _PANEL_GAP + (_COLOURS if own_scales(panels) else 0)) * rows + (
            0 if shares_x else (_LABELS + _AXIS_TITLE) * (rows - 1)
        )
        room = (MOST_MM * PIXELS_PER_MM - around - room_above) / rows
        heights = tuple(_height(panel, width, room) for panel in with_readable_cells(panels, width))
        tall = (
            around
            + room_above
            + sum(max(heights[first : first + columns]) for first in range(0, len(panels), columns))
        )
        yield _Grid(columns, width, heights, shares_x, shares_y, tall)


def _height(panel: Spec, width: float, room: float) -> int:
    """Return the height of a panel that has `room`."""
    rows = names_along(channel_of(panel, "y"))
    wanted = float(panel.get("height", 200))
    if rows:
        return round(max(lower_rows(panel) * len(rows), min(wanted, room)))
    return round(max(_LEAST_HEIGHT, min(wanted, room, _TALLEST * width)))


def _placed(panel: Spec, number: int, count: int, grid: _Grid) -> Spec:
    """Return one panel of a grid, with labels where no other panel has them for it."""
    placed = {**panel, "width": grid.width, "height": grid.heights[number]}
    placed = with_fitting_ticks(with_turned_labels(placed, grid.width), grid.width)
    rows = len(names_along(channel_of(placed, "y")))
    placed = with_lower_marks(placed, grid.heights[number] / rows) if rows else placed
    x, y = channel_of(placed, "x").get("axis", {}), channel_of(placed, "y").get("axis", {})
    if x.get("tickCount"):
        widest = max((text_width(text, 11) for text in _numbers(channel_of(placed, "x"))), default=_TICK)
        x["tickCount"] = max(2, min(x["tickCount"], int(grid.width // (widest + _APART_NUMBERS))))
        x["labelFlush"] = _APART
    if y.get("tickCount"):
        y["tickCount"] = max(3, min(y["tickCount"], grid.heights[number] // _UPRIGHT))
        y |= {"labelFlush": _FLUSH, "labelSeparation": _CLOSE}
    if grid.shares_x and number + grid.columns < count:
        x |= {"labels": False, "title": None}
    if grid.shares_y and number % grid.columns:
        y |= {"labels": False, "title": None, "minExtent": 0, "offset": 0}
    return placed


def _name_once(panels: Sequence[Spec], grid: _Grid) -> None:
    """Leave one title of each axis that all panels have: in the middle of the left side, and of the lower end."""
    x = [channel_of(panel, "x").get("axis", {}) for panel in panels]
    y = [channel_of(panel, "y").get("axis", {}) for panel in panels]
    x_titles = {str(axis.get("title")) for axis in x[-grid.columns :]}
    first_of_last = (len(panels) - 1) // grid.columns * grid.columns
    if grid.shares_x and grid.columns > 1:
        title = x[first_of_last].get("title")
        for axis in x:
            axis["title"] = None
        whole = grid.columns * grid.width + (grid.columns - 1) * _APART
        x[first_of_last] |= {"title": title, "titleX": whole / 2}
    elif not grid.shares_x and len({str(axis.get("title")) for axis in x}) == 1 == len(x_titles):
        for axis in x[: -grid.columns]:
            axis["title"] = None
    label_room = y[:: grid.columns]
    if len({str(axis.get("title")) for axis in label_room}) == 1 and label_room[0].get("title"):
        title = label_room[0]["title"]
        for axis in y:
            axis["title"] = None
        apart = _LINE + 6 + _PANEL_GAP + (0 if grid.shares_x else _LABELS + _AXIS_TITLE)
        tall = sum(grid.heights[:: grid.columns]) + apart * (len(label_room) - 1)
        label_room[0] |= {"title": title_in_lines(title, tall, 11), "titleY": tall / 2}


def _one_title(channels: Sequence[Spec]) -> bool:
    return len({str(channel.get("axis", {}).get("title")) for channel in channels}) == 1


def _share_axis(channels: Sequence[Spec]) -> bool:
    """Return whether all panels have the same axis: its values are given, or its ends, and its title is the same."""
    scales = [channel.get("scale") or {} for channel in channels]
    values = [channel.get("axis", {}).get("values") for channel in channels]
    known = all(scale.get("domain") for scale in scales) or all(values)
    return (
        known
        and _one_title(channels)
        and len({str(scale) for scale in scales}) == 1
        and len({str(value) for value in values}) == 1
    )


def _label_width(panels: Sequence[Spec], *, titled: bool, gap: bool = False) -> float:
    """Return the pixels that labels and title of the vertical axes need beside a panel, or in the `gap` of two."""
    widest = 0.0
    for panel in panels:
        channel = channel_of(panel, "y")
        axis = channel.get("axis", {})
        names = names_along(channel) or _numbers(channel)
        label = max((text_width(name, axis.get("labelFontSize", 11)) for name in names), default=30.0)
        label = max(label, axis.get("minExtent", 0) if gap else 0)
        widest = max(widest, label + 6 + (_AXIS_TITLE if titled and axis.get("title") else 0))
    return widest


def _numbers(channel: Spec) -> list[str]:
    """Return labels about as wide as those that an axis of numbers will have."""
    domain = (channel.get("scale") or {}).get("domain")
    if not domain or len(domain) != 2 or not domain[1] > domain[0]:
        return []
    if "labelExpr" in channel.get("axis", {}):
        return ["100 %"]
    decimals = max(0, -math.floor(math.log10((domain[1] - domain[0]) / 5)))
    return [f"{end:.{decimals}f}" for end in domain]


def _with_key_in_hole(panels: list[Spec], grid: _Grid, spacing: dict[str, float]) -> list[Spec]:
    """Return the panels with their key where the last row has room for another panel, if it fits there.

    Labels of the panel above reach into the room above that place, unless they are turned.
    """
    held = len(panels) % grid.columns
    wide, tall = key_size(panels)
    turned = any(channel_of(panel, "x").get("axis", {}).get("labelAngle") for panel in panels)
    if not held or not tall or turned or len(panels) < grid.columns:
        return panels
    holes = grid.columns - held
    step = grid.width + spacing["column"]
    if wide > holes * step - spacing["column"] or tall > grid.heights[-1] + _LABELS:
        return panels
    starts = range(0, len(panels) - held, grid.columns)
    top = sum(max(grid.heights[first : first + grid.columns]) + spacing["row"] for first in starts)
    return [with_key_at(panel, held * step, top) for panel in panels]


def _short_titles(titles: Sequence[Any], width: float) -> tuple[list[Any], str]:
    """Return the panels' titles in lines that fit, and what to say above all panels.

    Where a title is too long, the words that all begin with are said once, above.
    """
    texts = [title if isinstance(title, str) else "" for title in titles]
    if not all(texts) or len(texts) < 2:
        return [title_in_lines(title, width, _TITLE) for title in titles], ""
    if all(text_width(text, _TITLE, bold=True) <= width for text in texts):
        return list(texts), ""
    words = [text.split(" ") for text in texts]
    shared = 0
    while (
        all(len(own_words) > shared + 1 for own_words in words)
        and len({own_words[shared] for own_words in words}) == 1
    ):
        shared += 1
    short = [title_in_lines(" ".join(own_words[shared:]), width, _TITLE) for own_words in words]
    factor = lowered(" ".join(words[0][:shared]))
    return short, f"a panel for each {factor}" if factor else ""
