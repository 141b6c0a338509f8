"""Colours and type of figures and page: one light and one dark theme, distinguishable for readers of all colour vision.

Specifications name colours as tokens ("@ink", "@path0"); `paint` puts in those of a theme, and so does the
page's own script when the reader's system changes between light and dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PATHS = 8
"""Colours for paths; the ninth path has the first colour again."""

# Paths: Okabe and Ito, "Color Universal Design" (2008); yellow is darkened on white, and all are lighter on dark.
LIGHT: dict[str, str] = {
    "surface": "#ffffff",
    "raised": "#f6f7f9",
    "ink": "#1c2024",
    "muted": "#656d76",
    "faint": "#a3a9b1",
    "grid": "#e6e8eb",
    "case0": "#7d8590",
    "case1": "#4a4fb8",
    "case2": "#0f7b6c",
    "case3": "#b3470f",
    "case4": "#a8327d",
    "case5": "#3d6d0b",
    "case6": "#8a5a00",
    "case7": "#1f6f9e",
    "path0": "#0072b2",
    "path1": "#e69f00",
    "path2": "#009e73",
    "path3": "#d55e00",
    "path4": "#cc79a7",
    "path5": "#56b4e9",
    "path6": "#a89500",
    "path7": "#5c636b",
    "less": "#b35806",
    "even": "#f3f4f6",
    "more": "#2c5aa0",
    "faintest": "#eaf0f9",
}
DARK: dict[str, str] = {
    "surface": "#111418",
    "raised": "#191d23",
    "ink": "#e6e9ed",
    "muted": "#98a1ab",
    "faint": "#626b75",
    "grid": "#272c33",
    "case0": "#8f98a3",
    "case1": "#9ba0ff",
    "case2": "#4cc9b0",
    "case3": "#f2935c",
    "case4": "#e58ac6",
    "case5": "#a3cc6b",
    "case6": "#d9a648",
    "case7": "#74bde6",
    "path0": "#4ba6e3",
    "path1": "#f0b032",
    "path2": "#2fbf97",
    "path3": "#f07c3a",
    "path4": "#de95be",
    "path5": "#8fd0f8",
    "path6": "#efe04a",
    "path7": "#b4bcc6",
    "less": "#c8690f",
    "even": "#cfd4da",
    "more": "#3a6fc0",
    "faintest": "#dbe6f5",
}
CASES = 8
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [10, 4], [4, 2, 1, 2], [1, 4], [12, 2, 2, 2, 2, 2])
_SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "M-1,-.5L-.5,-1L0,-.5L.5,-1L1,-.5L.5,0L1,.5L.5,1L0,.5L-.5,1L-1,.5L-.5,0Z",
    "M0,-1L.25,-.3L1,-.3L.4,.15L.6,.85L0,.4L-.6,.85L-.4,.15L-1,-.3L-.25,-.3Z",
)
"""The last ones are an oblique cross and a star."""

# The fonts of figures are measured when they are made: Liberation Sans comes with the renderer, so that figures
# are laid out alike everywhere, and Arial and Helvetica have its widths.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
PAGE_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Liberation Sans, Arial, sans-serif"


def path_token(number: int) -> str:
    """Return the token of the colour of path `number`."""
    return f"@path{number % PATHS}"


def case_token(number: int) -> str:
    """Return the token of the colour of the cases with choice `number` of what is compared; 0 is the baseline."""
    return f"@case{number if number < CASES else 1 + (number - 1) % (CASES - 1)}"


def dashes(count: int) -> list[list[int]]:
    """Return the dashes of lines in the order of their colours: lines differ in black and white, too.

    There are eight dashes, and after the eighth colour seven repeat: 56 lines have different pairs of these.
    """
    return [list(_DASHES[number % len(_DASHES)]) for number in range(count)]


def shapes(count: int) -> list[str]:
    """Return the shapes of points in the order of their colours, which differ as `dashes` do."""
    return [_SHAPES[number % len(_SHAPES)] for number in range(count)]


def paint(node: Any, theme: dict[str, str]) -> Any:
    """Return a copy of a JSON value with every colour token replaced by the theme's colour."""
    if isinstance(node, str) and node.startswith("@"):
        return theme.get(node[1:], node)
    if isinstance(node, dict):
        return {key: paint(value, theme) for key, value in node.items()}
    if isinstance(node, list):
        return [paint(value, theme) for value in node]
    return node


def luminance(channels: Sequence[float]) -> float:
    """Return the relative luminance of red, green and blue from 0 to 255 (WCAG 2.2, from 0 to 1)."""
    linear = [
        c / 12.92 if (c := channel / 255) <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for channel in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def config(font: str = FONT) -> dict[str, Any]:
    """Return the look of all charts, with colours as tokens."""
    return {
        "font": font,
        "background": "@surface",
        "locale": {"number": {"decimal": ".", "thousands": "", "grouping": [3], "currency": ["", ""]}},
        "padding": 6,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "group",
            "fontSize": 12.5,
            "fontWeight": 600,
            "color": "@ink",
            "subtitleColor": "@muted",
            "subtitleFontSize": 11.5,
            "offset": 10,
        },
        "axis": {
            "domain": False,
            "ticks": False,
            "grid": True,
            "gridColor": "@grid",
            "gridWidth": 1,
            "labelColor": "@muted",
            "labelFontSize": 11,
            "labelPadding": 6,
            "labelFlush": False,
            "titleColor": "@muted",
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titlePadding": 6,
        },
        "axisQuantitative": {"labelSeparation": 5},
        "axisX": {
            "grid": False,
            "domain": True,
            "domainColor": "@faint",
            "ticks": True,
            "tickColor": "@faint",
        },
        "legend": {
            "labelColor": "@ink",
            "labelFontSize": 11,
            "title": None,
            "orient": "top",
            "symbolType": "stroke",
            "symbolSize": 400,
            "symbolStrokeWidth": 3,
            "columnPadding": 14,
            "offset": 8,
            "titleFontSize": 11,
            "titleColor": "@ink",
        },
        "header": {"labelColor": "@ink", "labelFontSize": 12, "labelFontWeight": 600, "title": None},
        "line": {"strokeWidth": 1.6, "strokeCap": "round", "strokeJoin": "round"},
        "text": {"color": "@ink", "fontSize": 11.5},
    }
