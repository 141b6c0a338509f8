"""The sections of the page that show representative trials: the network with its paths, and charts over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from plait.analysis.metrics.catalogue import compared_metric, primary_metric
from plait.analysis.model import Summary
from plait.plan.network.ifnames import renamed_interfaces
from plait.report.drawing.network import coloured_paths, draw, links_differ, most_paths
from plait.report.figures.kinds.over_time import frames_of
from plait.report.figures.kinds.over_time_chart import KINDS, chart
from plait.report.page.sections import explanation
from plait.report.page.template import fill
from plait.report.render.theme import LIGHT, PATHS
from plait.report.representatives import MOST_TRIALS, Representative

OPEN_PANELS = 4
"""Cases over time that are open at first; buttons open the others."""
MOST_INTERFACES = 12
"""Nodes whose interfaces have shortened names; the plan has all."""


def network(shown: Sequence[Representative]) -> Markup | str:
    """Return the section with the drawing of the network and the key to its colours."""
    drawn = most_paths(shown)
    if drawn is None:
        return ""
    colours = {name: f"var(--{name})" for name in LIGHT}
    paths = coloured_paths(drawn.plan, drawn.series, colours)
    svg = draw(drawn.plan, paths, colours, legend=False, called=drawn.labels)
    return fill(
        "network",
        case=drawn.label if links_differ(shown) else "",
        drawing=Markup(svg),  # noqa: S704 - drawing.svg escapes its texts
        paths=paths,
        interfaces=" ".join(f"{line}." for line in renamed_interfaces(drawn.plan)[:MOST_INTERFACES]),
    )


def over_time(
    shown: Sequence[Representative], summary: Summary
) -> tuple[Markup | str, dict[str, dict[str, Any]]]:
    """Return the section with a panel of charts per case, all on the same axes, and the charts by name."""
    if not shown:
        return "", {}
    figures: dict[str, dict[str, Any]] = {}
    panels = []
    frames = frames_of(shown)
    for number, (trial, frame) in enumerate(zip(shown, frames, strict=True)):
        charts = {
            f"{kind}-{number}": chart(trial.series, kind, frame, legend=kind == "queue" and _needs_key(trial))
            for kind in KINDS
        }
        drawn = {name: spec for name, spec in charts.items() if spec is not None}
        figures |= drawn
        panels.append(_panel(trial, list(drawn), is_hidden=number >= OPEN_PANELS))
    axes = {(trial.group, frame.seconds) for trial, frame in zip(shown, frames, strict=True)}
    has_short = len(axes) > len({trial.group for trial in shown})  # of trials that are compared
    note = _note(shown, summary, has_short=has_short)
    return fill("over_time", note=note, has_buttons=len(shown) > OPEN_PANELS, panels=panels), figures


def _panel(trial: Representative, charts: Sequence[str], *, is_hidden: bool) -> dict[str, Any]:
    """Return what the template shows of one case."""
    has_key = len(trial.plan.flows) > 1 or not trial.plan.links  # without links, nothing is drawn
    rank = "median" if trial.value is not None else "first"
    place = f", the {rank} of {trial.of}" if trial.of > 1 else ""
    return {
        "label": trial.label,
        "trial": f"trial {trial.index:03d}{place}",
        "key": [(line.colour % PATHS, line.label) for line in trial.series.subflows] if has_key else [],
        "charts": charts,
        "left_out": trial.series.omitted,
        "sampled": trial.plan.sampled_flows,
        "explanation": explanation(trial.explained),
        "is_hidden": is_hidden,
    }


def _note(shown: Sequence[Representative], summary: Summary, *, has_short: bool) -> str:
    """Return what the charts show."""
    scales = "on the same scales"
    if len({trial.group for trial in shown}) > 1:
        scales += " where cases are compared"
    if has_short:
        scales += "; a trial below a third of the longest one's time has its own time axis"
    alone = all(len(trial.plan.flows) == 1 and trial.plan.links for trial in shown)
    hint = " Colours are those of the paths in the drawing." if alone else ""
    choice = (
        f"These are {len(shown)} of {len(summary.cases)} cases: the first one, and others between the extremes of "
        f"the {compared_metric(primary_metric(summary)).noun}. "
        if len(summary.cases) > len(shown) == MOST_TRIALS
        else ""
    )
    without = ", or its first one where none has a result" if any(t.value is None for t in shown) else ""
    return (
        f"{choice}Each case shows its trial with the median result{without}, {scales}. "
        f"Goodput is payload that arrived in order, stacked by subflow, in bins of {bin_widths(shown)}: a lost segment "
        "shows as a gap, followed by a peak with all bytes that waited for it. Round-trip time (smoothed) and "
        f"congestion window are the sender's. Queues wait for the rate of a link.{hint}"
    )


def _needs_key(trial: Representative) -> bool:
    """Return whether colours of paths do not identify the queues: paths share a queue, or a path has several."""
    colours = [queue.colour for queue in trial.series.queues]
    return len(trial.plan.flows) > 1 or None in colours or len(set(colours)) < len(colours)


def bin_widths(shown: Sequence[Representative]) -> str:
    """Return the width of the goodput bins in words."""
    widths = sorted({trial.series.bin_s for trial in shown if trial.series.bin_s})
    texts = [f"{width:g} s" for width in widths]
    return texts[0] if len(texts) == 1 else f"{texts[0]} to {texts[-1]}" if texts else "one sample"
