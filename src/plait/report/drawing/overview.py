"""The drawing of a network of many nodes: columns from the hosts inwards, or from clients to servers.

What is alike is drawn once: hosts that have the same neighbours over the same links are one box, links between the
same boxes are one line. Words describe networks that are larger still.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from plait.report.drawing.layout import across, distances, distinct_paths, sides
from plait.report.drawing.link_labels import link_label
from plait.report.drawing.svg import LETTER, TEXT, drawing, halo, node, node_width, shortened, stroke, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.plan.model.plan import Link, Plan

FEW_NODES = 16
FEW_PATHS = 24
"""Of more nodes or paths an overview is drawn."""
MOST_ROWS = 40
"""Most boxes in a column; words describe more."""
FEW_LABELS = 8
"""Most lines that are labelled one by one where they differ."""
ROW = 46.0
FEW_ROWS = 4
AIRY_ROW = 66.0
"""The height of a row, where there are few."""
GAP = 110.0
"""Least width between two columns of boxes."""
MARGIN = 16.0
ROUNDS = 4
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True)
class _Box:
    """A node, or hosts that are alike."""

    names: tuple[str, ...]
    role: str

    column: int = -1
    """Of a place that a line passes; such a box is not drawn."""

    @property
    def label(self) -> str:
        """Return the first and the last name, and how many there are."""
        if len(self.names) == 1:
            return shortened(self.names[0])
        return f"{shortened(self.names[0])} {ELLIPSIS} {shortened(self.names[-1])} ({len(self.names)})"

    @property
    def width(self) -> float:
        return node_width(self.label, self.role) if self.column < 0 else 0.0


@dataclass(frozen=True)
class _Line:
    """The links between two boxes."""

    a: _Box
    b: _Box
    links: tuple[Link, ...]
    ways: tuple[_Box, ...] = ()
    """Where it passes the columns between its boxes, from a to b."""

    @property
    def label(self) -> str:
        """Return what they do, where all do the same."""
        labels = {link_label(link) for link in self.links}
        return labels.pop() if len(labels) == 1 else "several kinds"

    @property
    def parallel(self) -> int:
        """Return how many there are for each pair of nodes."""
        return len(self.links) // (len(self.a.names) * len(self.b.names))


def is_crowded(plan: Plan) -> bool:
    """Return whether a plan has more nodes, or paths, than a drawing of each of them can show."""
    nodes = sum(space.role != "wire" for space in plan.network.namespaces)
    return nodes > FEW_NODES or len(distinct_paths(plan)) > FEW_PATHS


def draw(plan: Plan, colours: Mapping[str, str]) -> str:
    """Return the drawing as SVG; `colours` as for the drawing of a small network."""
    boxes = _boxes(plan)
    columns, lines = _columns(plan, boxes, _lines(plan, boxes))
    most = max(map(len, columns))
    if most > MOST_ROWS:
        return _in_words(plan, lines, colours)
    labels = {line.label for line in lines}
    once = next(iter(labels)) if len(labels) == 1 else None
    labelled = once is None and len(lines) <= FEW_LABELS
    longest = max((len(_words(line, labelled=labelled)) for line in lines), default=0)
    height = most * (ROW if most > FEW_ROWS else AIRY_ROW) + 2 * MARGIN
    places, width = _places(columns, height, max(GAP, longest * TEXT * LETTER + 50))
    parts = [_stroke(line, places, colours["grid"]) for line in lines]
    parts += [_label(line, places, colours, _words(line, labelled=labelled)) for line in lines]
    parts += [
        node(*place, box.label, box.role, colours, tooltip=f"{box.role}: {', '.join(box.names[:40])}")
        for box, place in places.items()
        if box.column < 0
    ]
    notes = [f"every link: {once}"] if once else ([] if labelled or once == "" else _kinds(lines))
    parallel = {line.parallel for line in lines if line.parallel > 1}
    if len(parallel) == 1:
        notes.append(f"each thick line: {parallel.pop()} links side by side")
    parts += [
        text(MARGIN, height + 4 + 18 * row, note, colours["muted"], "start") for row, note in enumerate(notes)
    ]
    return drawing("".join(parts), max(width, *map(_width, notes), 0.0), height + 18 * len(notes), colours)


def _boxes(plan: Plan) -> list[_Box]:
    """Return hosts that are alike as one, and every other node on its own; in the order of the plan."""
    role = {space.name: space.role for space in plan.network.namespaces if space.role != "wire"}
    left, right = sides(plan, list(role))
    near: dict[str, list[tuple[str, str]]] = {name: [] for name in role}
    for link in plan.links:
        a, b = link.directions[0].source, link.directions[0].target
        near[a].append((b, link_label(link)))
        near[b].append((a, link_label(link)))
    both = not _has_sides(plan)
    alike: dict[object, list[str]] = {}
    for name, kind in role.items():
        side = both or (name in left, name in right)
        key = (side, tuple(sorted(near[name]))) if kind == "host" else name
        alike.setdefault(key, []).append(name)
    return [_Box(tuple(names), role[names[0]]) for names in alike.values()]


def _lines(plan: Plan, boxes: Sequence[_Box]) -> list[_Line]:
    of = {name: box for box in boxes for name in box.names}
    between: dict[frozenset[_Box], list[Link]] = {}
    for link in plan.links:
        ends = link.directions[0]
        between.setdefault(frozenset((of[ends.source], of[ends.target])), []).append(link)
    return [
        _Line(of[links[0].directions[0].source], of[links[0].directions[0].target], tuple(links))
        for links in between.values()
    ]


def _has_sides(plan: Plan) -> bool:
    """Return whether no host is a client in one flow and a server in another."""
    clients = {flow.client.netns for flow in plan.flows}
    return clients.isdisjoint(flow.server.netns for flow in plan.flows) and bool(clients)


def _columns(
    plan: Plan, boxes: Sequence[_Box], lines: Sequence[_Line]
) -> tuple[list[list[_Box]], list[_Line]]:
    """Return the boxes from left to right, in each column in an order with few crossings, and the lines among them."""
    near: dict[str, list[str]] = {box.names[0]: [] for box in boxes}
    for line in lines:
        near[line.a.names[0]].append(line.b.names[0])
        near[line.b.names[0]].append(line.a.names[0])
    names = list(near)
    if _has_sides(plan):
        left, right = sides(plan, names)
        ends = [[name for name in names if name in side] for side in (left, right)]
        place: Mapping[str, float] = across(names, distances(near, ends[0]), distances(near, ends[1]))
    else:
        far = distances(near, [box.names[0] for box in boxes if box.role == "host"])
        place = {name: far.get(name, 0) for name in names}
    columns = [[box for box in boxes if place[box.names[0]] == at] for at in sorted(set(place.values()))]
    led = _led(columns, lines)
    return _ordered(columns, led), led


def _led(columns: list[list[_Box]], lines: Sequence[_Line]) -> list[_Line]:
    """Give lines that pass a column a place of their own in it, so that they run beside its boxes."""
    at = {box: number for number, column in enumerate(columns) for box in column}
    led = []
    for line in lines:
        first, last = at[line.a], at[line.b]
        between = range(first + 1, last) if first < last else range(first - 1, last, -1)
        ways = tuple(_Box((f"{line.a.names[0]}-{line.b.names[0]}",), "way", number) for number in between)
        for way in ways:
            columns[way.column].append(way)
        led.append(_Line(line.a, line.b, line.links, ways))
    return led


def _ordered(columns: list[list[_Box]], lines: Sequence[_Line]) -> list[list[_Box]]:
    """Sort each column by the places of its neighbours, there and back (the barycentre method of Sugiyama)."""
    near: dict[_Box, list[_Box]] = {box: [] for column in columns for box in column}
    for line in lines:
        for box_a, box_b in pairwise((line.a, *line.ways, line.b)):
            near[box_a].append(box_b)
            near[box_b].append(box_a)
    height = {box: (row + 0.5) / len(column) for column in columns for row, box in enumerate(column)}

    def middle(box: _Box) -> float:
        around = [height[other] for other in near[box]]
        return sum(around) / len(around) if around else height[box]

    for round_ in range(ROUNDS):
        for column in columns[:: 1 if round_ % 2 == 0 else -1]:
            column.sort(key=middle)
            height |= {box: (row + 0.5) / len(column) for row, box in enumerate(column)}
    return columns


def _places(
    columns: Sequence[Sequence[_Box]], height: float, gap: float
) -> tuple[dict[_Box, tuple[float, float]], float]:
    """Return the centre of every box, and the width of all."""
    widths = [max(box.width for box in column) for column in columns]
    places: dict[_Box, tuple[float, float]] = {}
    x = MARGIN + widths[0] / 2
    for number, column in enumerate(columns):
        step = (height - 2 * MARGIN) / len(column)
        places |= {box: (x, MARGIN + (row + 0.5) * step) for row, box in enumerate(column)}
        if number + 1 < len(columns):
            x += widths[number] / 2 + gap + widths[number + 1] / 2
    return places, x + widths[-1] / 2 + MARGIN


def _stroke(line: _Line, places: Mapping[_Box, tuple[float, float]], colour: str) -> str:
    """Return a line, thick where links run side by side."""
    points = [places[box] for box in (line.a, *line.ways, line.b)]
    data = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x1, y1), (x2, y2) in pairwise(points):
        if abs(x1 - x2) < 1:  # within a column: bow out to the right
            data += f"Q{x1 + GAP:.1f} {(y1 + y2) / 2:.1f} {x2:.1f} {y2:.1f}"
        else:
            middle = (x1 + x2) / 2
            data += f"C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return stroke(data, colour, 2 if line.parallel == 1 else 5)


def _words(line: _Line, *, labelled: bool) -> str:
    """Return the label of a line: what its links do, and how many run side by side."""
    if not labelled:
        return ""
    count = f"{line.parallel} {TIMES} " if line.parallel > 1 and line.label else ""
    return f"{count}{line.label}"


def _label(
    line: _Line, places: Mapping[_Box, tuple[float, float]], colours: Mapping[str, str], words: str
) -> str:
    """Return the words at the middle of a line's last part."""
    if not words:
        return ""
    (x1, y1), (x2, y2) = (places[box] for box in (line.a, *line.ways, line.b)[-2:])
    x = x1 + GAP / 2 if abs(x1 - x2) < 1 else (x1 + x2) / 2
    return halo(x, (y1 + y2) / 2 - 5, words, colours)


def _kinds(lines: Sequence[_Line]) -> list[str]:
    """Return what the links do, with how many do it."""
    counts = Counter(link_label(link) or "no limits" for line in lines for link in line.links)
    return [f"{many} links: {label}" for label, many in counts.most_common(6)]


def _in_words(plan: Plan, lines: Sequence[_Line], colours: Mapping[str, str]) -> str:
    """Return a few lines of text in place of a drawing."""
    roles = Counter(space.role for space in plan.network.namespaces if space.role != "wire")
    plural = {"host": "hosts", "switch": "switches", "router": "routers"}
    nodes = ", ".join(f"{many} {plural[role] if many > 1 else role}" for role, many in roles.items())
    notes = [f"{nodes}; {len(plan.links)} links, {len(plan.flows)} flows: too many to draw", *_kinds(lines)]
    parts = [
        text(MARGIN, MARGIN + 14 + 20 * row, words, colours["ink"], "start")
        for row, words in enumerate(notes)
    ]
    return drawing("".join(parts), max(map(_width, notes)), 2 * MARGIN + 20 * len(notes), colours)


def _width(words: str) -> float:
    """Return about how wide a line of words is, with margins."""
    return len(words) * TEXT * LETTER + 2 * MARGIN
