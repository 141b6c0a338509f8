"""Boxes and curves of a drawing in pixels, and the search for free places: labels cover no node, link or label."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

Point = tuple[float, float]
SAMPLES = 40
"""Points of a curve that are compared with boxes."""
NEARER = 5.0
"""Pixels by which a label is nearer to its own link than to any other."""
BESIDE = 5.0
"""Pixels between links and nodes that they pass."""
GAPS = (4.0, 10.0, 18.0, 28.0)
"""Distances of labels from their links that are tried."""


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    @staticmethod
    def around(x: float, y: float, width: float, height: float) -> Box:
        """Return the box with this centre."""
        return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)

    @property
    def centre(self) -> Point:
        """The point in its middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def meets(self, neighbour: Box, apart: float = 0.0) -> bool:
        """Return whether two boxes are nearer to each other than `apart`."""
        return (
            self.left < neighbour.right + apart
            and neighbour.left < self.right + apart
            and self.top < neighbour.bottom + apart
            and neighbour.top < self.bottom + apart
        )

    def holds(self, point: Point, apart: float = 0.0) -> bool:
        """Return whether a point is inside, or nearer to the box than `apart`."""
        x, y = point
        return self.left - apart < x < self.right + apart and self.top - apart < y < self.bottom + apart


@dataclass(frozen=True)
class Curve:
    """A cubic Bézier curve, its points at equal steps, and half of the width that is drawn along it."""

    ends: tuple[Point, Point, Point, Point]
    half: float = 1.0

    @cached_property
    def points(self) -> list[Point]:
        """`SAMPLES` points along the curve, both ends included."""
        return [self.point_at(step / (SAMPLES - 1)) for step in range(SAMPLES)]

    def point_at(self, share: float) -> Point:
        """Return the point after a share of the curve's parameter."""
        rest = 1 - share
        weights = (rest**3, 3 * rest * rest * share, 3 * rest * share * share, share**3)
        x, y = (sum(w * end[axis] for w, end in zip(weights, self.ends, strict=True)) for axis in (0, 1))
        return x, y

    @cached_property
    def bounds(self) -> Box:
        """A box that holds the curve: it stays within its handles."""
        across, down = zip(*self.ends, strict=True)
        return Box(min(across), min(down), max(across), max(down))

    @property
    def data(self) -> str:
        """The path data of SVG."""
        (x, y), *handles = self.ends
        return f"M{x:.1f} {y:.1f}C" + " ".join(f"{a:.1f} {b:.1f}" for a, b in handles)

    def beside(self, shift: float) -> str:
        """Return the path data of a line that runs `shift` beside the curve."""
        if not shift:
            return self.data
        points = self.points
        moved = []
        for number, (x, y) in enumerate(points):
            (x1, y1), (x2, y2) = points[max(number - 1, 0)], points[min(number + 1, SAMPLES - 1)]
            length = math.hypot(x2 - x1, y2 - y1) or 1.0
            sign = 1 if x2 >= x1 else -1
            moved.append((x - sign * shift * (y2 - y1) / length, y + sign * shift * (x2 - x1) / length))
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in moved)


def _near(box: Box, curve: Curve, apart: float) -> bool:
    """Return whether a curve as it is drawn comes nearer to a box than `apart`."""
    reach = curve.half + apart
    return box.meets(curve.bounds, reach) and any(box.holds(point, reach) for point in curve.points)


@dataclass
class Room:
    """The boxes and curves that are drawn already, and the bounds of the drawing."""

    width: float
    height: float
    boxes: list[Box] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)

    def is_free(self, box: Box, *, apart: float = 3.0, own_curve: Curve | None = None) -> bool:
        """Return whether a box is inside of the drawing and covers nothing but, possibly, `own_curve`."""
        if box.left < 2 or box.top < 2 or box.right > self.width - 2 or box.bottom > self.height - 2:
            return False
        if any(box.meets(neighbour, min(apart, 3.0)) for neighbour in self.boxes):
            return False
        return not any(_near(box, curve, apart) for curve in self.curves if curve is not own_curve)

    def beside(
        self, curve: Curve, size: tuple[float, float], *, prefers_top: bool, shares: Sequence[float]
    ) -> Box | None:
        """Return a free box of this size beside a curve, as near as possible; first on the side that is asked for."""
        width, height = size
        sides = (-1, 1) if prefers_top else (1, -1)
        for gap in GAPS:
            away = curve.half + gap
            moves = [(0.0, side * (away + height / 2)) for side in sides]
            moves_across = [(side * (away + width / 2), 0.0) for side in sides]
            tried = [(share, move) for share in shares for move in moves]
            for share, (right, down) in (*tried, *((s, move) for s in shares for move in moves_across)):
                x, y = curve.point_at(share)
                box = Box.around(x + right, y + down, width, height)
                # Nearer to another link, it would seem to belong to that one.
                if not _near(box, curve, 2.0) and self.is_free(box, apart=gap + NEARER, own_curve=curve):
                    return box
        return None

    def on(self, curve: Curve, size: float, shares: Iterable[float]) -> Box | None:
        """Return a free square on a curve."""
        for apart in (3.0, 0.5):
            for share in shares:
                box = Box.around(*curve.point_at(share), size, size)
                if self.is_free(box, apart=apart, own_curve=curve):
                    return box
        return None


def crosses(curve: Curve, boxes: Iterable[Box]) -> bool:
    """Return whether a curve runs over one of the boxes."""
    points = [*curve.points, *(((a + c) / 2, (b + d) / 2) for (a, b), (c, d) in pairwise(curve.points))]
    return any(box.holds(point, curve.half + BESIDE) for box in boxes for point in points)
