"""All figures of a study, by the name of their file below figures/ (without its ending)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.analysis.judged import JUDGED, primary_metric
from plait.analysis.wording import micros, plain, rate
from plait.report.cases_chart import SCHEMA, cases_spec
from plait.report.delay_chart import delay_figures
from plait.report.group_chart import FIGURE, group_spec
from plait.report.layout import distinct_paths
from plait.report.network import DrawnPath, draw, link_label
from plait.report.sweep_chart import sweep_of, sweep_spec
from plait.report.theme import LIGHT, PATHS
from plait.report.time_charts import KINDS, Frame, Panel, chart, frame_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.analysis.model import Summary
    from plait.report.representatives import Representative
    from plait.report.study import StudyData

Spec = dict[str, Any]

SIDE_BY_SIDE = 6
"""Cases in one figure over time; the page shows more."""
NAMES = {
    "goodput": "goodput-over-time",
    "rtt": "rtt-over-time",
    "cwnd": "cwnd-over-time",
    "queue": "queue-over-time",
}


def static_figures(
    study: StudyData, summary: Summary, shown: Sequence[Representative]
) -> dict[str, Spec | str]:
    """Return the figures that are kept as files: Vega-Lite specifications, and the network as SVG."""
    found: dict[str, Spec | str] = {}
    drawn = most_paths(shown)
    if drawn is not None:
        found["network"] = draw(drawn.plan, coloured_paths(drawn, LIGHT), LIGHT, legend=True)
    found |= case_figures(study, summary)
    found |= delay_figures(shown)
    panels = [panel_of(one) for one in shown[:SIDE_BY_SIDE]]
    frames = frames_of(shown)[:SIDE_BY_SIDE]
    for kind in KINDS:
        spec = side_by_side(panels, kind, frames)
        if spec is not None:
            found[NAMES[kind]] = spec
    return found


def case_figures(study: StudyData, summary: Summary) -> dict[str, Spec]:
    """Return the figures over cases: goodput, completion time when there were transfers; for a sweep, against it."""
    found = {}
    grouped = group_spec(study.cases, summary.cases, study.about.published)
    if grouped is not None:
        found[FIGURE] = grouped
    sweep = sweep_of(summary.cases)
    figures = [(judged.figure, metric) for metric, judged in JUDGED.items()]
    for name, metric in sorted(figures, key=lambda entry: entry[1] != primary_metric(summary)):
        if sweep is not None and (spec := sweep_spec(study.cases, summary.cases, metric, sweep)) is not None:
            found[f"{name}-sweep"] = spec
        published = study.about.published if metric == "goodput_bps" else None
        if (spec := cases_spec(study.cases, summary.cases, metric, published)) is not None:
            found[name] = spec
    return found


def panel_of(one: Representative) -> Panel:
    """Return what is drawn over time of a representative."""
    return Panel(one.label, one.series, one.ideal_bps)


def frames_of(shown: Sequence[Representative]) -> list[Frame]:
    """Return the frame of each representative: the same for those that are compared with each other."""
    groups = {one.group: [panel_of(other) for other in shown if other.group == one.group] for one in shown}
    frames = {group: frame_of(panels) for group, panels in groups.items()}
    return [frames[one.group] for one in shown]


def side_by_side(panels: Sequence[Panel], kind: str, frames: Sequence[Frame]) -> Spec | None:
    """Return one kind of chart for several cases side by side; None when none has it."""
    charts = []
    for panel, frame in zip(panels, frames, strict=True):
        spec = chart(panel, kind, frame, legend=True)
        if spec is not None:
            charts.append({**spec, "title": {"text": panel.label, "subtitle": spec["title"]}})
    if not charts:
        return None
    return {
        "$schema": SCHEMA,
        "concat": charts,
        "columns": 2 if len(charts) in (2, 4) else 3,
        "spacing": {"row": 24, "column": 28},
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent"}},
    }


def most_paths(shown: Sequence[Representative]) -> Representative | None:
    """Return the representative whose flows use most paths: its drawing shows those of the others too."""
    return max(shown, key=lambda one: len(distinct_paths(one.plan)), default=None)


def coloured_paths(one: Representative, colours: Mapping[str, str]) -> list[DrawnPath]:
    """Return the paths of a plan in the colours that their subflows have in the charts."""
    by_path = {series.path: series.colour for series in one.series.subflows}
    several = len(one.plan.flows) > 1
    found = []
    for number, (_, path) in enumerate(distinct_paths(one.plan)):
        # With several flows the colours of the charts tell flows apart, and paths have none of their own.
        token = "muted" if several else f"path{by_path.get(path.name, number) % PATHS}"
        facts = [
            plain(rate(path.rate_bps)) if path.rate_bps is not None else "",
            f"base RTT {plain(micros(path.base_rtt_us))}",
        ]
        found.append(
            DrawnPath(
                directions=path.forward,
                colour=colours[token],
                label=path.name,
                facts=", ".join(fact for fact in facts if fact),
            )
        )
    return found


def links_differ(shown: Sequence[Representative]) -> bool:
    """Return whether the links are not the same in all cases: then the drawing is that of one case."""
    return len({tuple(link_label(link) for link in one.plan.links) for one in shown}) > 1
