"""The names of all metrics: scenarios check figures by them, and the catalogue of metrics has a record for each."""

from __future__ import annotations

import re
from typing import Literal, get_args

_FigureMetric = Literal[
    "goodput_bps", "steady_goodput_bps", "completion_s", "ideal_goodput_bps", "efficiency", "aggregation_benefit",
    "best_path_ratio", "path_share", "path_share_max", "path_share_window_max", "path_switches_per_s",
    "duplicate_bytes", "out_of_order_max_bytes", "out_of_order_mean_bytes", "subflows_used", "retransmits",
    "reinjected_bytes", "jain_index",
    "second_subflow_s", "message_delay_p50_us", "message_delay_p95_us", "message_delay_p99_us",
    "message_delay_max_us", "request_latency_p50_us", "request_latency_p95_us", "request_latency_p99_us",
    "request_latency_max_us", "page_load_s", "page_load_p95_s", "page_load_max_s", "udp_loss_ratio", "udp_delay_p50_us",
    "udp_delay_p95_us", "udp_delay_p99_us", "udp_delay_max_us", "udp_jitter_us", "rtt_median_us", "rtt_max_us",
    "queue_mean_bytes", "queue_max_bytes", "queueing_delay_p50_us", "queueing_delay_p95_us",
    "queueing_delay_p99_us", "dropped_packets", "duration_s", "iperf3_sent_bps",
    "iperf3_received_bps", "iperf3_udp_bps", "iperf3_lost_packets", "iperf3_jitter_us", "iperf3_udp_loss_ratio",
    "iperf3_udp_jitter_us", "probe_rtt_p50_us", "probe_rtt_p95_us", "probe_loss_ratio",
]  # fmt: skip
_OtherMetric = Literal[
    "mean_goodput_bps", "mean_steady_goodput_bps", "of_cap", "observed_Npath_share", "path_run_max_bytes",
    "iperf3_sent_bytes", "iperf3_received_bytes", "iperf3_retransmits", "iperf3_packets",
]  # fmt: skip
MetricName = _FigureMetric | _OtherMetric
"""`N` stands for a number; docs/reference/results.md defines each."""

FIGURE_METRICS: tuple[MetricName, ...] = get_args(_FigureMetric)
"""Those that a scenario can name in `figures`."""
OTHER_METRICS: tuple[MetricName, ...] = get_args(_OtherMetric)
"""Those of which only tables and data have values, or which a kind of figure of its own shows."""
JUDGED_METRICS: tuple[MetricName, ...] = (
    "completion_s", "page_load_s", "page_load_p95_s", "request_latency_p50_us", "request_latency_p95_us",
    "request_latency_p99_us", "message_delay_p50_us", "message_delay_p95_us", "message_delay_p99_us",
    "goodput_bps", "steady_goodput_bps", "efficiency", "aggregation_benefit", "jain_index",
    "second_subflow_s", "reinjected_bytes", "retransmits", "rtt_median_us", "rtt_max_us", "queue_mean_bytes",
    "queue_max_bytes", "queueing_delay_p50_us", "queueing_delay_p95_us", "queueing_delay_p99_us", "dropped_packets",
    "udp_loss_ratio", "udp_delay_p95_us", "udp_jitter_us",
    "iperf3_udp_loss_ratio", "probe_rtt_p95_us",
)  # fmt: skip
"""Those with a better direction, by which `judge` and `plait compare` can judge."""
_PERCENTILE = re.compile(r"(?P<stem>.+)_(?P<unit>s|us)\.(?P<percentile>p\d\d)")


def judged_metric(text: str) -> str:
    """Return the name of the metric that `judge` means: `page_load_s.p95` is `page_load_p95_s`."""
    found = _PERCENTILE.fullmatch(text)
    return text if found is None else "{stem}_{percentile}_{unit}".format(**found.groupdict())


def is_judged(name: str) -> bool:
    """Return whether a metric, of the trial or of a flow, has a better direction."""
    return name.rpartition(".")[2] in JUDGED_METRICS
