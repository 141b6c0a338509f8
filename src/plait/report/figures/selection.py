"""Which figures of cases a report has: those that the scenario asks for, else those that follow from what varies.

nothing but choices          cases: boxes, points, means with their intervals
one thing in steps           a line with intervals, too
two things in steps          a heat map, and lines with a panel for each value of the second
several, not all combined    points, in a panel for each thing (a Latin hypercube)
completion times, repeated   their distribution over trials, too
    flows that form groups       what each flow of a group gets, first of all
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from plait.analysis.metrics.catalogue import primary_metric
from plait.analysis.model import Summary
from plait.metrics import COMPARED
from plait.report.figures.kind import Content, FigureKind, FigureRequest
from plait.report.figures.kinds.cases import CASES
from plait.report.figures.kinds.distribution import DELAYS, DISTRIBUTION
from plait.report.figures.kinds.groups import GROUPS
from plait.report.figures.kinds.heat_map import HEAT_MAP
from plait.report.figures.kinds.intervals import INTERVALS
from plait.report.figures.kinds.over_time import OVER_TIME
from plait.report.figures.kinds.scatter import SCATTER
from plait.report.figures.kinds.sweep import LINES, sweep_of
from plait.report.figures.networks import networks, selected
from plait.report.representatives import Representative
from plait.results.read import StudyData

BY_CASE: tuple[FigureKind, ...] = (GROUPS, INTERVALS, HEAT_MAP, LINES, SCATTER, CASES, DISTRIBUTION)
"""The kinds that follow from what varies, in the order in which figures of one metric stand."""
OF_TRIALS: tuple[FigureKind, ...] = (DELAYS, OVER_TIME)
"""The kinds that show single trials; every study has them."""
KINDS = {kind.name: kind for kind in (*BY_CASE, *OF_TRIALS)}


def content_of(study: StudyData, summary: Summary, shown: Sequence[Representative] = ()) -> Content:
    """Return what the figures of a study can show."""
    return Content(study.cases, summary, tuple(shown), study.published)


def wanted(study: StudyData, summary: Summary) -> list[FigureRequest]:
    """Return the figures of cases in the order in which they are shown."""
    content = content_of(study, summary)
    asked = asked_for(study)
    if asked:
        return [resolved(request, content) for request in asked]
    groups = selected(GROUPS, content)
    ranks = {metric: rank for rank, (_, metric) in enumerate(content.measured())}
    further = [figure for kind in BY_CASE if kind is not GROUPS for figure in selected(kind, content)]
    return [*groups, *sorted(further, key=lambda figure: ranks.get(figure.metric, len(ranks)))]


def of_trials(content: Content) -> list[FigureRequest]:
    """Return the figures that show single trials."""
    return [figure for kind in OF_TRIALS for figure in kind.selected(content)]


def asked_for(study: StudyData) -> list[FigureRequest]:
    """Return what the scenario asks for; nothing for a study whose scenario has no figures."""
    scenario = study.about.scenario
    asked_figures = scenario.get("figures") if isinstance(scenario, dict) else None
    try:
        asked = TypeAdapter(list[FigureRequest]).validate_python(asked_figures or [])
    except ValidationError:
        asked = []
    # Of a later version's figures, those that follow from what varies are right, too.
    return asked if all(figure.kind in {"", *KINDS} for figure in asked) else []


def resolved(asked: FigureRequest, content: Content) -> FigureRequest:
    """Return what was asked for with full names, and what it leaves open filled in from what varies."""
    names = list(dict.fromkeys(key for case in content.rows for key in case.settings))

    def full(name: str | None) -> str | None:
        ends = [key for key in names if key == name or key.endswith(f".{name}")]
        return name if name in names else ends[0] if len(ends) == 1 else None

    figure = replace(
        asked,
        metric=asked.metric or ("goodput" if asked.kind == "over-time" else primary_metric(content.summary)),
        x=full(asked.x),
        y=full(asked.y),
        facets=full(asked.facets),
        color=full(asked.color),
        only={full(name) or name: value for name, value in asked.only.items()},
        plain=bool(asked.metric) and asked.metric not in COMPARED,
    )
    part = networks(content.part(figure), figure)[0][1]
    if not asked.kind:
        sweeps = sweep_of(part.rows, figure.x) is not None or asked.facets is not None
        kind = "heat-map" if figure.y is not None else "line" if sweeps else "cases"
        figure = replace(figure, kind=kind)
    return KINDS[figure.kind].completed(figure, part)
