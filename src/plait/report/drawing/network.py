"""The drawing of the network: nodes, links with all their conditions, and the paths of the flows in their colours.

It is written as SVG by hand: a dozen boxes and curves whose colours the page can set by theme. Nothing covers
anything: links run around nodes, and a label that finds no free place beside its link is below the drawing, with a
number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plait.analysis.labels.study_labels import StudyLabels
from plait.analysis.series import TrialSeries
from plait.analysis.wording import micros, plain, rate
from plait.plan.model.links import Link
from plait.plan.model.plan import Path, Plan
from plait.report.drawing import overview
from plait.report.drawing.curves import Box, Curve, Room, crosses
from plait.report.drawing.layout import Layout, distinct_paths, ends_of, layout, roles_of
from plait.report.drawing.link_labels import LinkLabels, LinkWords, node_notes, wrapped
from plait.report.drawing.svg import (
    LINE,
    TEXT,
    badge,
    block,
    drawing,
    lines_of_text,
    node,
    node_size,
    shortened,
    stroke,
    text,
)
from plait.report.render.text_width import text_width
from plait.report.render.theme import PATHS
from plait.report.representatives import Representative

LANE = 92.0
CLOSE_LANE = 66.0
"""Height of a lane, and where there are many of them."""
FEW_LANES = 5
COLUMN = (150.0, 300.0)
"""Least and greatest distance between columns; the labels of links decide."""
WIDEST = 661.0
"""A page of a paper in pixels: a wider drawing is printed smaller."""
LEAST_WIDTH = 440.0
MARGIN = 62.0
SEPARATION = 5.0
BEND = 36.0
"""How far the handles of parallel links are apart."""
BULGE = 0.75
"""How much of that a cubic curve reaches in its middle."""
DETOURS = (0.0, 30.0, -30.0, 55.0, -55.0, 85.0, -85.0, 120.0, -120.0, 170.0, -170.0)
"""Further bends that are tried until a link runs over no node."""
FEW_LINKS = 8
LONGEST = (34, 26, 20)
"""Letters in a line of a label, the shortest block of lines first."""
BADGE = 18.0
ALONG = (0.5, 0.44, 0.56, 0.38, 0.62, 0.33, 0.67, 0.28, 0.72, 0.2, 0.8)
"""Places of labels along a link, the best first."""


@dataclass(frozen=True)
class DrawnPath:
    """A path to draw: the names of its link directions, its colour, its name, and its rate and delay."""

    directions: tuple[str, ...]
    colour: str | None
    """None: grey as all others, so that its entry of a key has no sample."""
    label: str
    facts: str


@dataclass(frozen=True)
class _DrawnLink:
    """A link with its way through the drawing, the paths over it, and its label."""

    link: Link
    curve: Curve
    users: tuple[DrawnPath, ...]
    words: LinkWords


@dataclass
class _Geometry:
    """Places in pixels, and the boxes of nodes."""

    layout: Layout
    width: float
    top: float
    lane: float
    margin: float = MARGIN
    """Half the width of the widest node at either end, at least."""
    boxes: dict[str, Box] = field(default_factory=dict)

    @property
    def height(self) -> float:
        return 2 * self.top + self.layout.lanes * self.lane

    @property
    def centre(self) -> float:
        """The mean height of clients and servers."""
        ends = [node for node, place in self.layout.across.items() if place in (0, 1)]
        return sum(self.centre_of(node)[1] for node in ends) / len(ends) if ends else 0.0

    def centre_of(self, node: str) -> tuple[float, float]:
        """Return the centre of a node."""
        x = self.margin + self.layout.across[node] * (self.width - 2 * self.margin)
        return x, self.top + self.layout.down[node] * self.lane


def draw(
    plan: Plan,
    paths: Sequence[DrawnPath],
    colours: Mapping[str, str],
    *,
    legend: bool,
    called: StudyLabels | None = None,
) -> str:
    """Return the drawing as SVG; `colours` gives "surface", "raised", "ink", "muted" and "grid" as CSS colours.

    `called` says what people call nodes, and which links of `plan` have a label as their name.
    A network of many nodes is drawn as an overview, without paths.
    """
    if overview.is_crowded(plan):
        return overview.draw(plan, colours, called)
    labels = LinkLabels(plan, called)
    places = layout(plan)
    roles = {name: role for name, role in roles_of(plan).items() if name in places.across}
    shown = [link for link in plan.links if all(node in roles for node in ends_of(link))]
    common = _common_label(shown, labels)
    geometry = _geometry(shown, labels if common is None else None, places, _margin(roles, labels, places))
    drawn = _routed(shown, geometry, paths, labels, roles)
    room = Room(geometry.width, geometry.height, list(geometry.boxes.values()), [d.curve for d in drawn])
    parts = [_strokes(link, colours) for link in drawn]
    inline, numbered = _labels(drawn if common is None else [], geometry, room, colours)
    parts += [
        node(
            box.centre,
            shortened(labels.called.node(name)),
            roles[name],
            colours,
            tooltip=f"{roles[name]} {name}",
            height=box.bottom - box.top,
        )
        for name, box in geometry.boxes.items()
    ]
    parts += inline
    notes = [f"every link: {common}"] if common is not None else []
    notes += node_notes(plan, labels.called)
    names = [labels.called.node(name) for name in geometry.boxes]
    notes += [f"{shortened(name)}: {name}" for name in names if shortened(name) != name]
    if places.left_out:
        notes.append(f"{places.left_out} nodes that no path crosses are not drawn")
    y = geometry.height
    rows = [*(f"{number}  {d.link.name}: {labels.label(d.link)}" for number, d in numbered), *notes]
    rows_below, y = lines_of_text(rows, MARGIN - 24, y, geometry.width - MARGIN, colours)
    parts.append(rows_below)
    if legend:
        parts.append(_legend(paths, y + 6, colours))
        y += 22 * len(paths) + 8
    return drawing("".join(parts), geometry.width, y, colours)


def _margin(roles: Mapping[str, str], labels: LinkLabels, places: Layout) -> float:
    """Return the room beside the centres of the outermost nodes."""
    halves = [
        node_size(shortened(labels.called.node(name)), role)[0] / 2
        for name, role in roles.items()
        if places.across[name] in {0, 1}
    ]
    return max(MARGIN, *(half + 4 for half in halves))


def _geometry(links: Sequence[Link], labels: LinkLabels | None, places: Layout, margin: float) -> _Geometry:
    """Return the size of the drawing: columns as wide as labels need, and room for bends of parallel links."""
    blocks = [_block(labels.words(link), LONGEST[0]) for link in links] if labels is not None else []
    widest = max((text_width(line, TEXT) for lines in blocks for line in lines), default=0.0)
    tallest = max(map(len, blocks), default=0) * LINE
    columns = max(places.columns - 1, 1)
    fitting = (WIDEST - 2 * margin) / columns
    column = max(min(widest + 90, COLUMN[1], fitting), COLUMN[0])
    pairs = [frozenset(ends_of(link)) for link in links]
    bulge = max((pairs.count(pair) - 1) / 2 * BEND for pair in pairs) if pairs else 0.0
    lane = (LANE if places.lanes <= FEW_LANES else CLOSE_LANE) + max(0.0, tallest - 2 * LINE)
    top = 30 + max(tallest, LINE) + max(bulge - BEND / 2, 0.0) * BULGE
    return _Geometry(places, max(LEAST_WIDTH, 2 * margin + column * columns), top, lane, margin)


def _separation(users: Sequence[DrawnPath]) -> float:
    """Return the pixels between the paths over a link."""
    return SEPARATION if len(users) <= 6 else max(2.4, 6 * SEPARATION / len(users))


def _routed(
    links: Sequence[Link],
    geometry: _Geometry,
    paths: Sequence[DrawnPath],
    labels: LinkLabels,
    roles: Mapping[str, str],
) -> list[_DrawnLink]:
    """Return every link with its curve, and set the boxes of nodes: as high as the bundle of paths at them."""
    users = {
        link.name: tuple(path for path in paths if {d.name for d in link.directions} & set(path.directions))
        for link in links
    }
    half = {name: max(2.5, (_separation(bundle) * len(bundle) + 2) / 2) for name, bundle in users.items()}
    for node_name, role in roles.items():
        bundles = (half[link.name] for link in links if node_name in ends_of(link))
        width, height = node_size(shortened(labels.called.node(node_name)), role)
        height = max(height, 2 * max(bundles, default=0.0) + 8)
        geometry.boxes[node_name] = Box.around(*geometry.centre_of(node_name), width, height)
    pairs: dict[frozenset[str], list[Link]] = {}
    for link in links:
        pairs.setdefault(frozenset(ends_of(link)), []).append(link)
    routed = []
    for pair, parallel in pairs.items():
        obstacles = [box for name, box in geometry.boxes.items() if name not in pair]
        for number, link in enumerate(parallel):
            bend = (number - (len(parallel) - 1) / 2) * BEND
            tried = [_curve(geometry, link, bend + detour, half[link.name]) for detour in DETOURS]
            free = (c for c in tried if not crosses(c, obstacles) and _is_inside(c, geometry))
            routed.append(_DrawnLink(link, next(free, tried[0]), users[link.name], labels.words(link)))
    return routed


def _is_inside(curve: Curve, geometry: _Geometry) -> bool:
    return all(
        curve.half <= x <= geometry.width - curve.half and curve.half <= y <= geometry.height - curve.half
        for x, y in curve.points
    )


def _curve(geometry: _Geometry, link: Link, bend: float, half: float) -> Curve:
    """Return the curve of a link: level at both ends, with a bend."""
    (x1, y1), (x2, y2) = (geometry.centre_of(node) for node in ends_of(link))
    if abs(x1 - x2) < 1:  # within a column: bow out to the right
        bow = x1 + 47 + bend / 1.5
        return Curve(((x1, y1), (bow, y1 + (y2 - y1) / 3), (bow, y2 - (y2 - y1) / 3), (x2, y2)), half)
    middle = (x1 + x2) / 2
    return Curve(((x1, y1), (middle, y1 + bend), (middle, y2 + bend), (x2, y2)), half)


def _strokes(drawn: _DrawnLink, colours: Mapping[str, str]) -> str:
    """Return a link, and the paths over it beside each other."""
    parts = [stroke(drawn.curve.data, colours["grid"], 2 * drawn.curve.half)]
    separation = _separation(drawn.users)
    for place, path in enumerate(drawn.users):
        shift = (place - (len(drawn.users) - 1) / 2) * separation
        parts.append(
            stroke(drawn.curve.beside(shift), path.colour or colours["muted"], min(2.4, separation * 0.6))
        )
    return "".join(parts)


def _labels(
    drawn: Sequence[_DrawnLink], geometry: _Geometry, room: Room, colours: Mapping[str, str]
) -> tuple[list[str], list[tuple[int, _DrawnLink]]]:
    """Return the labels beside their links, and the links that have a number instead, with it."""
    parts: list[str] = []
    without: list[_DrawnLink] = []
    for drawn_link in drawn:
        lines, box = _beside(drawn_link, geometry, room)
        if box is not None:
            room.boxes.append(box)
            parts.append(block(box.centre[0], box.top, lines, colours))
        elif lines:
            without.append(drawn_link)
    numbered = list(enumerate(without, 1))
    for number, drawn_link in numbered:
        spot = room.on(drawn_link.curve, BADGE, ALONG) or Box.around(
            *drawn_link.curve.point_at(0.5), BADGE, BADGE
        )
        room.boxes.append(spot)
        parts.append(badge(*spot.centre, number, colours))
    return parts, numbered


def _beside(drawn_link: _DrawnLink, geometry: _Geometry, room: Room) -> tuple[list[str], Box | None]:
    """Return the lines of a label and their box on the outer side of the link; None without room."""
    (x1, y1), (x2, y2) = drawn_link.curve.ends[0], drawn_link.curve.ends[-1]
    outer = y2 if abs(y2 - geometry.centre) > abs(y1 - geometry.centre) else y1
    outer_end = [share for share in ALONG if (share >= 0.5) == (outer == y2)]
    shares = ALONG if abs(y1 - y2) < 1 else (*outer_end, *(s for s in ALONG if s not in outer_end))
    middle = drawn_link.curve.point_at(0.5)[1]
    prefers_top = middle <= geometry.centre if abs(middle - (y1 + y2) / 2) < 1 else middle < (y1 + y2) / 2
    lines: list[str] = []
    for longest in LONGEST:
        lines = _block(drawn_link.words, longest, is_turned=x1 > x2, is_upright=abs(x1 - x2) < 1)
        if not lines:
            return [], None
        size = max(text_width(line, TEXT) for line in lines) + 4, len(lines) * LINE
        box = room.beside(drawn_link.curve, size, prefers_top=prefers_top, shares=shares)
        if box is not None:
            return lines, box
    return lines, None


def _block(words: LinkWords, longest: int, *, is_turned: bool = False, is_upright: bool = False) -> list[str]:
    """Return the conditions of a link in lines; arrows show the direction of those that only one direction has."""
    ahead, arrow_back = ("\N{DOWNWARDS ARROW}", "\N{UPWARDS ARROW}") if is_upright else (
        "\N{RIGHTWARDS ARROW}", "\N{LEFTWARDS ARROW}"
    )  # fmt: skip
    if is_turned:
        ahead, arrow_back = arrow_back, ahead
    lines = wrapped(words.common, longest)
    for arrow, one_way in ((ahead, words.forward), (arrow_back, words.backward)):
        lines += wrapped(one_way, longest, first=f"{arrow} ") if one_way else []
    return lines


def _common_label(links: Sequence[Link], labels: LinkLabels) -> str | None:
    """Return the label that all of many links share, to be written once; None when each has to be labelled."""
    different = {labels.words(link) for link in links}
    shared = next(iter(different)) if len(different) == 1 else None
    if shared is None or len(links) <= FEW_LINKS or shared.forward or shared.backward:
        return None
    return ", ".join(shared.common) or "no limit"


def _legend(paths: Sequence[DrawnPath], top: float, colours: Mapping[str, str]) -> str:
    """Return a line per path with its colour and label."""
    rows = []
    for number, path in enumerate(paths):
        y = top + 22 * number + 8
        if path.colour is not None:
            rows.append(stroke(f"M{MARGIN - 24} {y:.1f}h22", path.colour, 3))
        left = MARGIN - 24 if path.colour is None else MARGIN + 8
        rows.append(text(left, y + 4, f"{path.label}: {path.facts}", colours["ink"], "start"))
    return "".join(rows)


def most_paths(shown: Sequence[Representative]) -> Representative | None:
    """Return the representative whose flows use most paths: its drawing shows those of the others too.

    None if there is no link to draw: an observation sees none.
    """
    linked = (case for case in shown if case.plan.links)
    return max(linked, key=lambda case: len(distinct_paths(case.plan)), default=None)


def coloured_paths(plan: Plan, series: TrialSeries, colours: Mapping[str, str]) -> list[DrawnPath]:
    """Return the paths of a plan in the colours that their subflows have in the charts; none for an overview."""
    if overview.is_crowded(plan):
        return []
    by_path = {subflow.path: subflow.colour for subflow in series.subflows}
    several = len(plan.flows) > 1
    paths = []
    for number, (_, path) in enumerate(distinct_paths(plan)):
        # With several flows the colours of the charts distinguish flows, and paths have none of their own.
        colour = None if several else colours[f"path{by_path.get(path.name, number) % PATHS}"]
        facts = [
            _path_rate(path, plan),
            f"base RTT {plain(micros(path.base_rtt_us))}",
        ]
        paths.append(DrawnPath(path.forward, colour, path.name, ", ".join(filter(None, facts))))
    return paths


def _path_rate(path: Path, plan: Plan) -> str:
    """Return the rate of a path; the initial one if events change it, as the plan then has none for the path."""
    if path.rate_bps is not None:
        return plain(rate(path.rate_bps))
    rates = (direction.rate_bps for name, direction in plan.directions.items() if name in path.forward)
    initial = [rate_bps for rate_bps in rates if rate_bps is not None]
    return f"initially {plain(rate(min(initial)))}" if initial else ""


def links_differ(shown: Sequence[Representative]) -> bool:
    """Return whether the links are not the same in all cases: then the drawing is that of one case."""
    labels = set()
    for case in shown:
        words_of = LinkLabels(case.plan)
        labels.add(tuple(words_of.label(link) for link in case.plan.links))
    return len(labels) > 1
