"""The tables of the page: of cases, of flows, of two crossed settings, and of how flows were split over their paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from plait.analysis.compare.factors import by_stratum
from plait.analysis.labels.cases import case_label, labels
from plait.analysis.metrics.catalogue import heading_of, mean, primary_metric, title_of
from plait.analysis.model import CaseSummary, Summary
from plait.analysis.values import show
from plait.analysis.wording import MISSING, capital, short_name, value_words
from plait.report.page.template import fill
from plait.report.table import Column, factors_of, flow_columns, value_columns

LEAST_CROSSED = 3
"""Fewer choices of either setting are read more easily in the table of cases."""
Crossing = dict[tuple[str, str], "CaseSummary"]
"""Cases by their choices of two settings."""
_SCHEDULING = re.compile(r"scheduler|capped")
"""In the name of what varies."""
_SPLIT_METRICS = (
    "goodput_bps",
    "efficiency",
    "of_cap",
    "path_share_max",
    "path_share_window_max",
    "observed_1path_share",
    "observed_2path_share",
    "path_switches_per_s",
    "path_run_max_bytes",
    "reinjected_bytes",
    "duplicate_bytes",
    "out_of_order_max_bytes",
    "out_of_order_mean_bytes",
    "rtt_median_us",
    "rtt_max_us",
)
_SPLIT_NOTE = (
    "Means over trials; of several flows the worst. A second is any second from the first on; its bytes are all "
    "bytes sent on the paths, retransmissions included. Observed is the largest part of the stream that an observer "
    "of the best path, or of the best two, holds."
)


def cases(summary: Summary) -> Markup:
    """Return the section with a table of the cases of each network, without columns in which nothing was measured."""
    titled = {name.replace("_", " ") for name in summary.strata}
    columns = [
        column
        for column in (*factors_of(summary), *value_columns(summary, "page"))
        if not (column.is_factor and column.heading in titled)
    ]
    places = {case.name: place for place, case in enumerate(summary.cases)}
    tables = []
    for levels, members in by_stratum(summary.cases, summary.strata).items():
        part = [column.in_order([places[case.name] for case in members]) for column in columns]
        tables.append((", ".join(levels), [column for column in part if not column.is_empty]))
    note = (
        "Means over trials with their 95 % intervals; minimum and maximum below. A dash means not measured."
    )
    return fill("table", id="cases", title="Cases", note=note, tables=tables)


def flows(summary: Summary) -> Markup | str:
    """Return the section with the goodput of each flow: a row per case, or per flow if these are more; or nothing."""
    columns = flow_columns(summary)
    if not columns:
        return ""
    if len(summary.cases) > len(columns):
        columns = [*factors_of(summary), *columns]
    else:
        names = labels(summary.cases)
        by_flow = Column("flow", "flow", tuple(column.title for column in columns), is_factor=True)
        rows = zip(*(column.cells for column in columns), strict=True)
        columns = [
            by_flow,
            *(
                Column(case.name, "", cells, title=names[case.name])
                for case, cells in zip(summary.cases, rows, strict=True)
            ),
        ]
    note = "Goodput of each flow in each case."
    return fill("table", id="flows", title="Flows", note=note, tables=[("", columns)])


def split(summary: Summary) -> Markup | str:
    """Return the section; nothing when no case differs from another in its scheduling, or nothing was measured."""
    scheduling = [
        {key: value for key, value in case.settings.items() if _SCHEDULING.search(key)}
        for case in summary.cases
    ]
    if all(settings == scheduling[0] for settings in scheduling):
        return ""
    measured = [
        name for name in _SPLIT_METRICS if any(mean(case, name) is not None for case in summary.cases)
    ]
    if not any(name.startswith("path_share") for name in measured):
        return ""
    columns = [
        Column(name, heading_of(name), tuple(show(name, mean(case, name)) for case in summary.cases))
        for name in measured
    ]
    tables = [("", [*factors_of(summary), *columns])]
    return fill("table", id="split", title="How it was split", note=_SPLIT_NOTE, tables=tables)


def crossed(summary: Summary) -> Markup | str:
    """Return the section; nothing when no two settings are crossed, with at least LEAST_CROSSED choices each."""
    pair = crossed_settings(summary.cases)
    if pair is None:
        return ""
    metric = primary_metric(summary)
    for relative in ("of_cap", "efficiency"):
        if metric == "goodput_bps" and all(mean(case, relative) is not None for case in summary.cases):
            metric = relative
    title = f"{capital(short_name(pair[0]))} by {short_name(pair[1])}"
    tables = [
        (label, _crossing(crossing, pair, metric)) for label, crossing in _crossings(summary.cases, *pair)
    ]
    note = f"{title_of(metric)}; means over trials."
    return fill("table", id="crossed", title=title, note=note, tables=tables)


def crossed_settings(cases: Sequence[CaseSummary]) -> tuple[str, str] | None:
    """Return the pair of settings with most combinations, all of which exist for each choice of the other settings."""
    names = list(dict.fromkeys(name for case in cases for name in case.settings))
    counts = {name: len({_choice(case, name) for case in cases}) for name in names}
    pairs = [
        (row, column)
        for place, row in enumerate(names)
        for column in names[place + 1 :]
        if min(counts[row], counts[column]) >= LEAST_CROSSED
        and all(
            len(crossing) == counts[row] * counts[column] for _, crossing in _crossings(cases, row, column)
        )
    ]
    return max(pairs, key=lambda pair: counts[pair[0]] * counts[pair[1]], default=None)


def _crossings(cases: Sequence[CaseSummary], row: str, column: str) -> list[tuple[str, Crossing]]:
    """Return the cases by the label of their other settings, and in each group by their choices of the two."""
    by_label: dict[str, Crossing] = {}
    for case in cases:
        rest = {name: value for name, value in case.settings.items() if name not in (row, column)}
        by_label.setdefault(case_label("", rest), {})[_choice(case, row), _choice(case, column)] = case
    return list(by_label.items())


def _choice(case: CaseSummary, name: str) -> str:
    value: Any = case.settings.get(name)
    return MISSING if value is None else value_words(value)


def _crossing(crossing: Crossing, pair: tuple[str, str], metric: str) -> list[Column]:
    rows = tuple(dict.fromkeys(row for row, _ in crossing))
    corner = Column("", "", rows, title=f"{short_name(pair[0])} / {short_name(pair[1])}", is_factor=True)
    choices = dict.fromkeys(column for _, column in crossing)
    return [
        corner,
        *(
            Column(
                "", "", tuple(show(metric, mean(crossing[row, choice], metric)) for row in rows), title=choice
            )
            for choice in choices
        ),
    ]
