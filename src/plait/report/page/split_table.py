"""The table of how flows were split over their paths, for studies whose cases differ in how they schedule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from plait.analysis.metrics.catalogue import mean
from plait.analysis.values import show
from plait.report.page.case_tables import TableSection, level_columns, metric_column
from plait.report.page.tables import Cell, Table
from plait.report.page.template import fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markupsafe import Markup

    from plait.analysis.model import CaseSummary
    from plait.report.table import Row

_SCHEDULING = re.compile(r"scheduler|capped")
"""In the name of what varies."""
_METRICS = (
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
_NOTE = (
    "Means over trials; of several flows the worst. A second is any second from the first on; its bytes are all "
    "bytes sent on the paths, retransmissions included. Observed is the largest part of the stream that an observer "
    "of the best path, or of the best two, holds."
)


def section(cases: Sequence[CaseSummary], rows: Sequence[Row]) -> Markup | str:
    """Return the section; nothing when no case differs from another in its scheduling, or nothing was measured."""
    chosen = [
        {key: value for key, value in case.settings.items() if _SCHEDULING.search(key)} for case in cases
    ]
    if all(settings == chosen[0] for settings in chosen):
        return ""
    metrics = [name for name in _METRICS if any(mean(case, name) is not None for case in cases)]
    if not any(name.startswith("path_share") for name in metrics):
        return ""
    heads = level_columns(rows)
    columns = (*(column for column, _ in heads), *map(metric_column, metrics))
    body = tuple(
        (*(cell(row) for _, cell in heads), *(Cell(show(name, mean(case, name))) for name in metrics))
        for case, row in zip(cases, rows, strict=True)
    )
    return fill("table", TableSection("split", "How it was split", _NOTE, (("", Table(columns, body)),)))
