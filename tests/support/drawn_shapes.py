"""The shapes of a drawing of the network: boxes of nodes, and points along links, for tests of what covers what."""

from __future__ import annotations

import re
from dataclasses import dataclass

from svg_boxes import overlaps, text_boxes

BOX = re.compile(r'<rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)" rx="[^>]*>')
NAME = re.compile(r'font-size="13"[^>]*>([^<]*)<')
LINE = re.compile(r'<path d="([^"]*)" fill="none" stroke="[^"]*" stroke-width="([\d.]+)"')
BADGE = re.compile(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="([\d.]+)"')
NUMBER = re.compile(r"-?[\d.]+")
Rectangle = tuple[float, float, float, float]
"""Left, top, right, bottom."""


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
