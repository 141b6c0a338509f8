"""The boxes of texts and nodes in a drawing, and the points along its lines, for tests of what covers what."""

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
BOX = re.compile(r'<rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)" rx="[^>]*>')
NAME = re.compile(r'font-size="13"[^>]*>([^<]*)<')
LINE = re.compile(r'<path d="([^"]*)" fill="none" stroke="[^"]*" stroke-width="([\d.]+)"')
BADGE = re.compile(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"')
NUMBER = re.compile(r"-?[\d.]+")
Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


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
    size = float(_SIZE.match(style.get("font-size", "11"))[1])
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


@dataclass(frozen=True)
class Way:
    """A drawn line: points along it, and half its width."""

    points: list[tuple[float, float]]
    half: float


def node_boxes(svg: str) -> list[tuple[str, Rectangle]]:
    """Return what is written in each box of a node, and the box."""
    sides = [
        (float(x), float(y), float(x) + float(w), float(y) + float(h)) for x, y, w, h in BOX.findall(svg)
    ]
    return list(zip(NAME.findall(svg), sides, strict=True))


def ways(svg: str) -> list[Way]:
    """Return all drawn lines."""
    return [Way(_points(data), float(width) / 2) for data, width in LINE.findall(svg)]


def covered(svg: str) -> list[str]:
    """Return what covers something that it does not belong to."""
    nodes, lines, words = node_boxes(svg), ways(svg), text_boxes(svg)
    badges = [
        (float(x) - float(r), float(y) - float(r), float(x) + float(r), float(y) + float(r))
        for x, y, r in BADGE.findall(svg)
    ]
    faults = [f"'{a}' covers '{b}'" for a, b in overlaps(words)]
    for name, box in nodes:
        faults += [f"box {name} covers box {other}" for other, b in nodes if other > name and _meet(box, b)]
        faults += [f"a badge covers box {name}" for badge in badges if _meet(box, badge)]
        faults += [f"a link covers box {name}" for way in lines if _runs_over(way, box)]
    labels = [
        ((word.left, word.top, word.right, word.bottom), word.text)
        for word in words
        if word.text not in {name for name, _ in nodes}
    ]
    for label, text in labels:
        faults += [f"'{text}' covers box {name}" for name, box in nodes if _meet(label, box)]
        in_badge = any(_inside(label, badge) for badge in badges)
        if not in_badge:
            faults += [f"a badge covers '{text}'" for badge in badges if _meet(label, badge)]
            faults += [f"a link covers '{text}'" for way in lines if _touches(way, label)]
    return faults


def _points(data: str) -> list[tuple[float, float]]:
    numbers = [float(number) for number in NUMBER.findall(data)]
    pairs = list(zip(numbers[::2], numbers[1::2], strict=False))
    if "h" in data:
        return [pairs[0], (pairs[0][0] + numbers[2], pairs[0][1])]
    if "C" not in data:
        return pairs
    (a, b, c, d), points = pairs[:4], []
    for step in range(101):
        t = step / 100
        weights = ((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t**3)
        x, y = (sum(w * p[axis] for w, p in zip(weights, (a, b, c, d), strict=True)) for axis in (0, 1))
        points.append((x, y))
    return points


def _holds(box: Rectangle, point: tuple[float, float], slack: float = 0.0) -> bool:
    return box[0] - slack < point[0] < box[2] + slack and box[1] - slack < point[1] < box[3] + slack


def _runs_over(way: Way, box: Rectangle) -> bool:
    """Return whether a line runs over a box at which it neither begins nor ends."""
    if _holds(box, way.points[0], 1.0) or _holds(box, way.points[-1], 1.0):
        return False
    return any(_holds(box, point, way.half - 0.5) for point in way.points)


def _touches(way: Way, box: Rectangle) -> bool:
    return any(_holds(box, point, way.half - 0.5) for point in way.points)


def _inside(inner: Rectangle, outer: Rectangle) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and inner[2] <= outer[2] and inner[3] <= outer[3]


def _meet(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[2] - 0.5 and b[0] < a[2] - 0.5 and a[1] < b[3] - 0.5 and b[1] < a[3] - 0.5
