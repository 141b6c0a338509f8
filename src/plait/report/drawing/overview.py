"""The drawing of a network of many nodes: columns from the hosts inwards, or from clients to servers.

What is alike is drawn once (`grouping`). Lines run between columns only, so that they cross no box. Where links
differ, lines have numbers, and a row below the drawing for each. Words describe networks without any order.

A long chain or ring has many columns of few boxes. It goes back and forth in bands below one another, so that the
page does not shrink its names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from plait.analysis.labels.study_labels import StudyLabels
from plait.analysis.wording import plain, rate, significant
from plait.plan.model.plan import Plan
from plait.report.drawing.curves import Box, Curve, Room
from plait.report.drawing.grouping import BoxLine, NodeBox, boxes_of, classes_of, columns_of, lines_of
from plait.report.drawing.layout import distinct_paths, ends_of, roles_of
from plait.report.drawing.link_labels import LinkLabels, node_notes
from plait.report.drawing.svg import badge, drawing, lines_of_text, node, stroke

FEW_NODES = 16
FEW_PATHS = 24
"""A network with more nodes or paths than these has an overview instead of a drawing."""
MOST_ROWS = 20
"""Most boxes in a column: more would not fit on a page. Then a box holds all nodes that are alike."""
MOST_KINDS = 12
"""Most kinds of links that have a number each."""
MOST_LINES = 160
"""More lines could not be told apart."""
ROW = 46.0
FEW_ROWS = 4
AIRY_ROW = 66.0
"""The height of a row, where there are few."""
GAP = 96.0
"""Width between two columns of boxes."""
MARGIN = 16.0
LEAST_WIDTH = 440.0
WIDEST = 1000.0
"""A drawing of few rows that would be wider has several bands."""
BETWEEN_BANDS = 10.0
BADGE = 18.0
ALONG = (0.5, 0.4, 0.6, 0.3, 0.7, 0.22, 0.78, 0.15, 0.85, 0.45, 0.55, 0.35, 0.65, 0.25, 0.75)


def is_crowded(plan: Plan) -> bool:
    """Return whether a plan has more nodes, or paths, than a drawing of each of them can show."""
    return len(roles_of(plan)) > FEW_NODES or len(distinct_paths(plan)) > FEW_PATHS


def draw(plan: Plan, colours: Mapping[str, str], called: StudyLabels | None = None) -> str:
    """Return the drawing as SVG; `colours` and `called` as for the drawing of a small network."""
    labels = LinkLabels(plan, called)
    for boxes in (boxes_of(plan, labels), classes_of(plan, labels)):
        columns, lines = columns_of(plan, boxes, lines_of(plan, boxes, labels))
        if max(map(len, columns)) <= MOST_ROWS and len(lines) <= MOST_LINES:
            svg = _drawn(plan, columns, lines, colours, labels.called)
            if svg is not None:
                return svg
    return _in_words(plan, labels, colours)


def _drawn(
    plan: Plan,
    columns: Sequence[Sequence[NodeBox]],
    lines: Sequence[BoxLine],
    colours: Mapping[str, str],
    called: StudyLabels,
) -> str | None:
    """Return the drawing; None where the number of a line has no free place."""
    tallest = max(map(len, columns))
    height = tallest * (ROW if tallest > FEW_ROWS else AIRY_ROW) + 2 * MARGIN
    ground = _ground(columns, height)
    places, width, height = ground.places, ground.width, ground.height
    curves = {line: _curves(line, ground) for line in lines if line.a is not line.b}
    around = [Box.around(*place, box.width, 34) for box, place in places.items() if box.column < 0]
    room = Room(width, height, around, [curve for parts in curves.values() for curve in parts])
    parts = [
        stroke(curve.data, colours["faint"], 2 * curve.half) for drawn in curves.values() for curve in drawn
    ]
    parts += [
        node(place, box.label, box.role, colours, tooltip=f"{box.role}: {', '.join(box.names[:40])}")
        for box, place in places.items()
        if box.column < 0
    ]
    numbers, rows = _kinds(lines)
    for line, drawn in curves.items():
        if line.kinds in numbers:
            spots = (room.on(curve, BADGE, ALONG) for curve in drawn[::3])
            spot = next((spot for spot in spots if spot is not None), None)
            if spot is None:
                return None
            room.boxes.append(spot)
            parts.append(badge(*spot.centre, numbers[line.kinds], colours))
    rows += _multiplicities(lines)
    wide = max(width, LEAST_WIDTH)
    rows_below, bottom = lines_of_text(
        [*rows, *node_notes(plan, called)], MARGIN, height, wide - MARGIN, colours
    )
    return drawing("".join(parts) + rows_below, wide, bottom, colours)


def _kinds(lines: Sequence[BoxLine]) -> tuple[dict[tuple[str, ...], int], list[str]]:
    """Return the number of each kind of line, and the rows below the drawing that explain them.

    The most frequent kind has no number. Of too many kinds none has a number, and the rows count links.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        counts[line.kinds] += len(line.links)
    (usual, _), *rarer = counts.most_common()
    if not rarer and len(usual) == 1:
        return {}, [f"every link: {usual[0]}"]
    if len(counts) > MOST_KINDS:
        return {}, _counted([link for line in lines for link in _kinds_of_links(line)])
    numbers = {kinds: number for number, (kinds, _) in enumerate(rarer, 1)}
    rows = [f"without a number: {' or '.join(usual)} ({_links(counts[usual])})"]
    rows += [f"{number}  {' or '.join(kinds)} ({_links(counts[kinds])})" for kinds, number in numbers.items()]
    return numbers, rows


def _kinds_of_links(line: BoxLine) -> list[str]:
    return [kind for kind in line.kinds for _ in range(max(1, len(line.links) // len(line.kinds)))]


def _counted(kinds: Sequence[str]) -> list[str]:
    """Return how many links do what: the most frequent kinds, and how many others there are."""
    counts = Counter(kinds).most_common()
    rows = [f"{_links(many)}: {kind}" for kind, many in counts[:MOST_KINDS]]
    if len(counts) > MOST_KINDS:
        left = sum(many for _, many in counts[MOST_KINDS:])
        rows.append(f"{left} links of {len(counts) - MOST_KINDS} other kinds")
    return rows


def _links(count: int) -> str:
    return f"{count} links" if count > 1 else "1 link"


def _multiplicities(lines: Sequence[BoxLine]) -> list[str]:
    """Return the label of a line that is not a link between each two nodes of its boxes."""
    rows = []
    side_by_side = {line.parallel for line in lines if line.parallel > 1}
    if len(side_by_side) == 1:
        rows.append(f"each thick line: {side_by_side.pop()} links side by side")
    for line in lines:
        if line.a is line.b:
            rows.append(f"{len(line.links)} links among {line.a.label}")
        elif not line.parallel or (line.parallel > 1 and not rows):
            per_end = [f"{_per_node(len(line.links), box)} of {box.label}" for box in (line.a, line.b)]
            rows.append(f"{len(line.links)} links: {' and '.join(per_end)}")
    return rows


def _per_node(links: int, box: NodeBox) -> str:
    return f"{significant(links / len(box.names), 2).removesuffix('.0')} at each"


def _in_words(plan: Plan, labels: LinkLabels, colours: Mapping[str, str]) -> str:
    """Return a few lines of text in place of a drawing."""
    role_of = roles_of(plan)
    roles = Counter(role_of.values())
    plural = {"host": "hosts", "switch": "switches", "router": "routers"}
    nodes = ", ".join(f"{many} {plural[role] if many > 1 else role}" for role, many in roles.items())
    degree: Counter[str] = Counter()
    for link in plan.links:
        degree.update(ends_of(link))
    flows = f"{len(plan.flows)} {'flows' if len(plan.flows) > 1 else 'flow'}"
    size = f"{nodes}; {_links(len(plan.links))}, {flows}"
    rows = [f"{size}: too many to draw, and without groups of nodes that are alike"]
    for role in roles:
        counts = [degree[name] for name in role_of if role_of[name] == role]
        rows.append(
            f"links of each {role}: {_span(counts)}, mean {significant(sum(counts) / len(counts), 2)}"
        )
    lengths = [len(path.forward) for _, path in distinct_paths(plan)]
    if lengths:
        rows.append(f"links along the path of a flow: {_span(lengths)}")
    rates = [d.rate_bps for link in plan.links for d in link.directions if d.rate_bps is not None]
    delays = [d.delay_ns / 1e6 for link in plan.links for d in link.directions]
    if rates:
        rows.append(f"rates: {_span(rates, lambda bps: plain(rate(bps)))}")
    rows.append(f"delays: {_span(delays, lambda ms: plain(f'{ms:.3f} ms'))}")
    rows += _counted([labels.label(link) or "no limit" for link in plan.links])
    rows_below, bottom = lines_of_text(
        [*rows, *node_notes(plan, labels.called)], MARGIN, MARGIN, 640, colours
    )
    return drawing(rows_below, 640 + MARGIN, bottom + MARGIN, colours)


def _span(values: Sequence[float], show: Callable[[float], str] = str) -> str:
    least, most = show(min(values)), show(max(values))
    return least if least == most else f"{least} to {most}"


@dataclass(frozen=True)
class _Ground:
    """The centre of every box, the left and right end of its column, its band, and the size of all."""

    places: dict[NodeBox, tuple[float, float]]
    sides: dict[NodeBox, tuple[float, float]]
    bands: dict[NodeBox, int]
    width: float
    height: float


def _ground(columns: Sequence[Sequence[NodeBox]], height: float) -> _Ground:
    """Return where everything goes; `height` is that of all where there is one band."""
    widths = [max(box.width for box in column) for column in columns]
    tallest = max(map(len, columns))
    gap = GAP * (1.0 if tallest <= 8 else 1.5)
    per_band = len(columns)
    if tallest <= FEW_ROWS and sum(widths) + gap * (len(columns) - 1) + 2 * MARGIN > WIDEST:
        per_band = max(2, int((WIDEST - 2 * MARGIN) // (max(widths) + gap)))
        per_band = math.ceil(len(columns) / math.ceil(len(columns) / per_band))
    bands = math.ceil(len(columns) / per_band)
    turn = gap / 2 if bands > 1 else 0.0
    height = tallest * ROW + 2 * MARGIN if bands > 1 else height
    step_down = height + BETWEEN_BANDS
    ground = _Ground({}, {}, {}, 0.0, 0.0)
    right = MARGIN + turn
    for band, first in enumerate(range(0, len(columns), per_band)):
        # Columns of one place are as wide as the widest: bands that turn have their ends below one another.
        left = MARGIN + turn
        order = list(range(first, min(first + per_band, len(columns))))
        slots = [max(widths[slot::per_band]) for slot in range(per_band)] if bands > 1 else widths
        if band % 2:
            order.reverse()
            missing = per_band - len(order)
            left += sum(slots[:missing]) + gap * missing
            slots = slots[missing:]
        for number, wide in zip(order, slots, strict=False):
            column = columns[number]
            step = (height - 2 * MARGIN) / len(column)
            for row, box in enumerate(reversed(column) if band % 2 else column):
                ground.places[box] = (left + wide / 2, MARGIN + (row + 0.5) * step + band * step_down)
                ground.sides[box] = (left, left + wide)
                ground.bands[box] = band
            left += wide + gap
        right = max(right, left - gap)
    bows = len(columns) < 2 or any(len(column) > 1 for column in columns[-1:])
    edge = turn + (GAP / 2 if bows and bands == 1 else 0.0)
    return replace(ground, width=right + MARGIN + edge, height=bands * step_down - BETWEEN_BANDS)


def _curves(line: BoxLine, ground: _Ground) -> list[Curve]:
    """Return the parts of a line: through the gaps between columns, and level through the columns themselves."""
    half = 1.0 if line.parallel <= 1 else 2.5
    parts: list[Curve] = []
    for start_box, end_box in pairwise(line.stops):
        (x1, y1), (x2, y2) = ground.places[start_box], ground.places[end_box]
        turns = ground.bands[start_box] != ground.bands[end_box]
        if (
            turns or abs(x1 - x2) < 1
        ):  # bow out beside the boxes: of a column to the right, of bands where they turn
            bows_left = turns and min(ground.bands[start_box], ground.bands[end_box]) % 2 == 1
            side = 0 if bows_left else 1
            edges = ground.sides[start_box][side], ground.sides[end_box][side]
            far = GAP * 0.5 * (min(1.0, abs(y1 - y2) / ground.height * 2) if turns else 1.0)
            bow = min(edges) - far if bows_left else max(edges) + far
            sign = -1 if bows_left else 1
            parts += [
                Curve(((edges[0], y1), (bow, y1), (bow, y2), (edges[1], y2)), half),
                _level(x1 + sign * start_box.width / 2, edges[0], y1, half),
                _level(x2 + sign * end_box.width / 2, edges[1], y2, half),
            ]
            continue
        side = 1 if x1 < x2 else 0
        sign = 1 if x1 < x2 else -1
        start, end = ground.sides[start_box][side], ground.sides[end_box][1 - side]
        middle = (start + end) / 2
        parts += [
            Curve(((start, y1), (middle, y1), (middle, y2), (end, y2)), half),
            _level(x1 + sign * start_box.width / 2, start, y1, half),
            _level(end, x2 - sign * end_box.width / 2, y2, half),
        ]
    return parts


def _level(start: float, end: float, y: float, half: float) -> Curve:
    return Curve(((start, y), (start, y), (end, y), (end, y)), half)
