"""The strokes, boxes and words of drawings in SVG, whose colours the page can set by theme.

This is the one place where drawings escape texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from plait.report.render.text_width import folded, text_width
from plait.report.render.theme import FONT

TEXT = 11.5
LINE = 14.5
"""Height of a line of text."""
NAME = 13.0
"""Size of the names of nodes."""
LONGEST_NAME = 16


def shortened(name: str) -> str:
    """Return a name as boxes have it."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"


def node_size(name: str, role: str) -> tuple[float, float]:
    """Return width and least height of a node's box in pixels."""
    is_host = role == "host"
    width = text_width(name, NAME, bold=is_host) + 22
    return max(50.0 if is_host else 40.0, width), 34.0 if is_host else 26.0


def stroke(data: str, colour: str, width: float) -> str:
    """Return a line without a surface."""
    return f'<path d="{data}" fill="none" stroke="{colour}" stroke-width="{width:g}" stroke-linecap="round"/>'


def node(
    place: tuple[float, float],
    name: str,
    role: str,
    colours: Mapping[str, str],
    *,
    tooltip: str = "",
    height: float = 0.0,
) -> str:
    """Return one node: hosts as strong boxes, switches as light ones, routers as rounded ones.

    `tooltip` replaces role and name; the box is at least `height` high.
    """
    x, y = place
    host = role == "host"
    width, least = node_size(name, role)
    height = max(height, least)
    radius = 6.0 if host else 13.0 if role == "router" else 4.0
    stroke = colours["ink"] if host else colours["muted"]
    box = (
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:g}" '
        f'rx="{radius:g}" '
        f'fill="{colours["raised"]}" stroke="{stroke}" stroke-width="{1.5 if host else 1}"/>'
    )
    label = (
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle" font-size="{NAME:g}" '
        f'font-weight="{600 if host else 400}" fill="{colours["ink"]}">{escape(name)}</text>'
    )
    return f"<g><title>{escape(tooltip or f'{role} {name}')}</title>{box}{label}</g>"


def block(x: float, top: float, lines: Sequence[str], colours: Mapping[str, str]) -> str:
    """Return centred lines of a label below `top`."""
    return "".join(
        text(x, top + LINE * number + 0.78 * LINE, line, colours["ink"], "middle")
        for number, line in enumerate(lines)
    )


def badge(x: float, y: float, number: int, colours: Mapping[str, str]) -> str:
    """Return the number of a link whose label is below the drawing."""
    circle = (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8.5" fill="{colours["surface"]}" stroke="{colours["muted"]}" '
        f'stroke-width="1"/>'
    )
    return f'{circle}<g font-size="10">{text(x, y + 3.6, str(number), colours["ink"], "middle")}</g>'


def lines_of_text(
    rows: Sequence[str], left: float, top: float, right: float, colours: Mapping[str, str]
) -> tuple[str, float]:
    """Return rows of words below `top`, folded at `right`, and where they end."""
    parts = []
    y = top
    for row in rows:
        for number, line in enumerate(folded(row, right - left - 14, TEXT)):
            y += LINE
            parts.append(text(left + (14 if number else 0), y, line, colours["muted"], "start"))
        y += 4
    return "".join(parts), y + (8 if rows else 0)


def text(x: float, y: float, words: str, colour: str, anchor: str) -> str:
    """Return a line of words."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def drawing(content: str, width: float, height: float, colours: Mapping[str, str]) -> str:
    """Return a whole drawing of the network around its content."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="The network" font-family="{FONT}" font-size="{TEXT}">'
        f'<rect width="100%" height="100%" fill="{colours["surface"]}"/>{content}</svg>'
    )
