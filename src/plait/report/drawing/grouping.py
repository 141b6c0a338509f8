"""Group the nodes of a large network into boxes, and arrange the boxes in columns.

Hosts that have the same neighbours over the same links are one box, and links between the same boxes are one line. Of
a network that is larger still, all nodes that are alike form one box: nodes of a role that have equally many links to
each other box (the coarsest equitable partition; Cardon and Crochemore, "Partitioning a graph in O(|A| log |V|)",
1982). Symmetric networks have few such boxes, random ones have nearly as many as nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from plait.plan.model.links import Link
from plait.plan.model.plan import Plan
from plait.report.drawing.layout import across, distances, ends_of, neighbours, roles_of, sides
from plait.report.drawing.link_labels import LinkLabels
from plait.report.drawing.svg import node_size, shortened

ROUNDS = 4
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True)
class NodeBox:
    """A node, or nodes that are alike."""

    names: tuple[str, ...]
    role: str

    column: int = -1
    """The column of the box. Boxes for places that a line passes are not drawn."""
    called: tuple[str, ...] = ()
    """The labels of its nodes; without any, their names."""

    @property
    def label(self) -> str:
        """The first and the last name, and how many there are."""
        words = self.called or self.names
        if len(words) == 1:
            return shortened(words[0])
        return f"{shortened(words[0])} {ELLIPSIS} {shortened(words[-1])} ({len(words)})"

    @property
    def width(self) -> float:
        """The width of the box in pixels."""
        return node_size(self.label, self.role)[0] if self.column < 0 else 0.0


@dataclass(frozen=True)
class BoxLine:
    """The links between two boxes."""

    a: NodeBox
    b: NodeBox
    links: tuple[Link, ...]
    kinds: tuple[str, ...]
    """The different labels of the links."""
    ways: tuple[NodeBox, ...] = ()
    """Where it passes the columns between its boxes, from a to b."""

    @property
    def stops(self) -> tuple[NodeBox, ...]:
        """Its boxes, and the places in the columns between them."""
        return (self.a, *self.ways, self.b)

    @property
    def parallel(self) -> int:
        """How many links there are for each pair of nodes; 0 where it is not the same number for all pairs."""
        pairs = Counter(frozenset(ends_of(link)) for link in self.links)
        counts = set(pairs.values())
        return counts.pop() if len(counts) == 1 and len(pairs) == len(self.a.names) * len(self.b.names) else 0


def boxes_of(plan: Plan, labels: LinkLabels) -> list[NodeBox]:
    """Return hosts that are alike as one, and every other node on its own; in the order of the plan."""
    role = roles_of(plan)
    left, right = sides(plan, list(role))
    near = _links_at(plan, lambda link: (f"{labels.name(link)} {labels.label(link)}",) * 2)
    is_sideless = not has_sides(plan)
    keys: dict[str, object] = {
        name: (is_sideless or (name in left, name in right), tuple(sorted(near[name])))
        if kind == "host"
        else name
        for name, kind in role.items()
    }
    return _boxes(keys, role, labels)


def classes_of(plan: Plan, labels: LinkLabels) -> list[NodeBox]:
    """Return the coarsest boxes of which all nodes have equally many links, of each kind, to each other box."""
    role = roles_of(plan)

    def kinds(link: Link) -> tuple[str, str]:
        words = labels.words(link)
        return (
            f"{words.common}{words.forward}{words.backward}",
            f"{words.common}{words.backward}{words.forward}",
        )

    near = _links_at(plan, kinds)
    colour: dict[str, int] = _numbered({name: (kind,) for name, kind in role.items()})
    for _ in role:
        signs = {
            name: (colour[name], tuple(sorted((colour[neighbour], kind) for neighbour, kind in near[name])))
            for name in role
        }
        finer = _numbered(signs)
        if len(set(finer.values())) == len(set(colour.values())):
            break
        colour = finer
    return _boxes(colour, role, labels)


def _links_at(plan: Plan, kinds: Callable[[Link], tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return the neighbour and the kind of each link at each node; `kinds` has that from either end of a link."""
    near: dict[str, list[tuple[str, str]]] = {name: [] for name in roles_of(plan)}
    for link in plan.links:
        a, b = ends_of(link)
        kind_ahead, kind_back = kinds(link)
        near[a].append((b, kind_ahead))
        near[b].append((a, kind_back))
    return near


def _boxes(keys: Mapping[str, object], role: Mapping[str, str], labels: LinkLabels) -> list[NodeBox]:
    """Return a box of all nodes with the same key, in the order of the first ones."""
    alike: dict[object, list[str]] = {}
    for name in role:
        alike.setdefault(keys[name], []).append(name)
    return [
        NodeBox(tuple(names), role[names[0]], called=tuple(map(labels.called.node, names)))
        for names in alike.values()
    ]


def _numbered(signs: Mapping[str, tuple[object, ...]]) -> dict[str, int]:
    """Return the number of each sign, in the order in which signs occur."""
    numbers: dict[tuple[object, ...], int] = {}
    return {name: numbers.setdefault(sign, len(numbers)) for name, sign in signs.items()}


def lines_of(plan: Plan, boxes: Sequence[NodeBox], labels: LinkLabels) -> list[BoxLine]:
    """Return the lines between the boxes; links inside of a box have a line from the box to itself."""
    box_of = {name: box for box in boxes for name in box.names}
    spans: dict[frozenset[NodeBox], list[Link]] = {}
    for link in plan.links:
        spans.setdefault(frozenset(box_of[name] for name in ends_of(link)), []).append(link)
    lines = []
    for links in spans.values():
        a, b = ends_of(links[0])
        kinds = tuple(dict.fromkeys(kind_of(link, labels) for link in links))
        lines.append(BoxLine(box_of[a], box_of[b], tuple(links), kinds))
    return lines


def kind_of(link: Link, labels: LinkLabels) -> str:
    """Return what a link does, without the names of its nodes."""
    words = labels.words(link)
    parts = [", ".join(words.common)]
    if words.forward and words.backward:
        parts.append(f"one way {', '.join(words.forward)}, the other way {', '.join(words.backward)}")
    elif words.forward or words.backward:
        parts.append(f"{', '.join(words.forward or words.backward)} in one direction only")
    return "; ".join(part for part in parts if part) or "no limit"


def has_sides(plan: Plan) -> bool:
    """Return whether no host is a client in one flow and a server in another."""
    clients = {flow.client.netns for flow in plan.flows}
    return clients.isdisjoint(flow.server.netns for flow in plan.flows) and bool(clients)


def columns_of(
    plan: Plan, boxes: Sequence[NodeBox], lines: Sequence[BoxLine]
) -> tuple[list[list[NodeBox]], list[BoxLine]]:
    """Return the boxes from left to right, in each column in an order with few crossings, and the lines among them."""
    names = [box.names[0] for box in boxes]
    near = neighbours(names, ((line.a.names[0], line.b.names[0]) for line in lines))
    if has_sides(plan):
        left, right = sides(plan, names)
        ends = [[name for name in names if name in side] for side in (left, right)]
        place: Mapping[str, float] = across(names, distances(near, ends[0]), distances(near, ends[1]))
    else:
        far = distances(near, [box.names[0] for box in boxes if box.role == "host"])
        place = {name: far.get(name, 0) for name in names}
    columns = [
        [box for box in boxes if place[box.names[0]] == column_at]
        for column_at in sorted(set(place.values()))
    ]
    led = _led(columns, lines)
    return _ordered(columns, led), led


def _led(columns: list[list[NodeBox]], lines: Sequence[BoxLine]) -> list[BoxLine]:
    """Give lines that pass a column a place of their own in it, so that they run beside its boxes."""
    column_at = {box: number for number, column in enumerate(columns) for box in column}
    led = []
    for line in lines:
        first, last = column_at[line.a], column_at[line.b]
        spans = range(first + 1, last) if first < last else range(first - 1, last, -1)
        ways = tuple(NodeBox((f"{line.a.names[0]}-{line.b.names[0]}",), "way", number) for number in spans)
        for way in ways:
            columns[way.column].append(way)
        led.append(replace(line, ways=ways))
    return led


def _ordered(columns: list[list[NodeBox]], lines: Sequence[BoxLine]) -> list[list[NodeBox]]:
    """Sort each column by the places of its neighbours, there and back (the barycentre method of Sugiyama)."""
    near: dict[NodeBox, list[NodeBox]] = {box: [] for column in columns for box in column}
    for line in lines:
        for box_a, box_b in pairwise(line.stops):
            near[box_a].append(box_b)
            near[box_b].append(box_a)
    height = {box: (row + 0.5) / len(column) for column in columns for row, box in enumerate(column)}

    def middle(box: NodeBox) -> float:
        around = [height[neighbour] for neighbour in near[box]]
        return sum(around) / len(around) if around else height[box]

    for round_ in range(ROUNDS):
        for column in columns[:: 1 if round_ % 2 == 0 else -1]:
            column.sort(key=middle)
            height |= {box: (row + 0.5) / len(column) for row, box in enumerate(column)}
    return columns
