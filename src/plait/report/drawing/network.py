"""The drawing of the network: nodes, links with rate and delay, and the paths of the flows in their colours.

It is written as SVG by hand: a dozen boxes and curves whose colours the page can set by theme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.report.drawing import overview
from plait.report.drawing.layout import Layout, layout
from plait.report.drawing.link_labels import link_label
from plait.report.drawing.svg import LETTER, TEXT, drawing, halo, node, shortened, stroke, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.plan.model.plan import Link, Plan

LANE = 84
COLUMN = (170.0, 280.0)
"""Least and greatest distance between columns; the labels of links decide."""
MARGIN = 62
SEPARATION = 5.0
BEND = 36.0
"""How far the handles of parallel links are apart."""
BULGE = 0.75
"""How much of that a cubic curve reaches in its middle."""
FEW_LINKS = 8


@dataclass(frozen=True)
class DrawnPath:
    """A path to colour: the names of its link directions, its colour, its name, and its rate and delay."""

    directions: tuple[str, ...]
    colour: str
    label: str
    facts: str


@dataclass(frozen=True)
class _Geometry:
    """Places in pixels."""

    layout: Layout
    width: float
    top: float
    """Height of the uppermost lane."""

    @property
    def centre(self) -> float:
        """Return the mean height of clients and servers."""
        ends = [node for node, place in self.layout.across.items() if place in (0, 1)]
        return sum(self.centre_of(node)[1] for node in ends) / len(ends) if ends else 0.0

    def centre_of(self, node: str) -> tuple[float, float]:
        """Return the centre of a node."""
        x = MARGIN + self.layout.across[node] * (self.width - 2 * MARGIN)
        return x, self.top + self.layout.down[node] * LANE


def draw(plan: Plan, paths: Sequence[DrawnPath], colours: Mapping[str, str], *, legend: bool) -> str:
    """Return the drawing as SVG; `colours` gives "surface", "raised", "ink", "muted" and "grid" as CSS colours.

    A network of many nodes is drawn as an overview, without paths.
    """
    if overview.is_crowded(plan):
        return overview.draw(plan, colours)
    places = layout(plan)
    drawn = [link for link in plan.links if all(node in places.across for node in _ends(link))]
    same = _common_label(drawn)
    longest = 0 if same is not None else max((len(link_label(link)) for link in drawn), default=0)
    column = min(max(longest * TEXT * LETTER + 100, COLUMN[0]), COLUMN[1])
    pairs = [frozenset(_ends(link)) for link in drawn]
    bulge = max((pairs.count(pair) - 1) / 2 * BEND for pair in pairs) if pairs else 0.0
    top = 34 + max(bulge - BEND / 2, 0.0) * BULGE
    geometry = _Geometry(places, max(440.0, 2 * MARGIN + column * max(places.columns - 1, 1)), top)
    height = 2 * top + places.lanes * LANE
    legend_height = 22 * len(paths) + 8 if legend else 0
    parts = [_curves(drawn, geometry, paths, colours, labels=same is None)]
    parts += [
        node(
            *geometry.centre_of(space.name),
            shortened(space.name),
            space.role,
            colours,
            tooltip=f"{space.role} {space.name}",
        )
        for space in plan.network.namespaces
        if space.name in places.across
    ]
    notes = [f"every link: {same}"] if same is not None else []
    if places.left_out:
        notes.append(f"{places.left_out} nodes that no path crosses are not drawn")
    if notes:
        parts.append(text(geometry.width / 2, height + 2, "; ".join(notes), colours["muted"], "middle"))
        height += 18
    if legend:
        parts.append(_legend(paths, height + 6, colours))
    return drawing("".join(parts), geometry.width, height + legend_height, colours)


def _common_label(links: Sequence[Link]) -> str | None:
    """Return the label that all of many links share, to be written once; None when each has to be labelled."""
    labels = {link_label(link) for link in links}
    return labels.pop() if len(links) > FEW_LINKS and len(labels) == 1 else None


def _curves(
    links: Sequence[Link],
    geometry: _Geometry,
    paths: Sequence[DrawnPath],
    colours: Mapping[str, str],
    *,
    labels: bool,
) -> str:
    """Return all links, the paths over them, and their labels."""
    below, above = [], []
    pairs: dict[frozenset[str], list[Link]] = {}
    for link in links:
        pairs.setdefault(frozenset(_ends(link)), []).append(link)
    for parallel in pairs.values():
        for number, link in enumerate(parallel):
            bend = (number - (len(parallel) - 1) / 2) * BEND
            names = {direction.name for direction in link.directions}
            users = [path for path in paths if names & set(path.directions)]
            thick = max(5.0, SEPARATION * len(users) + 2)
            below.append(stroke(_curve(geometry, link, bend, 0), colours["grid"], thick))
            for place, path in enumerate(users):
                shift = (place - (len(users) - 1) / 2) * SEPARATION
                below.append(stroke(_curve(geometry, link, bend, shift), path.colour, 2.4))
            label = link_label(link)
            if labels and label:
                above.append(halo(*_label_place(geometry, link, bend, thick / 2), label, colours))
    return "".join(below) + "".join(above)


def _curve(geometry: _Geometry, link: Link, bend: float, shift: float) -> str:
    """Return the path data of a link: level at both ends, with `bend` for parallel links and `shift` for paths."""
    (x1, y1), (x2, y2) = (geometry.centre_of(node) for node in _ends(link))
    if abs(x1 - x2) < 1:  # within a column: bow out to the right
        return f"M{x1 + shift:.1f} {y1:.1f}Q{x1 + 70 + bend + shift:.1f} {(y1 + y2) / 2:.1f} {x2 + shift:.1f} {y2:.1f}"
    middle = (x1 + x2) / 2
    y1, y2 = y1 + shift, y2 + shift
    return f"M{x1:.1f} {y1:.1f}C{middle:.1f} {y1 + bend:.1f} {middle:.1f} {y2 + bend:.1f} {x2:.1f} {y2:.1f}"


def _label_place(geometry: _Geometry, link: Link, bend: float, half: float) -> tuple[float, float]:
    """Return where a link's label goes: by its outer end, where the curve is level, on the outer side."""
    (x1, y1), (x2, y2) = (geometry.centre_of(node) for node in _ends(link))
    if abs(x1 - x2) < 1:
        return x1 + (70 + bend) / 2, (y1 + y2) / 2
    outwards = abs(y2 - geometry.centre) - abs(y1 - geometry.centre)
    level = abs(outwards) < 1 or abs(y1 - y2) < 1
    share = 0.5 if level else (0.64 if outwards > 0 else 0.36)
    y, inner = ((y1 + y2) / 2, geometry.centre + 1) if level else ((y2, y1) if outwards > 0 else (y1, y2))
    below = y + bend > inner
    return x1 + share * (x2 - x1), y + bend * BULGE + (half + TEXT + 2 if below else -half - 6)


def _ends(link: Link) -> tuple[str, str]:
    return link.directions[0].source, link.directions[0].target


def _legend(paths: Sequence[DrawnPath], top: float, colours: Mapping[str, str]) -> str:
    """Return a line per path with its colour and label."""
    rows = []
    for number, path in enumerate(paths):
        y = top + 22 * number + 8
        rows.append(stroke(f"M{MARGIN - 24} {y:.1f}h22", path.colour, 3))
        rows.append(text(MARGIN + 8, y + 4, f"{path.label}   {path.facts}", colours["ink"], "start"))
    return "".join(rows)
