"""The boxes of all texts in a drawing, for tests of what covers what: from their places, sizes and words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from plait.report.render.text_width import text_width

if TYPE_CHECKING:
    from collections.abc import Iterator

_CALL = re.compile(r"(translate|rotate|scale|matrix)\(([^)]*)\)")
_SIZE = re.compile(r"([\d.]+)")
Matrix = tuple[float, float, float, float, float, float]
UNIT: Matrix = (1, 0, 0, 1, 0, 0)


@dataclass(frozen=True)
class TextBox:
    """One text, and the rectangle that its words take in the drawing's own units."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    fill: str
    corners: tuple[tuple[float, float], ...]
    """Of the words, which may be turned: top left, bottom left, top right, bottom right."""

    def overlaps(self, other: TextBox, slack: float = 1.0) -> bool:
        """Return whether two texts share more than `slack` along each of their sides (separating axes)."""
        sides = [
            (end[0] - start[0], end[1] - start[1])
            for box in (self, other)
            for start, end in ((box.corners[0], box.corners[1]), (box.corners[0], box.corners[2]))
        ]
        return all(_shared(self, other, side) > slack for side in sides)


def size_of(svg: str) -> tuple[float, float]:
    """Return width and height of a drawing in its own units (its viewBox)."""
    _, _, width, height = (float(part) for part in ET.fromstring(svg).get("viewBox", "").split())  # noqa: S314 - our own
    return width, height


def text_boxes(svg: str) -> list[TextBox]:
    """Return the boxes of all visible texts."""
    return list(_walk(ET.fromstring(svg), UNIT, {}))  # noqa: S314 - our own


def overlaps(boxes: list[TextBox]) -> list[tuple[str, str]]:
    """Return the words of each two texts that cover each other."""
    return [(a.text, b.text) for i, a in enumerate(boxes) for b in boxes[i + 1 :] if a.overlaps(b)]


def clipped(svg: str) -> list[str]:
    """Return the words of texts that leave the drawing, or are shortened."""
    width, height = size_of(svg)
    return [
        box.text
        for box in text_boxes(svg)
        if box.left < -0.5 or box.top < -0.5 or box.right > width + 0.5 or box.bottom > height + 0.5
    ]


def _walk(node: ET.Element, matrix: Matrix, inherited: dict[str, str]) -> Iterator[TextBox]:
    style = {**inherited, **{k: v for k, v in node.attrib.items() if k not in {"transform", "opacity"}}}
    matrix = _times(matrix, _matrix(node.get("transform", "")))
    if node.tag.endswith(("}text", "}tspan")) and float(node.get("opacity", "1")) > 0:
        if words := (node.text or "").strip():
            yield _box(words, matrix, style)
        style["dy"] = "0"
        for number, line in enumerate(node):
            step = number * float(line.get("dy", "0") or 0)
            yield from _walk(line, _times(matrix, (1, 0, 0, 1, 0, step)), style)
        return
    for child in node:
        if not child.tag.endswith(("}defs", "}title")):
            yield from _walk(child, matrix, style)


def _box(words: str, matrix: Matrix, style: dict[str, str]) -> TextBox:
    size = float(_SIZE.match(style.get("font-size", "11"))[1])  # type: ignore[index]
    bold = style.get("font-weight", "400") in {"600", "700", "bold"}
    width = text_width(words, size, bold=bold)
    x, y = float(style.get("x", "0")), float(style.get("y", "0"))
    x -= {"middle": width / 2, "end": width}.get(style.get("text-anchor", "start"), 0.0)
    # Capitals and digits are 0.72 of the size high, descenders 0.2.
    corners = [_moved(matrix, x + dx, y + dy) for dx in (0, width) for dy in (-0.72 * size, 0.2 * size)]
    across, down = zip(*corners, strict=True)
    fill = style.get("fill", "#000000")
    return TextBox(words, min(across), min(down), max(across), max(down), fill, tuple(corners))


def _shared(first: TextBox, second: TextBox, along: tuple[float, float]) -> float:
    """Return the length that two boxes share in a direction."""
    length = math.hypot(*along) or 1.0
    spans = [[(x * along[0] + y * along[1]) / length for x, y in box.corners] for box in (first, second)]
    return min(map(max, spans)) - max(map(min, spans))


def _moved(m: Matrix, x: float, y: float) -> tuple[float, float]:
    return m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5]


def _times(m: Matrix, n: Matrix) -> Matrix:
    e, f = _moved(m, n[4], n[5])
    return (
        m[0] * n[0] + m[2] * n[1],
        m[1] * n[0] + m[3] * n[1],
        m[0] * n[2] + m[2] * n[3],
        m[1] * n[2] + m[3] * n[3],
        e,
        f,
    )


def _matrix(transform: str) -> Matrix:
    matrix = UNIT
    for kind, arguments in _CALL.findall(transform):
        values = [float(part) for part in re.split(r"[ ,]+", arguments.strip())]
        if kind == "translate":
            step: Matrix = (1, 0, 0, 1, values[0], values[1] if len(values) > 1 else 0)
        elif kind == "rotate":
            angle = math.radians(values[0])
            step = (math.cos(angle), math.sin(angle), -math.sin(angle), math.cos(angle), 0, 0)
        elif kind == "scale":
            step = (values[0], 0, 0, values[-1], 0, 0)
        else:
            step = (values[0], values[1], values[2], values[3], values[4], values[5])
        matrix = _times(matrix, step)
    return matrix
