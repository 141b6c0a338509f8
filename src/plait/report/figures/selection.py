"""Which figures of cases a report has: those that the scenario asks for, else those that follow from what varies.

nothing but choices          cases: boxes, points, means with their intervals
one thing in steps           a line with intervals, too
two things in steps          a heat map, and lines with a panel for each value of the second
several, not all combined    points, in a panel for each thing (a Latin hypercube)
completion times, repeated   their distribution over trials, too
    flows that form groups       what each flow of a group gets, first of all
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from plait.analysis.metrics.catalogue import COMPARED, primary_metric
from plait.report.figures.axes import factors, steps
from plait.report.figures.case_values import cells_of
from plait.report.figures.ecdf import distributed
from plait.report.figures.groups import FIGURE, groups_of
from plait.report.figures.heat_map import grid_of
from plait.report.figures.scatter import axes_of, points_of
from plait.report.figures.sweep import sweep_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import Summary
    from plait.analysis.rows import CaseRows
    from plait.results.read import StudyData

Kind = Literal["line", "heat-map", "scatter", "cases", "distribution", "over-time", "groups"]
DISTRIBUTED = ("completion_s", "page_load_s")
MOST_FACETS = 6


class Asked(BaseModel):
    """One entry of `figures` in study.json's scenario, as plait.scenario.fields.figures wrote it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str
    kind: Kind | None = None
    metric: str | None = None
    x: str | None = None
    y: str | None = None
    facets: str | None = None
    only: dict[str, Any] = {}
    caption: str = ""
    width: Literal["column", "page"] = "page"


@dataclass(frozen=True)
class Wanted:
    """One figure: the name of its files, and what it shows."""

    name: str
    kind: Kind
    metric: str
    x: str | None = None
    """The settings along the axes, by their full names."""
    y: str | None = None
    facets: str | None = None
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    caption: str = ""
    column: bool = False
    """Its files are as wide as a column of a paper."""
    plain: bool = False
    """A heat map of the metric itself, not of its ratio to the case compared with."""

    def shows(self, settings: dict[str, Any]) -> bool:
        """Return whether a case with these settings is part of it."""
        return all(str(settings.get(name)) in values for name, values in self.only)


def wanted(study: StudyData, summary: Summary) -> list[Wanted]:
    """Return the figures of cases in the order in which they are shown."""
    asked = asked_for(study)
    if asked:
        return [_resolved(one, study, summary) for one in asked]
    grouped = groups_of(summary.cases)
    found = [Wanted(FIGURE, "groups", "goodput_bps")] if grouped else []
    metrics = [
        (record.figure, metric) for metric, record in COMPARED.items() if _measured(study.cases, metric)
    ]
    for name, metric in sorted(metrics, key=lambda entry: entry[1] != primary_metric(summary)):
        found += _chosen(name, metric, study.cases, summary)
    return found


def asked_for(study: StudyData) -> list[Asked]:
    """Return what the scenario asks for; nothing for a study whose scenario has no figures."""
    scenario = study.about.scenario
    given = scenario.get("figures") if isinstance(scenario, dict) else None
    try:
        return TypeAdapter(list[Asked]).validate_python(given or [])
    except ValidationError:
        return []  # a later version's figures: those that follow from what varies are right, too


def _chosen(name: str, metric: str, cases: Sequence[CaseRows], summary: Summary) -> list[Wanted]:
    found = []
    steep = steps(cases)
    grid = grid_of(steep)
    if grid is not None and cells_of(summary, metric, grid) is not None:
        x, y = grid
        found.append(Wanted(f"{name}-heat-map", "heat-map", metric, x.setting, y.setting))
        if y.steps <= MOST_FACETS:
            found.append(Wanted(f"{name}-sweep", "line", metric, x.setting, facets=y.setting))
    elif (sweep := sweep_of(cases)) is not None:
        found.append(Wanted(f"{name}-sweep", "line", metric, sweep.setting))
    elif len(axes_of(cases)) > 1 and points_of(summary, metric) is not None:
        found.append(Wanted(f"{name}-scatter", "scatter", metric))
    found.append(Wanted(name, "cases", metric))
    if metric in DISTRIBUTED and distributed(cases, metric):
        found.append(Wanted(f"{name}-distribution", "distribution", metric))
    return found


def _resolved(asked: Asked, study: StudyData, summary: Summary) -> Wanted:
    """Return what was asked for with full names, and what it leaves open filled in from what varies."""
    known = list(dict.fromkeys(key for case in study.cases for key in case.settings))

    def full(name: str | None) -> str | None:
        ends = [key for key in known if key == name or key.endswith(f".{name}")]
        return name if name in known else ends[0] if len(ends) == 1 else None

    only = tuple(
        (full(name) or name, tuple(str(one) for one in (value if isinstance(value, list) else [value])))
        for name, value in asked.only.items()
    )
    part = Wanted(asked.name, asked.kind or "cases", asked.metric or primary_metric(summary), only=only)
    cases = [case for case in study.cases if part.shows(case.settings)]
    x, y, kind = full(asked.x), full(asked.y), asked.kind
    grid = grid_of(factors(cases))
    if kind is None:
        sweeps = sweep_of(cases, x) is not None or asked.facets is not None
        kind = "heat-map" if y is not None else "line" if sweeps else "cases"
    if kind == "heat-map" and grid is not None:
        rest = [one.setting for one in grid]
        x = x or next((one for one in rest if one != y), None)
        y = y or next((one for one in rest if one != x), None)
    elif kind == "line" and x is None:
        sweep = sweep_of(cases)
        left = [one.setting for one in steps(cases) if one.setting != full(asked.facets)]
        x = sweep.setting if sweep is not None and asked.facets is None else next(iter(left), None)
    return Wanted(
        asked.name,
        kind,
        asked.metric or ("goodput" if kind == "over-time" else primary_metric(summary)),
        x,
        y,
        full(asked.facets),
        only,
        asked.caption,
        column=asked.width == "column",
        plain=asked.metric is not None and asked.metric not in COMPARED,
    )


def _measured(cases: Sequence[CaseRows], metric: str) -> bool:
    return any(row.metrics.get(metric) is not None for case in cases for row in case.rows)
