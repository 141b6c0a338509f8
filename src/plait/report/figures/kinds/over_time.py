"""The figure over time: one kind of chart of the representative trials of several cases, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plait.analysis.compare.factors import stratum
from plait.report.figures.kind import FigureKind, FigureRequest, number
from plait.report.figures.kinds.cases import SCHEMA
from plait.report.figures.kinds.over_time_chart import (
    KINDS,
    Frame,
    Panel,
    chart,
    frame_of,
    lines,
)
from plait.report.figures.kinds.over_time_key import key_of
from plait.report.figures.shown_labels import few_of, note_of, shown_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.report.figures.kind import Content, Spec, TableRows
    from plait.report.representatives import Representative

SIDE_BY_SIDE = 6
"""Cases in one figure over time; the page shows more."""


_COLUMNS = {
    "goodput": ("goodput_bps", 1.0),
    "rtt": ("rtt_us", 1e3),
    "cwnd": ("cwnd_segments", 1.0),
    "queue": ("queue_bytes", 1e3),
}
"""By kind of chart: the column of its data, and what its unit is in the chart's."""


class OverTimeFigure(FigureKind):
    """A panel for each case; every study has one of each kind of chart (the metric of these figures)."""

    name = "over-time"
    divides = False

    def selected(self, content: Content) -> list[FigureRequest]:
        """Return a figure of each kind of chart."""
        return (
            [FigureRequest(f"{kind}-over-time", self.name, kind) for kind in KINDS] if content.shown else []
        )

    def heading(self, wanted: FigureRequest) -> str:  # noqa: ARG002 - panels have titles
        """Return nothing: panels have titles."""
        return ""

    def panels(self, wanted: FigureRequest, content: Content) -> list[Spec]:
        """Return a panel for each of some cases, on the same scales, with one key."""
        shown = few_of(content.shown, SIDE_BY_SIDE)
        drawn = [panel_of(representative) for representative in shown]
        key = key_of(drawn, wanted.metric)
        strata = {case.name: stratum(case, content.summary.strata) for case in content.rows}
        networks = [strata[representative.case] for representative in shown]
        frames = {
            network: frame_of([panel for panel, own in zip(drawn, networks, strict=True) if own == network])
            for network in networks
        }
        names = shown_labels(shown, content)
        panels = []
        for representative, panel, network in zip(shown, drawn, networks, strict=True):
            spec = chart(panel, wanted.metric, frames[network], legend=True, key=key)
            if spec is not None:
                spec["layer"][1]["encoding"]["y"]["axis"]["title"] = spec["title"]
                spec["encoding"]["x"]["axis"] = {"title": "Time, s", "tickCount": 6}
                title = f"{names.title} {names.of[representative.case]}".strip()
                panels.append({"$schema": SCHEMA, **spec, "title": title})
        return panels

    def note(self, wanted: FigureRequest, content: Content) -> str:  # noqa: ARG002 - it is the same for all kinds
        """Return which part of the cases is shown, and what these share."""
        return note_of(few_of(content.shown, SIDE_BY_SIDE), content)

    def table(self, wanted: FigureRequest, content: Content) -> TableRows:
        """Return the points of every line."""
        column, factor = _COLUMNS[wanted.metric]
        rows: TableRows = [["case", "trial", "t_s", "series", column]]
        for representative in few_of(content.shown, SIDE_BY_SIDE):
            panel = panel_of(representative)
            if representative.by_name is not None:
                panel = replace(panel, series=representative.by_name)
            for line in lines(panel, wanted.metric):
                series = line.label.replace(" \N{RIGHTWARDS ARROW} ", "->")
                rows += [
                    [representative.case, representative.index, number(t), series, number(v * factor)]
                    for t, v in line.points
                ]
        return rows

    def caption(self, wanted: FigureRequest, content: Content) -> str:  # noqa: ARG002 - panels have titles
        """Return nothing: panels have titles."""
        return ""


OVER_TIME = OverTimeFigure()


def panel_of(representative: Representative) -> Panel:
    """Return what is drawn over time of a representative."""
    return Panel(representative.label, representative.series, representative.ideal_bps)


def frames_of(shown: Sequence[Representative]) -> list[Frame]:
    """Return the frame of each representative: the same for those that are compared with each other."""
    groups = {
        representative.group: [panel_of(other) for other in shown if other.group == representative.group]
        for representative in shown
    }
    frames = {group: frame_of(panels) for group, panels in groups.items()}
    return [frames[representative.group] for representative in shown]
