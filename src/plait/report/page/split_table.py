"""The table of how flows were split over their paths, for studies whose cases differ in how they schedule."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from plait.analysis.metrics.catalogue import heading_of
from plait.analysis.values import show
from plait.analysis.wording import MISSING, capital

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.analysis.model import CaseSummary
    from plait.report.table import Row

_SCHEDULING = re.compile(r"scheduler|capped")
"""In the name of what varies."""
_COLUMNS = (
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


def section(cases: Sequence[CaseSummary], rows: Sequence[Row]) -> str:
    """Return the section; nothing when no case differs from another in its scheduling, or nothing was measured."""
    chosen = [
        {key: value for key, value in case.settings.items() if _SCHEDULING.search(key)} for case in cases
    ]
    if all(one == chosen[0] for one in chosen):
        return ""
    columns = [name for name in _COLUMNS if any(_mean(case, name) is not None for case in cases)]
    if not any(name.startswith("path_share") for name in columns):
        return ""
    head = "".join(f'<th class="n" scope="col">{escape(capital(heading_of(name)))}</th>' for name in columns)
    body = ""
    for case, row in zip(cases, rows, strict=True):
        cells = "".join(f'<td class="n">{escape(_shown(case, name))}</td>' for name in columns)
        body += f'<tr><td class="case">{escape(row.label)}</td>{cells}</tr>'
    note = (
        "Means over trials; with several flows, of the worst. A second is any second from the first on, and its "
        "bytes are those put on the paths, retransmissions included. What is seen is the part of the stream that "
        "whoever reads the best path, or the best two, holds at most."
    )
    return (
        f'<section id="split"><h2>How it was split</h2><p class="note">{note}</p><div class="scroll"><table>'
        f'<thead><tr><th class="case" scope="col">Case</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div></section>"
    )


def _mean(case: CaseSummary, name: str) -> float | None:
    found = case.metrics.get(name)
    return None if found is None else found.mean


def _shown(case: CaseSummary, name: str) -> str:
    value = _mean(case, name)
    return MISSING if value is None else show(name, value)
