"""Figures at the widths of a paper: a column (85 mm) or the page (175 mm), at type sizes that can be read in print.

A pixel of a specification is 1/96 inch, so that labels of 11 pixels have 8 points. Single charts are laid out for their
width; those of several panels are set out in as many columns as fit, and then scaled to the width exactly.
"""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Spec = dict[str, Any]

PAGE_MM = 175.0
COLUMN_MM = 85.0
PIXELS_PER_MM = 96 / 25.4
_SIZE = re.compile(r'(<svg[^>]*?) width="([\d.]+)(?:mm)?" height="([\d.]+)(mm|)"')
_KEY = 90
"""Pixels that an entry of a key takes, about."""
_BESIDE = 62
"""Pixels beside the axes of a panel: labels, title."""


def fitted(spec: Spec, width_mm: float) -> Spec:
    """Return one chart laid out to be `width_mm` wide, axes and labels included."""
    return {
        **_for_paper(spec),
        "width": round(width_mm * PIXELS_PER_MM),
        "autosize": {"type": "fit-x", "contains": "padding"},
    }


def together(schema: str, panels: Sequence[Spec], width_mm: float, *, own_colours: bool = False) -> Spec:
    """Return several panels as one chart, in as many columns as fit into `width_mm`.

    With `own_colours` each panel has its own key; else one key above serves all.
    """
    total = width_mm * PIXELS_PER_MM
    widths = [int(panel.get("width", 240)) for panel in panels]
    columns = max(1, min(len(panels), 3, int((total + 24) // (min(150, max(widths)) + _BESIDE))))
    if len(panels) == 4:
        columns = min(columns, 2)
    inner = int((total - 24 * (columns - 1)) / columns - _BESIDE)
    laid_out = [
        _with_narrow_keys({**_for_paper(panel, inside=True), "width": inner}, inner) for panel in panels
    ]
    resolve = {"scale": {"color": "independent", "strokeDash": "independent"}} if own_colours else {}
    return {
        "$schema": schema,
        "concat": laid_out,
        "columns": columns,
        "spacing": {"row": 24, "column": 24},
        **({"resolve": resolve} if resolve else {}),
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


def _with_narrow_keys(panel: Spec, width: int) -> Spec:
    """Return a panel whose keys have no more columns than its width holds: a wider key would widen the figure."""
    for layer in panel.get("layer", ()):
        legend = layer.get("encoding", {}).get("color", {}).get("legend")
        if isinstance(legend, dict):
            legend["columns"] = max(1, width // _KEY)
    return panel


def _for_paper(spec: Spec, *, inside: bool = False) -> Spec:
    """Return the chart without what only answers a pointer; `inside` another one without the name of its language."""
    copy = deepcopy(spec)
    if inside:
        copy.pop("$schema", None)
    if "layer" in copy:
        copy["layer"] = [layer for layer in copy["layer"] if "params" not in layer]
    return copy
