"""What a kind of figure is: when a report has it, its panels, its data as a table, and the caption of its marks.

Each kind is one object in a file of its own; `selection` lists them, and all else iterates over them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from plait.analysis.metrics.catalogue import compared_metric, judged_metrics
from plait.metrics import COMPARED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import CaseSummary, Summary
    from plait.analysis.published import Published
    from plait.analysis.rows import CaseRows
    from plait.report.representatives import Representative

Spec = dict[str, Any]
"""A Vega-Lite specification whose colours are tokens, see `plait.report.render.theme`."""
TableRows = list[list[Any]]
KindName = Literal[
    "intervals", "line", "heat-map", "scatter", "cases", "distribution", "over-time", "groups", "delays"
]


@dataclass(frozen=True)
class FigureRequest:
    """One figure: the name of its files, and what it shows."""

    name: str
    kind: KindName
    metric: str
    x: str | None = None
    """The settings along the axes, by their full names."""
    y: str | None = None
    facets: str | None = None
    color: str | None = None
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    author_text: str = ""
    """The `caption` that the scenario's author gave it."""
    column: bool = False
    """Its files are as wide as a column of a paper."""
    style: str | None = None
    """The publisher whose widths it has; None: those of the report."""
    plain: bool = False
    """A heat map of the metric itself, not of its ratio to the case compared with."""

    def shows(self, settings: dict[str, Any]) -> bool:
        """Return whether a case with these settings is part of it."""
        return all(str(settings.get(name)) in values for name, values in self.only)


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
        return any(row.metrics.get(metric) is not None for case in self.rows for row in case.rows)

    def part(self, wanted: FigureRequest) -> Content:
        """Return the cases that a figure shows."""
        return self.of({case.name for case in self.rows if wanted.shows(case.settings)})

    def of(self, names: set[str]) -> Content:
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


class FigureKind(ABC):
    """One kind of figure."""

    name: KindName
    divides = True
    """Different networks have panels of their own; false where it shows single trials."""

    def selected(self, content: Content) -> list[FigureRequest]:  # noqa: ARG002 - of a kind that only scenarios ask for
        """Return the figures of this kind that follow from what varies."""
        return []

    def completed(self, wanted: FigureRequest, content: Content) -> FigureRequest:  # noqa: ARG002 - nothing is left open
        """Return a figure that a scenario asks for, with what it leaves open filled in from what varies."""
        return wanted

    def heading(self, wanted: FigureRequest) -> str:
        """Return the metric to name above the figure; nothing where its panels have titles."""
        return wanted.metric

    def note(self, wanted: FigureRequest, content: Content) -> str:  # noqa: ARG002 - most need no words
        """Return what a file says above its panels: what all cases have that it shows."""
        return ""

    @abstractmethod
    def panels(self, wanted: FigureRequest, content: Content) -> list[Spec]:
        """Return the panels, left to right; none when nothing was measured."""

    @abstractmethod
    def table(self, wanted: FigureRequest, content: Content) -> TableRows:
        """Return the data behind the figure in base units, one observation a row, below a row of names."""

    @abstractmethod
    def caption(self, wanted: FigureRequest, content: Content) -> str:
        """Return what the marks of the figure mean; `study_figures` adds the other words."""


def number(value: float | None) -> str:
    """Return a number for data with nine digits, more than any of them is known to; nothing for None and NaN."""
    return "" if value is None or math.isnan(value) else f"{value:.9g}"
