"""The paths that a drawing of the network colours, and which case it draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.wording import micros, plain, rate
from plait.report.drawing.layout import distinct_paths
from plait.report.drawing.link_labels import LinkLabels
from plait.report.drawing.network import DrawnPath
from plait.report.render.theme import PATHS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.report.representatives import Representative


def most_paths(shown: Sequence[Representative]) -> Representative | None:
    """Return the representative whose flows use most paths: its drawing shows those of the others too."""
    return max(shown, key=lambda case: len(distinct_paths(case.plan)), default=None)


def coloured_paths(representative: Representative, colours: Mapping[str, str]) -> list[DrawnPath]:
    """Return the paths of a plan in the colours that their subflows have in the charts."""
    by_path = {series.path: series.colour for series in representative.series.subflows}
    several = len(representative.plan.flows) > 1
    paths = []
    for number, (_, path) in enumerate(distinct_paths(representative.plan)):
        # With several flows the colours of the charts distinguish flows, and paths have none of their own.
        token = "muted" if several else f"path{by_path.get(path.name, number) % PATHS}"
        facts = [
            plain(rate(path.rate_bps)) if path.rate_bps is not None else "",
            f"base RTT {plain(micros(path.base_rtt_us))}",
        ]
        paths.append(
            DrawnPath(
                directions=path.forward,
                colour=colours[token],
                label=path.name,
                facts=", ".join(fact for fact in facts if fact),
            )
        )
    return paths


def links_differ(shown: Sequence[Representative]) -> bool:
    """Return whether the links are not the same in all cases: then the drawing is that of one case."""
    labels = set()
    for case in shown:
        of = LinkLabels(case.plan)
        labels.add(tuple(of.label(link) for link in case.plan.links))
    return len(labels) > 1
