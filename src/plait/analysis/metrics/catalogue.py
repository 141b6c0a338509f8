"""Look up metrics in the catalogue (`plait.metrics`): units, titles, headings, and those that a study is judged by."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from plait.analysis.labels.study_labels import StudyLabels
from plait.analysis.model import CaseSummary, Summary
from plait.analysis.wording import (
    MISSING,
    count,
    micros,
    number_word,
    percent,
    rate,
    seconds,
    significant,
    size,
)
from plait.metrics import CATALOGUE, COMPARED, columns_beside
from plait.metrics.metric import Metric


@dataclass(frozen=True)
class _Unit:
    """One unit: how a value reads as text, and in which steps an axis shows it."""

    kind: str
    """How scripts of pages format it."""
    show: Callable[[float | None], str]
    """Return a value as text, with its unit."""
    steps: tuple[tuple[float, str], ...] = ((1.0, ""),)
    """Divisors and their units on an axis, the largest first."""

    def scale(self, largest: float) -> tuple[float, str]:
        """Return the divisor and the unit of an axis whose largest value is `largest`."""
        return next((step for step in self.steps if largest >= step[0]), self.steps[-1])


def _number(value: float | None) -> str:
    return MISSING if value is None else significant(value)


FLOW = ".goodput_bps"
"""What the goodput of a flow has behind the name of the flow."""
_NUMBER = _Unit("number", _number)
_FORMS = {"percent": _Unit("percent", percent, ((0.01, "%"),)), "count": _Unit("count", count)}
_ENDINGS = {
    "_per_s": _Unit("count", count, ((1.0, "1/s"),)),
    "_bps": _Unit("rate", rate, ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))),
    "_bytes": _Unit("size", size, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))),
    "_us": _Unit("micros", micros, ((1e6, "s"), (1e3, "ms"))),
    "_s": _Unit("seconds", seconds, ((1.0, "s"), (1e-3, "ms"))),
}
"""By the end of a name; names without a unit are ratios and counts."""
_DATAGRAMS = ("udp_loss_ratio", "iperf3_udp_loss_ratio")
"""They come first only if no connection carried data; otherwise only tables show them."""
_CONNECTED = (
    "retransmits",
    *(
        name
        for name, metric in COMPARED.items()
        if metric.speaks_for and not {"bulk", "udp"} & {*metric.speaks_for}
    ),
)
"""Each of them shows that a connection carried data; retransmissions of a connection without a sample are unknown."""


def metric_of(name: str) -> Metric | None:
    """Return the record of a metric by its name, with or without its owner; None for an unknown name."""
    last = name.rpartition(".")[2]
    numbered = CATALOGUE.get(re.sub(r"\d+", "N", last))
    if last in CATALOGUE or numbered is None:
        return CATALOGUE.get(last)
    number = int("".join(filter(str.isdigit, last)))
    words = f"{number_word(number)} path{'s' * (number != 1)}"
    title, heading = (text.replace("N paths", words) for text in (numbered.title, numbered.heading))
    return replace(numbered, title=title, heading=heading)


def unit_of(name: str) -> _Unit:
    """Return the unit of a metric, or of another field of data: the one that its name ends in."""
    metric = metric_of(name)
    by_form = _FORMS.get(metric.form) if metric is not None else None
    return by_form or next((unit for ending, unit in _ENDINGS.items() if name.endswith(ending)), _NUMBER)


def least_of(name: str) -> float | None:
    """Return the smallest value that a metric can have; None without a bound, as of what a program reports."""
    metric = metric_of(name)
    return metric.least if metric is not None else None


def title_of(name: str, labels: StudyLabels | None = None) -> str:
    """Return what a metric is called; of a flow, a path or a program, with its name or label behind."""
    owner, _, last = name.rpartition(".")
    owner = labels.metric_owner(owner) if labels and owner else owner
    metric = metric_of(name)
    title = metric.title if metric is not None else last
    return f"{title}, {owner}" if owner else title


def heading_of(name: str) -> str:
    """Return the heading of a metric's column."""
    metric = metric_of(name)
    return metric.heading if metric is not None and metric.heading else title_of(name)


def short_heading_of(name: str) -> str:
    """Return the heading of a metric's column where there is little room."""
    metric = metric_of(name)
    return metric.short if metric is not None and metric.short else heading_of(name)


def speaks_for(kind: str) -> str:
    """Return the headline metric of a kind of flow."""
    return next(name for name, metric in COMPARED.items() if kind in metric.speaks_for)


def columns(first: str) -> list[str]:
    """Return the metrics of the columns that only some kinds of traffic have, those of the metric `first` first."""
    order = sorted(COMPARED, key=lambda name: name != first)
    return [column for name in order for column in columns_beside(COMPARED[name])]


def primary_metric(summary: Summary) -> str:
    """Return what the study is about: the first metric that it judges by, else the first compared one; measured."""
    return judged_metrics(summary)[0]


def judged_metrics(summary: Summary) -> tuple[str, ...]:
    """Return the measured metrics that the study is judged by, the most important first; at least one name.

    Without `judge` in the scenario that is the first compared metric that the study measured.
    """
    asked = tuple(name for name in summary.judged if _is_measured(summary, name))
    if asked:
        return asked
    measured = [name for name in COMPARED if _is_measured(summary, name)]
    if not any(_is_measured(summary, name) for name in _CONNECTED):
        measured.sort(key=lambda name: name not in _DATAGRAMS)
    return (measured[0],) if measured else ("goodput_bps",)


def is_of_all_flows(summary: Summary, metric: str) -> bool:
    """Return whether a metric is the goodput of all flows where it is easily taken for that of a few.

    That is so beside the metric by which a study of other flows is judged.
    """
    judged = metric in judged_metrics(summary)
    return metric == "goodput_bps" and not judged and bool(flow_names(summary))


def flow_names(summary: Summary) -> list[str]:
    """Return the names of the flows; nothing when every case has one flow."""
    named = (name for case in summary.cases for name in case.metrics if name.endswith(FLOW))
    return [name.removesuffix(FLOW) for name in dict.fromkeys(named)]


def _is_measured(summary: Summary, metric: str) -> bool:
    return any(mean(case, metric) is not None for case in summary.cases)


def compared_metric(name: str) -> Metric:
    """Return the record of a metric by which cases are compared, with a figure; of an owner with the owner's name.

    Raises:
        KeyError: the metric has no better direction, or does not exist.
    """
    owner = name.rpartition(".")[0]
    metric = metric_of(name)
    if metric is None or metric.better is None:
        raise KeyError(name)
    if name in COMPARED:
        return metric
    prose = f"{metric.noun} of {owner}" if owner else metric.prose
    figure = re.sub(r"[^a-z0-9]+", "-", name.lower())
    return replace(metric, prose=prose, title=title_of(name), figure=figure)


def mean(case: CaseSummary, metric: str) -> float | None:
    """Return the mean of a metric over a case's trials; None where it was not measured."""
    stats = case.metrics.get(metric)
    return None if stats is None else stats.mean
