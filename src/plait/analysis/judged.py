"""The metrics by which cases are compared, and the words for it: one place for what report and terminal say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait.analysis.model import CaseSummary, Summary


@dataclass(frozen=True)
class Judged:
    """A metric by which cases are compared."""

    verb: str
    """`MPTCP gives 1.9 times the goodput of TCP`."""
    noun: str
    best: str
    """What the best case has: `the highest goodput`."""
    more_is_better: bool
    figure: str
    """The name of its figure's file."""

    @property
    def title(self) -> str:
        """Its noun at the beginning of a line."""
        return self.noun[0].upper() + self.noun[1:]


JUDGED: dict[str, Judged] = {
    "goodput_bps": Judged("gives", "goodput", "highest goodput", more_is_better=True, figure="goodput"),
    "completion_s": Judged(
        "takes", "completion time", "shortest completion time", more_is_better=False, figure="completion-time"
    ),
    "page_load_s": Judged(
        "takes", "page load time", "shortest page load time", more_is_better=False, figure="page-load-time"
    ),
    "request_latency_p95_us": Judged(
        "has",
        "95th percentile of request latency",
        "lowest 95th percentile of request latency",
        more_is_better=False,
        figure="request-latency",
    ),
    "message_delay_p95_us": Judged(
        "has",
        "95th percentile of message delay",
        "lowest 95th percentile of message delay",
        more_is_better=False,
        figure="message-delay",
    ),
}
_FIRST = ("completion_s", "page_load_s", "request_latency_p95_us", "message_delay_p95_us")


def primary_metric(summary: Summary) -> str:
    """Return what the study is about: how long transfers, pages or answers take when there are such, else goodput."""
    return next(
        (metric for metric in _FIRST if any(mean(case, metric) is not None for case in summary.cases)),
        "goodput_bps",
    )


def mean(case: CaseSummary, metric: str) -> float | None:
    """Return the mean of a metric over a case's trials; None where it was not measured."""
    found = case.metrics.get(metric)
    return None if found is None else found.mean
