"""The strokes, boxes and words of drawings in SVG, whose colours the page can set by theme.

This is the one place where drawings escape texts.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from plait.report.render.theme import FONT

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT = 11.5
LETTER = 0.58
"""Mean width of a letter as a share of its height; widths are estimated, boxes have room."""
LONGEST_NAME = 16


def shortened(name: str) -> str:
    """Return a name as boxes have it."""
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "\N{HORIZONTAL ELLIPSIS}"


def node_width(name: str, role: str) -> float:
    """Return the width of a node's box in pixels."""
    return max(50.0 if role == "host" else 40.0, len(name) * 13 * LETTER + 22)


def stroke(data: str, colour: str, width: float) -> str:
    """Return a line without a surface."""
    return f'<path d="{data}" fill="none" stroke="{colour}" stroke-width="{width:g}" stroke-linecap="round"/>'


def node(x: float, y: float, name: str, role: str, colours: Mapping[str, str], *, tooltip: str = "") -> str:
    """Return one node: hosts as strong boxes, switches as light ones, routers as rounded ones.

    `tooltip` replaces role and name.
    """
    host = role == "host"
    width = node_width(name, role)
    height, radius = (34, 6) if host else (26, 13 if role == "router" else 4)
    stroke = colours["ink"] if host else colours["muted"]
    box = (
        f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height}" rx="{radius}" '
        f'fill="{colours["raised"]}" stroke="{stroke}" stroke-width="{1.5 if host else 1}"/>'
    )
    label = (
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle" font-size="13" '
        f'font-weight="{600 if host else 400}" fill="{colours["ink"]}">{escape(name)}</text>'
    )
    return f"<g><title>{escape(tooltip or f'{role} {name}')}</title>{box}{label}</g>"


def halo(x: float, y: float, text: str, colours: Mapping[str, str]) -> str:
    """Return a centred label that stays readable over lines."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{colours["ink"]}" stroke="{colours["surface"]}" '
        f'stroke-width="4" stroke-linejoin="round" paint-order="stroke">{escape(text)}</text>'
    )


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
