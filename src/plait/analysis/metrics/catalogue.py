"""Which metric speaks for which kind of traffic, and the words for it: one place for all that is shown or compared.

Headline, tables, figures, comparisons and explanations ask here. A study of several kinds is about the first of them in
the order of JUDGED: delays of what is paced or asked for say more than the goodput of what filled the links beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plait.analysis.model import CaseSummary, Summary


@dataclass(frozen=True)
class Judged:
    """A metric by which cases are compared, and what stands beside it."""

    verb: str
    """`MPTCP gives 1.9 times the goodput of TCP`."""
    noun: str
    best: str
    """What the best case has: `the highest goodput`."""
    more_is_better: bool
    figure: str
    """The name of its figure's file."""
    columns: tuple[tuple[str, str], ...] = ()
    """Of tables, heading and metric: its own, and others of the same kind. Empty where every table has one."""
    kinds: tuple[str, ...] = ()
    """The kinds of flows that it speaks for."""

    @property
    def title(self) -> str:
        """Its noun at the beginning of a line."""
        return self.noun[0].upper() + self.noun[1:]


JUDGED: dict[str, Judged] = {
    "completion_s": Judged(
        "takes",
        "completion time",
        "shortest completion time",
        more_is_better=False,
        figure="completion-time",
        kinds=("transfer",),
    ),
    "page_load_s": Judged(
        "takes",
        "page load time",
        "shortest page load time",
        more_is_better=False,
        figure="page-load-time",
        columns=(("page load", "page_load_s"),),
        kinds=("page",),
    ),
    "request_latency_p95_us": Judged(
        "has",
        "95th percentile of request latency",
        "lowest 95th percentile of request latency",
        more_is_better=False,
        figure="request-latency",
        columns=(
            ("latency p50", "request_latency_p50_us"),
            ("latency p95", "request_latency_p95_us"),
        ),
        kinds=("request",),
    ),
    "message_delay_p95_us": Judged(
        "has",
        "95th percentile of message delay",
        "lowest 95th percentile of message delay",
        more_is_better=False,
        figure="message-delay",
        columns=(
            ("delay p50", "message_delay_p50_us"),
            ("delay p95", "message_delay_p95_us"),
            ("delay max", "message_delay_max_us"),
        ),
        kinds=("stream", "on_off"),
    ),
    "goodput_bps": Judged(
        "gives",
        "goodput",
        "highest goodput",
        more_is_better=True,
        figure="goodput",
        kinds=("bulk", "page_connection", "program"),
    ),
    "udp_loss_ratio": Judged(
        "has",
        "share of UDP packets lost",
        "smallest share of UDP packets lost",
        more_is_better=False,
        figure="udp-loss",
        columns=(
            ("UDP loss", "udp_loss_ratio"),
            ("UDP delay p95", "udp_delay_p95_us"),
            ("UDP jitter", "udp_jitter_us"),
        ),
        kinds=("udp",),
    ),
    "iperf3_udp_loss_ratio": Judged(
        "has",
        "share of UDP packets that iperf3 lost",
        "smallest share of UDP packets that iperf3 lost",
        more_is_better=False,
        figure="iperf3-udp-loss",
        columns=(
            ("UDP loss (iperf3)", "iperf3_udp_loss_ratio"),
            ("UDP jitter (iperf3)", "iperf3_udp_jitter_us"),
        ),
    ),
    "probe_rtt_p95_us": Judged(
        "has",
        "95th percentile of the probes' RTT",
        "lowest 95th percentile of the probes' RTT",
        more_is_better=False,
        figure="probe-rtt",
        columns=(("probes lost", "probe_loss_ratio"), ("probe RTT p95", "probe_rtt_p95_us")),
    ),
}
_DATAGRAMS = ("udp_loss_ratio", "iperf3_udp_loss_ratio")
"""They speak for a study in which nothing was sent over a connection; beside one they are told in the table."""


def primary_metric(summary: Summary) -> str:
    """Return what the study is about: the first metric that speaks for any of its traffic."""
    found = [metric for metric in JUDGED if any(mean(case, metric) is not None for case in summary.cases)]
    if not any(mean(case, "retransmits") is not None for case in summary.cases):
        found.sort(key=lambda metric: metric not in _DATAGRAMS)
    return found[0] if found else "goodput_bps"


def speaks_for(kind: str) -> str:
    """Return the metric of a kind of flow."""
    return next(metric for metric, judged in JUDGED.items() if kind in judged.kinds)


def columns(first: str) -> Iterable[tuple[str, str]]:
    """Return headings and metrics of the columns that only some kinds of traffic have, those of a metric first."""
    order = sorted(JUDGED, key=lambda metric: metric != first)
    return (column for metric in order for column in JUDGED[metric].columns)


def mean(case: CaseSummary, metric: str) -> float | None:
    """Return the mean of a metric over a case's trials; None where it was not measured."""
    found = case.metrics.get(metric)
    return None if found is None else found.mean
