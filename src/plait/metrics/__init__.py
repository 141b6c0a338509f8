"""The catalogue of metrics: one entry for each, which everything that names, computes, shows or judges metrics reads.

A new metric is an entry with `compute`. Families that share their steps are computed by functions of
`analysis/metrics`. How values read as text is in `analysis/values.py`.

The order counts: a study of several kinds of traffic is about the first compared metric that it measured. Delays of
paced or requested data say more than the goodput of what filled the links beside them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from plait.metrics.metric import Metric, Owner, TrialData
from plait.traffic.kinds import COMPLETED, CONNECTIONS, GREEDY, JOBS, TIMED

T = TypeVar("T")
Metrics = dict[str, float | None]
"""The metrics of a trial by name; None where one could not be measured."""


def nearest_rank(values: Sequence[float], share: float) -> float | None:
    """Return the least value that at least `share` of all do not exceed (the nearest-rank percentile); None of none.

    `values` are in ascending order.
    """
    if not values:
        return None
    rank = math.ceil(share * len(values) - 1e-9)  # 0.95 * 60 is a little more than 57
    return float(values[max(rank, 1) - 1])


def all_known(values: Iterable[T | None]) -> list[T] | None:
    """Return the values; None if one of them is not known, or if there are none."""
    every = list(values)
    known = [value for value in every if value is not None]
    return known if known and len(known) == len(every) else None


def _probe_rtt(share: float) -> Callable[[TrialData], float | None]:
    return lambda trial: nearest_rank(sorted(trial.tables["probes"]["rtt_us"].drop_nulls().to_list()), share)


def _probe_loss(trial: TrialData) -> float:
    probes = trial.tables["probes"]
    return float(probes["rtt_us"].null_count() / probes.height)


def _longest_stall(trial: TrialData) -> float | None:
    """Return the longest time in s between samples of a receiver with the same count; None if a flow has no sample."""
    longest_us = 0
    for flow in trial.flows:
        row = trial.rows.get(flow.id)
        if row is None or row["first_byte_us"] is None:
            return None
        names = ("t_us", "received_bytes")
        samples = zip(*trial.columns("connections", flow.carrier, flow.receiver, *names), strict=True)
        first, last = row["first_byte_us"], math.inf if row["end_us"] is None else row["end_us"]
        since_us: dict[int, int] = {}
        for t_us, count in samples:
            if count is not None and first <= t_us <= last:
                longest_us = max(longest_us, t_us - since_us.setdefault(count, t_us))
        if not since_us:
            return None
    return longest_us / 1e6


EVERY = tuple(JOBS)
PROGRAM: tuple[Owner, ...] = ("PROGRAM",)
FLOW: tuple[Owner, ...] = ("trial", "FLOW")
LINK: tuple[Owner, ...] = ("trial", "LINK")
RANK = "messages.nearest_rank"
BINNED = "nearest rank in the table queueing_delays"
IPERF3 = "reported by iperf3"

_METRICS = (
    Metric(
        "completion_s", "Completion time", COMPLETED, "trial.completion_s", better="less",
        owners=("trial", "FLOW", "PROGRAM"), heading="completion time", short="completion", verb="takes",
        superlative="shortest", figure="completion-time",
    ),
    Metric(
        "page_load_s", "Page load time", ("page",),
        "from the first connect() to the last byte, mean over pages", better="less", owners=FLOW,
        heading="page load", verb="takes", superlative="shortest", figure="page-load-time",
        beside="page_load_s",
    ),
    Metric(
        "page_load_p95_s", "95th percentile of page load time", ("page",), f"{RANK}, over pages",
        better="less", heading="page load p95",
    ),
    Metric("page_load_max_s", "Largest page load time", ("page",), "the greatest page_load_s of a page"),
    Metric(
        "request_latency_p50_us", "Median request latency", ("request",), RANK, better="less", owners=FLOW,
        heading="latency p50", beside="request_latency_p95_us",
    ),
    Metric(
        "request_latency_p95_us", "95th percentile of request latency", ("request",), RANK, better="less",
        owners=FLOW, heading="latency p95", superlative="lowest", figure="request-latency",
        beside="request_latency_p95_us",
    ),
    Metric(
        "request_latency_p99_us", "99th percentile of request latency", ("request",), RANK, better="less",
        owners=FLOW,
    ),
    Metric(
        "request_latency_max_us", "Largest request latency", ("request",), "the greatest latency",
        owners=FLOW,
    ),
    Metric(
        "message_delay_p50_us", "Median message delay", TIMED, RANK, better="less", owners=FLOW,
        heading="delay p50", beside="message_delay_p95_us",
    ),
    Metric(
        "message_delay_p95_us", "95th percentile of message delay", TIMED, RANK, better="less", owners=FLOW,
        heading="delay p95", superlative="lowest", figure="message-delay",
        beside="message_delay_p95_us",
    ),
    Metric(
        "message_delay_p99_us", "99th percentile of message delay", TIMED, RANK, better="less", owners=FLOW,
    ),
    Metric(
        "message_delay_max_us", "Largest message delay", TIMED, "the greatest delay", owners=FLOW,
        heading="delay max", beside="message_delay_p95_us",
    ),
    Metric(
        "goodput_bps", "Goodput", EVERY, "users.goodput_bps", better="more",
        owners=("trial", "FLOW", "PROGRAM"), heading="goodput", verb="gives", superlative="highest",
        figure="goodput",
    ),
    Metric(
        "steady_goodput_bps", "Steady goodput", EVERY, "windows.steady_goodput_bps", better="more", owners=FLOW,
        heading="steady goodput", over_time=True,
    ),
    Metric(
        "mean_goodput_bps", "Mean goodput of its flows", EVERY, "groups.group_metrics", owners=("GROUP",),
        drawn=False,
    ),
    Metric(
        "mean_steady_goodput_bps", "Mean steady goodput of its flows", EVERY, "groups.group_metrics",
        owners=("GROUP",), drawn=False, over_time=True,
    ),
    Metric(
        "mean_completion_s", "Mean completion time of its flows", ("transfer",), "groups.group_metrics",
        owners=("GROUP",), better="less", drawn=False,
    ),
    Metric(
        "completion_p99_s", "99th percentile of completion time", ("transfer",), RANK, owners=("GROUP",),
        better="less", drawn=False,
    ),
    Metric(
        "slowdown", "Completion time / that of the flow alone", ("transfer",), "ideal.slowdown",
        owners=("FLOW",), better="less", drawn=False, least=1.0,
    ),
    Metric(
        "slowdown_p50", "Median slowdown", ("transfer",), RANK, owners=("trial", "GROUP"), better="less",
        heading="slowdown p50", least=1.0,
    ),
    Metric(
        "slowdown_p99", "99th percentile of slowdown", ("transfer",), RANK, owners=("trial", "GROUP"),
        better="less", heading="slowdown p99", least=1.0,
    ),
    Metric(
        "ideal_goodput_bps", "Goodput that the links allow", GREEDY,
        "ideal.ideal_goodput_bps; of several flows joint_ideal.joint_goodput_bps",
    ),
    Metric(
        "efficiency", "Goodput, of what the links allow", GREEDY, "goodput_bps / ideal_goodput_bps",
        better="more", heading="of what the links allow", short="of ideal", prose="efficiency",
        form="percent",
    ),
    Metric(
        "of_cap", "Goodput, of what the cap allows", GREEDY, "goodput_bps / ideal.capped_goodput_bps",
        heading="of what the cap allows", form="percent", drawn=False,
    ),
    Metric(
        "aggregation_benefit", "Aggregation benefit", GREEDY, "trial.aggregation_benefit", better="more",
        heading="aggregation benefit", least=None,
    ),
    Metric(
        "best_path_ratio", "Goodput / what the best path alone allows TCP", GREEDY, "trial.best_path_ratio",
    ),
    Metric(
        "jain_index", "Jain's index", EVERY, "trial.jain_index", better="more", heading="fairness (Jain)",
        short="fairness", prose="Jain's index",
    ),
    Metric(
        "second_subflow_s", "First data on a second subflow", CONNECTIONS, "windows.second_subflow_s",
        better="less", prose="time to first data on a second subflow", over_time=True,
    ),
    Metric(
        "stall_max_s", "Longest stall", GREEDY, "longest time between samples without a new byte in order",
        compute=_longest_stall, better="less", owners=FLOW, heading="longest stall, at least", over_time=True,
    ),
    Metric(
        "path_share", "Share of the path", CONNECTIONS, "acknowledged bytes of the path / those of all paths",
        owners=("PATH",), form="percent",
    ),
    Metric(
        "path_share_max", "Largest share of a path", CONNECTIONS, "the greatest share of a path",
        heading="largest share of a path", form="percent",
    ),
    Metric(
        "path_share_window_max", "Largest share of a path in any second", CONNECTIONS,
        "path_shares.largest_share", heading="largest share in any second", form="percent", over_time=True,
    ),
    Metric(
        "observed_Npath_share", "Share of the stream on N paths", CONNECTIONS,
        "bytes that arrived on the N best paths / bytes of the stream", heading="observed on N paths",
        form="percent", drawn=False,
    ),
    Metric(
        "path_switches_per_s", "Path switches", CONNECTIONS, "path_shares.switches_per_s",
        heading="path switches per s, at least", over_time=True,
    ),
    Metric(
        "path_run_max_bytes", "Longest run on one path", CONNECTIONS, "path_shares.longest_run",
        heading="longest run on one path, at least", drawn=False, over_time=True,
    ),
    Metric(
        "reinjected_bytes", "Reinjected bytes", CONNECTIONS, "bytes that MPTCP sent again on another subflow",
        better="less", heading="reinjected", prose="reinjected data",
    ),
    Metric(
        "duplicate_bytes", "Bytes that arrived twice", CONNECTIONS, "path_shares.share_metrics",
        heading="arrived twice",
    ),
    Metric(
        "out_of_order_max_bytes", "Largest out-of-order queue", CONNECTIONS, "path_shares.share_metrics",
        heading="out-of-order queue, largest", over_time=True,
    ),
    Metric(
        "out_of_order_mean_bytes", "Mean out-of-order queue", CONNECTIONS, "path_shares.share_metrics",
        heading="out-of-order queue, mean", over_time=True,
    ),
    Metric(
        "subflows_used", "Subflows that carried data", CONNECTIONS,
        "subflows with more than SYN and FIN acked", form="count",
    ),
    Metric(
        "retransmits", "Retransmitted segments", CONNECTIONS,
        "tcpi_total_retrans, summed over the senders' subflows", better="less",
        heading="retransmitted segments", form="count",
    ),
    Metric(
        "rtt_median_us", "Median round-trip time", CONNECTIONS, "over the samples of sending subflows",
        better="less", heading="median RTT", prose="median RTT", over_time=True,
    ),
    Metric(
        "rtt_max_us", "Largest round-trip time", CONNECTIONS, "over the samples of sending subflows",
        better="less", heading="largest RTT", prose="largest RTT", over_time=True,
    ),
    Metric(
        "queue_mean_bytes", "Mean queue", EVERY, "of the link whose queue is fullest on average", better="less",
    ),
    Metric(
        "queue_max_bytes", "Largest queue", EVERY, "of the link whose queue is fullest on average",
        better="less",
    ),
    Metric("queueing_delay_p50_us", "Median queueing delay", EVERY, BINNED, better="less", owners=LINK),
    Metric(
        "queueing_delay_p95_us", "95th percentile of queueing delay", EVERY, BINNED, better="less", owners=LINK,
    ),
    Metric(
        "queueing_delay_p99_us", "99th percentile of queueing delay", EVERY, BINNED, better="less", owners=LINK,
    ),
    Metric(
        "link_utilisation", "Utilisation of links", EVERY, "layers.layer_metrics, mean over the links of a layer",
        owners=("LAYER",), form="percent", drawn=False,
    ),
    Metric(
        "link_utilisation_max", "Utilisation of the busiest link", EVERY, "layers.layer_metrics",
        owners=("LAYER",), form="percent", drawn=False,
    ),
    Metric("dropped_packets", "Dropped packets", EVERY, "drops of all links", better="less", form="count"),
    Metric(
        "udp_loss_ratio", "Share of UDP packets lost", ("udp",), "UDP packets that did not arrive / all",
        better="less", owners=FLOW, heading="UDP loss", prose="share of UDP packets lost",
        superlative="smallest", figure="udp-loss", form="percent",
        beside="udp_loss_ratio",
    ),
    Metric("udp_delay_p50_us", "Median UDP delay", ("udp",), RANK, owners=FLOW),
    Metric(
        "udp_delay_p95_us", "95th percentile of UDP delay", ("udp",), RANK, better="less", owners=FLOW,
        heading="UDP delay p95", beside="udp_loss_ratio",
    ),
    Metric("udp_delay_p99_us", "99th percentile of UDP delay", ("udp",), RANK, owners=FLOW),
    Metric("udp_delay_max_us", "Largest UDP delay", ("udp",), "the greatest delay", owners=FLOW),
    Metric(
        "udp_jitter_us", "UDP jitter", ("udp",), "the mean of |D| of RFC 3550, 6.4.1", better="less",
        owners=FLOW, heading="UDP jitter", prose="UDP jitter", beside="udp_loss_ratio",
    ),
    Metric(
        "iperf3_udp_loss_ratio", "Share of UDP packets that iperf3 lost", ("program",),
        "programs.udp_figures, over all programs", better="less", heading="UDP loss (iperf3)",
        superlative="smallest", figure="iperf3-udp-loss", form="percent", beside="iperf3_udp_loss_ratio",
    ),
    Metric(
        "iperf3_udp_jitter_us", "Mean UDP jitter that iperf3 reports", ("program",),
        "programs.udp_figures, weighted by packets", heading="UDP jitter (iperf3)",
        beside="iperf3_udp_loss_ratio",
    ),
    Metric("iperf3_sent_bps", "Sending rate that iperf3 reports", ("program",), IPERF3, owners=PROGRAM),
    Metric(
        "iperf3_sent_bytes", "Sent bytes that iperf3 reports", ("program",), IPERF3, owners=PROGRAM,
        drawn=False,
    ),
    Metric(
        "iperf3_received_bps", "Goodput that iperf3 reports", ("program",), IPERF3, owners=PROGRAM,
        heading="iperf3",
    ),
    Metric(
        "iperf3_received_bytes", "Received bytes that iperf3 reports", ("program",), IPERF3, owners=PROGRAM,
        drawn=False,
    ),
    Metric(
        "iperf3_retransmits", "Retransmissions that iperf3 reports", ("program",), IPERF3, owners=PROGRAM,
        form="count", drawn=False,
    ),
    Metric("iperf3_udp_bps", "UDP sending rate that iperf3 reports", ("program",), IPERF3, owners=PROGRAM),
    Metric(
        "iperf3_packets", "UDP packets that iperf3 reports", ("program",), IPERF3, owners=PROGRAM,
        form="count", drawn=False,
    ),
    Metric(
        "iperf3_lost_packets", "Lost UDP packets that iperf3 reports", ("program",), IPERF3, owners=PROGRAM,
        form="count",
    ),
    Metric("iperf3_jitter_us", "UDP jitter that iperf3 reports", ("program",), IPERF3, owners=PROGRAM),
    Metric("duration_s", "Duration of the program", ("program",), "programs.program_metrics", owners=PROGRAM),
    Metric("probe_rtt_p50_us", "Median RTT of probes", ("probe",), RANK, compute=_probe_rtt(0.5)),
    Metric(
        "probe_loss_ratio", "Probes without an answer", ("probe",), "echo requests without an answer / all",
        compute=_probe_loss, heading="probes lost", form="percent", beside="probe_rtt_p95_us",
    ),
    Metric(
        "probe_rtt_p95_us", "95th percentile of the probes' RTT", ("probe",), RANK, compute=_probe_rtt(0.95),
        better="less", heading="probe RTT p95", superlative="lowest", figure="probe-rtt",
        beside="probe_rtt_p95_us",
    ),
)  # fmt: skip

CATALOGUE: dict[str, Metric] = {metric.name: metric for metric in _METRICS}
COMPARED: dict[str, Metric] = {metric.name: metric for metric in _METRICS if metric.figure}
"""The metrics by which plait compares cases and studies, and which have a figure of their own."""
FIGURE_METRICS = tuple(metric.name for metric in _METRICS if metric.drawn)
"""The metrics that a scenario can name in `figures`."""
JUDGED_METRICS = tuple(metric.name for metric in _METRICS if metric.better is not None)
"""The metrics by which `judge` and `plait compare` can judge: one direction of them is better."""
_PERCENTILE = re.compile(r"(?P<stem>.+)_(?P<unit>s|us)\.(?P<percentile>p\d\d)")


_BY_HEADING = {word: metric.name for metric in _METRICS for word in (metric.heading, metric.short) if word}


def columns_beside(metric: Metric) -> tuple[str, ...]:
    """Return the metrics whose columns tables have because of this one; none because of that of a single owner."""
    if CATALOGUE.get(metric.name) is not metric:
        return ()
    return tuple(beside.name for beside in CATALOGUE.values() if beside.beside == metric.name)


def judged_metric(text: str) -> str:
    """Return the name of the metric that a person means.

    `page_load_s.p95` is `page_load_p95_s`, and `delay p95`, the heading of its column, is `message_delay_p95_us`.
    """
    if match := _PERCENTILE.fullmatch(text):
        return "{stem}_{percentile}_{unit}".format(**match.groupdict())
    owner, dot, last = text.rpartition(".")
    return f"{owner}{dot}{_BY_HEADING.get(last, last)}"


def is_judged(name: str) -> bool:
    """Return whether a metric, of the trial or of a flow, has a better direction."""
    return name.rpartition(".")[2] in JUDGED_METRICS
