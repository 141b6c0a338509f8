"""A kind of figure: when a report has it, its panels, its data as a table, and the caption of its marks.

Each kind is one object in a file of its own below `kinds`; `selection` lists them, and all else iterates over them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict
from pydantic.dataclasses import dataclass as checked_dataclass

from plait.analysis.metrics.catalogue import compared_metric, judged_metrics
from plait.analysis.model import CaseSummary, Summary
from plait.analysis.published import Published
from plait.analysis.rows import CaseRows
from plait.metrics import COMPARED
from plait.report.representatives import Representative

Spec = dict[str, Any]
"""A Vega-Lite specification whose colours are tokens, see `plait.report.render.theme`."""
TableRows = list[list[Any]]


_Open = Annotated[str, BeforeValidator(lambda text: "" if text is None else text)]
"""A text that is empty while `selection.resolved` has not filled it in."""


@checked_dataclass(frozen=True, config=ConfigDict(extra="ignore"))
class FigureRequest:
    """One figure: the name of its files, and what it shows; as an entry of `figures` in study.json asks for it."""

    name: str
    kind: _Open = ""
    metric: _Open = ""
    x: str | None = None
    """The settings along the axes, by their full names."""
    y: str | None = None
    facets: str | None = None
    color: str | None = None
    only: dict[str, Any] = field(default_factory=dict)
    caption: str = ""
    """The text of the scenario's author."""
    width: Literal["column", "page"] = "page"
    style: str | None = None
    """The publisher whose widths it has; None: those of the report."""
    plain: bool = False
    """A heat map of the metric itself, not of its ratio to the case compared with."""

    def shows(self, settings: dict[str, Any]) -> bool:
        """Return whether a case with these settings is part of it."""
        return all(
            str(settings.get(name)) in map(str, value if isinstance(value, list) else [value])
            for name, value in self.only.items()
        )


@dataclass(frozen=True)
class Content:
    """The cases that figures show, with their trials and summaries."""

    rows: tuple[CaseRows, ...]
    summary: Summary
    shown: tuple[Representative, ...]
    """The trials that represent their cases in figures over time."""
    published: Published
    is_part: bool = False
    """It is one network of several, whose panels have one key."""

    @property
    def cases(self) -> Sequence[CaseSummary]:
        """The summaries of the cases."""
        return self.summary.cases

    def measured(self) -> list[tuple[str, str]]:
        """Return file name and name of each compared metric that any trial has, the primary metric first."""
        first = judged_metrics(self.summary)
        metrics = [name for name in dict.fromkeys((*first, *COMPARED)) if self.has(name)]
        return [(compared_metric(name).figure, name) for name in metrics]

    def has(self, metric: str) -> bool:
        """Return whether any trial has the metric."""
        return any(case.measured(metric) for case in self.rows)

    def part(self, wanted: FigureRequest) -> Content:
        """Return the cases that a figure shows."""
        return self.with_names({case.name for case in self.rows if wanted.shows(case.settings)})

    def with_names(self, names: set[str]) -> Content:
        """Return the cases of these names."""
        rows = tuple(case for case in self.rows if case.name in names)
        cases = tuple(case for case in self.summary.cases if case.name in names)
        compared = tuple(
            comparison
            for comparison in self.summary.comparisons
            if {comparison.case, comparison.baseline} <= names
        )
        summary = self.summary.model_copy(update={"cases": cases, "comparisons": compared})
        return Content(
            rows, summary, tuple(drawn for drawn in self.shown if drawn.case in names), self.published
        )


@dataclass(frozen=True)
class FigureKind:
    """One kind of figure: what `selection` needs to know of it, all in a file of its own."""

    name: str
    panels: Callable[[FigureRequest, Content], list[Spec]]
    """The panels, left to right; none when nothing was measured."""
    table: Callable[[FigureRequest, Content], TableRows]
    """The data behind the figure in base units, one observation a row, below a row of names."""
    caption: Callable[[FigureRequest, Content], str]
    """The meaning of the figure's marks; `study_figures` adds the other words."""
    selected: Callable[[Content], list[FigureRequest]]
    """The figures of this kind that follow from what varies."""
    completed: Callable[[FigureRequest, Content], FigureRequest] = lambda request, _: request
    """A figure that a scenario asks for, with what it leaves open filled in from what varies."""
    note: Callable[[FigureRequest, Content], str] = lambda _, __: ""
    """The note of a file above its panels: the settings that all its cases share."""
    draws_intervals: bool = False
    """It draws the intervals of means, as far as `case_values.shown_ends`."""
    shows_trials: bool = False
    """It shows single trials; otherwise, different networks have panels of their own."""


def number(value: float | None) -> str:
    """Return a number for data with nine digits, more than any of them is known to; nothing for None and NaN."""
    return "" if value is None or math.isnan(value) else f"{value:.9g}"
