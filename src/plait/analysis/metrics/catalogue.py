"""The one catalogue of metrics: a record for each, which everything that shows, compares or orders metrics reads.

The order counts: a study of several kinds of traffic is about the first compared metric that it measured. Delays of
paced or requested data say more than the goodput of what filled the links beside them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from plait.analysis.metrics.metric import ComparedMetric, Metric
from plait.analysis.metrics.units import (
    BYTES,
    COUNT,
    MICROSECONDS,
    NUMBER,
    PER_SECOND,
    PERCENT,
    RATE,
    SECONDS,
    Unit,
    unit_by_ending,
)
from plait.analysis.wording import number_word

if TYPE_CHECKING:
    from plait.analysis.labels.study_labels import StudyLabels
    from plait.analysis.metrics.metric import Owner
    from plait.analysis.model import CaseSummary, Summary

CONNECTIONS = (
    "bulk",
    "transfer",
    "stream",
    "on_off",
    "request",
    "page",
    "page_connection",
    "program",
    "prototype",
)
ALL = (*CONNECTIONS, "udp")
GREEDY = ("bulk", "transfer")
TIMED = ("stream", "on_off")
PROGRAM: tuple[Owner, ...] = ("PROGRAM",)
FLOW: tuple[Owner, ...] = ("trial", "FLOW")
LINK: tuple[Owner, ...] = ("trial", "LINK")
RANK = "messages.nearest_rank"
BINNED = "nearest rank in the table queueing_delays"
IPERF3 = "reported by iperf3"

_METRICS = (
    ComparedMetric(
        "completion_s", "Completion time", SECONDS, ("transfer",), "trial.completion_s",
        better="less", owners=("trial", "FLOW", "PROGRAM"), heading="completion time", short="completion",
        verb="takes", superlative="shortest", figure="completion-time", speaks_for=("transfer",),
    ),
    ComparedMetric(
        "page_load_s", "Page load time", SECONDS, ("page",),
        "from the first connect() to the last byte, mean over pages",
        better="less", owners=FLOW, heading="page load",
        verb="takes", superlative="shortest", figure="page-load-time",
        columns=("page_load_s",), speaks_for=("page",),
    ),
    Metric(
        "page_load_p95_s", "95th percentile of page load time", SECONDS, ("page",), f"{RANK}, over pages",
        better="less", heading="page load p95",
    ),
    Metric("page_load_max_s", "Largest page load time", SECONDS, ("page",), "the greatest page_load_s of a page"),
    Metric(
        "request_latency_p50_us", "Median request latency", MICROSECONDS, ("request",), RANK,
        better="less", owners=FLOW, heading="latency p50",
    ),
    ComparedMetric(
        "request_latency_p95_us", "95th percentile of request latency", MICROSECONDS, ("request",), RANK,
        better="less", owners=FLOW, heading="latency p95",
        verb="has", superlative="lowest", figure="request-latency",
        columns=("request_latency_p50_us", "request_latency_p95_us"), speaks_for=("request",),
    ),
    Metric(
        "request_latency_p99_us", "99th percentile of request latency", MICROSECONDS, ("request",), RANK,
        better="less", owners=FLOW,
    ),
    Metric(
        "request_latency_max_us", "Largest request latency", MICROSECONDS, ("request",), "the greatest latency",
        owners=FLOW,
    ),
    Metric(
        "message_delay_p50_us", "Median message delay", MICROSECONDS, TIMED, RANK,
        better="less", owners=FLOW, heading="delay p50",
    ),
    ComparedMetric(
        "message_delay_p95_us", "95th percentile of message delay", MICROSECONDS, TIMED, RANK,
        better="less", owners=FLOW, heading="delay p95",
        verb="has", superlative="lowest", figure="message-delay",
        columns=("message_delay_p50_us", "message_delay_p95_us", "message_delay_max_us"), speaks_for=TIMED,
    ),
    Metric(
        "message_delay_p99_us", "99th percentile of message delay", MICROSECONDS, TIMED, RANK,
        better="less", owners=FLOW,
    ),
    Metric(
        "message_delay_max_us", "Largest message delay", MICROSECONDS, TIMED, "the greatest delay",
        owners=FLOW, heading="delay max",
    ),
    ComparedMetric(
        "goodput_bps", "Goodput", RATE, ALL, "users.goodput_bps",
        better="more", owners=("trial", "FLOW", "PROGRAM"), heading="goodput",
        verb="gives", superlative="highest", figure="goodput",
        speaks_for=("bulk", "page_connection", "program", "prototype"),
    ),
    Metric(
        "steady_goodput_bps", "Steady goodput", RATE, ALL, "windows.steady_goodput_bps",
        better="more", owners=FLOW, heading="steady goodput",
    ),
    Metric("mean_goodput_bps", "Mean goodput of its flows", RATE, ALL, "groups.group_metrics", owners=("GROUP",)),
    Metric(
        "mean_steady_goodput_bps", "Mean steady goodput of its flows", RATE, ALL, "groups.group_metrics",
        owners=("GROUP",),
    ),
    Metric(
        "ideal_goodput_bps", "Goodput that the links allow", RATE, GREEDY,
        "ideal.ideal_goodput_bps; of several flows joint_ideal.joint_goodput_bps",
    ),
    Metric(
        "efficiency", "Goodput, of what the links allow", PERCENT, GREEDY, "goodput_bps / ideal_goodput_bps",
        better="more", heading="of what the links allow", short="of ideal", prose="efficiency",
    ),
    Metric(
        "of_cap", "Goodput, of what the cap allows", PERCENT, GREEDY, "goodput_bps / capped_ideal.capped_goodput_bps",
        heading="of what the cap allows",
    ),
    Metric(
        "aggregation_benefit", "Aggregation benefit", NUMBER, GREEDY, "trial.aggregation_benefit",
        better="more", heading="aggregation benefit", least=None,
    ),
    Metric(
        "best_path_ratio", "Goodput / what the best path alone allows TCP", NUMBER, GREEDY, "trial.best_path_ratio"
    ),
    Metric(
        "jain_index", "Jain's index", NUMBER, ALL, "trial.jain_index",
        better="more", heading="fairness (Jain)", short="fairness", prose="Jain's index",
    ),
    Metric(
        "second_subflow_s", "First data on a second subflow", SECONDS, CONNECTIONS, "windows.second_subflow_s",
        better="less", prose="time to first data on a second subflow",
    ),
    Metric(
        "path_share", "Share of the path", PERCENT, CONNECTIONS, "acknowledged bytes of the path / those of all paths",
        owners=("PATH",),
    ),
    Metric(
        "path_share_max", "Largest share of a path", PERCENT, CONNECTIONS, "the greatest share of a path",
        heading="largest share of a path",
    ),
    Metric(
        "path_share_window_max", "Largest share of a path in any second", PERCENT, CONNECTIONS,
        "path_shares.largest_share",
        heading="largest share in any second",
    ),
    Metric(
        "observed_Npath_share", "Share of the stream on N paths", PERCENT, CONNECTIONS,
        "bytes that arrived on the N best paths / bytes of the stream", heading="observed on N paths",
    ),
    Metric(
        "path_switches_per_s", "Path switches", PER_SECOND, CONNECTIONS, "path_shares.switches_per_s",
        heading="path switches per s, at least",
    ),
    Metric(
        "path_run_max_bytes", "Longest run on one path", BYTES, CONNECTIONS, "path_shares.longest_run",
        heading="longest run on one path, at least",
    ),
    Metric(
        "reinjected_bytes", "Reinjected bytes", BYTES, CONNECTIONS, "bytes that MPTCP sent again on another subflow",
        better="less", heading="reinjected", prose="reinjected data",
    ),
    Metric(
        "duplicate_bytes", "Bytes that arrived twice", BYTES, CONNECTIONS, "path_shares.share_metrics",
        heading="arrived twice",
    ),
    Metric(
        "out_of_order_max_bytes", "Largest out-of-order queue", BYTES, CONNECTIONS, "path_shares.share_metrics",
        heading="out-of-order queue, largest",
    ),
    Metric(
        "out_of_order_mean_bytes", "Mean out-of-order queue", BYTES, CONNECTIONS, "path_shares.share_metrics",
        heading="out-of-order queue, mean",
    ),
    Metric(
        "subflows_used", "Subflows that carried data", COUNT, CONNECTIONS,
        "subflows with more than SYN and FIN acked",
    ),
    Metric(
        "retransmits", "Retransmitted segments", COUNT, CONNECTIONS,
        "tcpi_total_retrans, summed over the senders' subflows",
        better="less", heading="retransmitted segments",
    ),
    Metric(
        "rtt_median_us", "Median round-trip time", MICROSECONDS, CONNECTIONS, "over the samples of sending subflows",
        better="less", heading="median RTT", prose="median RTT",
    ),
    Metric(
        "rtt_max_us", "Largest round-trip time", MICROSECONDS, CONNECTIONS, "over the samples of sending subflows",
        better="less", heading="largest RTT", prose="largest RTT",
    ),
    Metric(
        "queue_mean_bytes", "Mean queue", BYTES, ALL, "of the link whose queue is fullest on average", better="less"
    ),
    Metric(
        "queue_max_bytes", "Largest queue", BYTES, ALL, "of the link whose queue is fullest on average", better="less"
    ),
    Metric(
        "queueing_delay_p50_us", "Median queueing delay", MICROSECONDS, ALL, BINNED,
        better="less", owners=LINK,
    ),
    Metric(
        "queueing_delay_p95_us", "95th percentile of queueing delay", MICROSECONDS, ALL, BINNED,
        better="less", owners=LINK,
    ),
    Metric(
        "queueing_delay_p99_us", "99th percentile of queueing delay", MICROSECONDS, ALL, BINNED,
        better="less", owners=LINK,
    ),
    Metric("dropped_packets", "Dropped packets", COUNT, ALL, "drops of all links", better="less"),
    ComparedMetric(
        "udp_loss_ratio", "Share of UDP packets lost", PERCENT, ("udp",), "UDP packets that did not arrive / all",
        better="less", owners=FLOW, heading="UDP loss", prose="share of UDP packets lost",
        verb="has", superlative="smallest", figure="udp-loss",
        columns=("udp_loss_ratio", "udp_delay_p95_us", "udp_jitter_us"), speaks_for=("udp",),
    ),
    Metric("udp_delay_p50_us", "Median UDP delay", MICROSECONDS, ("udp",), RANK, owners=FLOW),
    Metric(
        "udp_delay_p95_us", "95th percentile of UDP delay", MICROSECONDS, ("udp",), RANK,
        better="less", owners=FLOW, heading="UDP delay p95",
    ),
    Metric("udp_delay_p99_us", "99th percentile of UDP delay", MICROSECONDS, ("udp",), RANK, owners=FLOW),
    Metric("udp_delay_max_us", "Largest UDP delay", MICROSECONDS, ("udp",), "the greatest delay", owners=FLOW),
    Metric(
        "udp_jitter_us", "UDP jitter", MICROSECONDS, ("udp",), "the mean of |D| of RFC 3550, 6.4.1",
        better="less", owners=FLOW, heading="UDP jitter", prose="UDP jitter",
    ),
    ComparedMetric(
        "iperf3_udp_loss_ratio", "Share of UDP packets that iperf3 lost", PERCENT, ("program",),
        "programs.udp_figures, over all programs",
        better="less", heading="UDP loss (iperf3)",
        verb="has", superlative="smallest", figure="iperf3-udp-loss",
        columns=("iperf3_udp_loss_ratio", "iperf3_udp_jitter_us"),
    ),
    Metric(
        "iperf3_udp_jitter_us", "Mean UDP jitter that iperf3 reports", MICROSECONDS, ("program",),
        "programs.udp_figures, weighted by packets", heading="UDP jitter (iperf3)",
    ),
    Metric("iperf3_sent_bps", "Sending rate that iperf3 reports", RATE, ("program",), IPERF3, owners=PROGRAM),
    Metric("iperf3_sent_bytes", "Sent bytes that iperf3 reports", BYTES, ("program",), IPERF3, owners=PROGRAM),
    Metric(
        "iperf3_received_bps", "Goodput that iperf3 reports", RATE, ("program",), IPERF3,
        owners=PROGRAM, heading="iperf3",
    ),
    Metric("iperf3_received_bytes", "Received bytes that iperf3 reports", BYTES, ("program",), IPERF3, owners=PROGRAM),
    Metric("iperf3_retransmits", "Retransmissions that iperf3 reports", COUNT, ("program",), IPERF3, owners=PROGRAM),
    Metric("iperf3_udp_bps", "UDP sending rate that iperf3 reports", RATE, ("program",), IPERF3, owners=PROGRAM),
    Metric("iperf3_packets", "UDP packets that iperf3 reports", COUNT, ("program",), IPERF3, owners=PROGRAM),
    Metric("iperf3_lost_packets", "Lost UDP packets that iperf3 reports", COUNT, ("program",), IPERF3, owners=PROGRAM),
    Metric("iperf3_jitter_us", "UDP jitter that iperf3 reports", MICROSECONDS, ("program",), IPERF3, owners=PROGRAM),
    Metric("duration_s", "Duration of the program", SECONDS, ("program",), "programs.program_metrics", owners=PROGRAM),
    Metric("probe_rtt_p50_us", "Median RTT of probes", MICROSECONDS, ("probe",), RANK),
    ComparedMetric(
        "probe_rtt_p95_us", "95th percentile of the probes' RTT", MICROSECONDS, ("probe",), RANK,
        better="less", heading="probe RTT p95",
        verb="has", superlative="lowest", figure="probe-rtt", columns=("probe_loss_ratio", "probe_rtt_p95_us"),
    ),
    Metric(
        "probe_loss_ratio", "Probes without an answer", PERCENT, ("probe",), "messages.probe_metrics",
        heading="probes lost",
    ),
)  # fmt: skip

CATALOGUE: dict[str, Metric] = {metric.name: metric for metric in _METRICS}
COMPARED: dict[str, ComparedMetric] = {
    metric.name: metric for metric in _METRICS if isinstance(metric, ComparedMetric)
}
JUDGEABLE = tuple(metric.name for metric in _METRICS if metric.better is not None)
"""The metrics by which plait can judge one study against another."""
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


def unit_of(name: str) -> Unit:
    """Return the unit of a metric; of another field of data the one that its name ends in."""
    metric = metric_of(name)
    return metric.unit if metric is not None else unit_by_ending(name)


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
    return [column for name in order for column in COMPARED[name].columns]


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


def _is_measured(summary: Summary, metric: str) -> bool:
    return any(mean(case, metric) is not None for case in summary.cases)


def compared_metric(name: str) -> ComparedMetric:
    """Return the record of a metric by which cases are compared: of the catalogue, or made from it.

    Raises:
        KeyError: the metric has no better direction, or does not exist.
    """
    owner = name.rpartition(".")[0]
    metric = metric_of(name)
    if metric is None or metric.better is None:
        raise KeyError(name)
    if name in COMPARED:
        return COMPARED[name]
    fields = {field: getattr(metric, field) for field in Metric.__dataclass_fields__}
    fields |= {"prose": f"{metric.noun} of {owner}" if owner else metric.prose, "title": title_of(name)}
    most = "highest" if metric.better == "more" else "lowest"
    verb, superlative = (
        (metric.verb, metric.superlative) if isinstance(metric, ComparedMetric) else ("has", most)
    )
    return ComparedMetric(
        **fields, verb=verb, superlative=superlative, figure=re.sub(r"[^a-z0-9]+", "-", name.lower())
    )


def mean(case: CaseSummary, metric: str) -> float | None:
    """Return the mean of a metric over a case's trials; None where it was not measured."""
    stats = case.metrics.get(metric)
    return None if stats is None else stats.mean
