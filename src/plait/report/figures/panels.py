"""What is drawn over time of each representative trial, and the scales that trials which are compared share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.report.figures.over_time import Frame, Panel, frame_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.report.representatives import Representative

SIDE_BY_SIDE = 6
"""Cases in one figure over time; the page shows more."""


def panel_of(one: Representative) -> Panel:
    """Return what is drawn over time of a representative."""
    return Panel(one.label, one.series, one.ideal_bps)


def frames_of(shown: Sequence[Representative]) -> list[Frame]:
    """Return the frame of each representative: the same for those that are compared with each other."""
    groups = {one.group: [panel_of(other) for other in shown if other.group == one.group] for one in shown}
    frames = {group: frame_of(panels) for group, panels in groups.items()}
    return [frames[one.group] for one in shown]
