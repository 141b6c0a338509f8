"""What each metric is called on an axis, and in which unit it is shown there."""

from __future__ import annotations

TITLES: dict[str, str] = {
    "goodput_bps": "Goodput",
    "steady_goodput_bps": "Steady goodput",
    "completion_s": "Completion time",
    "ideal_goodput_bps": "Goodput that the links allow",
    "efficiency": "Goodput, of what the links allow",
    "aggregation_benefit": "Aggregation benefit",
    "best_path_ratio": "Goodput / what the best path alone allows TCP",
    "path_share_max": "Largest share of a path",
    "path_share_window_max": "Largest share of a path in any second",
    "path_switches_per_s": "Switches of path",
    "duplicate_bytes": "Bytes that came twice",
    "out_of_order_max_bytes": "Most that waited out of order",
    "out_of_order_mean_bytes": "Mean that waited out of order",
    "subflows_used": "Subflows that carried data",
    "retransmits": "Retransmitted segments",
    "reinjected_bytes": "Reinjected bytes",
    "jain_index": "Jain's index",
    "second_subflow_s": "First data on a second subflow",
    "message_delay_p50_us": "Median message delay",
    "message_delay_p95_us": "95th percentile of message delay",
    "message_delay_p99_us": "99th percentile of message delay",
    "message_delay_max_us": "Largest message delay",
    "request_latency_p50_us": "Median request latency",
    "request_latency_p95_us": "95th percentile of request latency",
    "request_latency_p99_us": "99th percentile of request latency",
    "request_latency_max_us": "Largest request latency",
    "page_load_s": "Page load time",
    "page_load_max_s": "Largest page load time",
    "udp_loss_ratio": "UDP packets lost",
    "udp_delay_p50_us": "Median UDP delay",
    "udp_delay_p95_us": "95th percentile of UDP delay",
    "udp_delay_p99_us": "99th percentile of UDP delay",
    "udp_delay_max_us": "Largest UDP delay",
    "udp_jitter_us": "UDP jitter",
    "rtt_median_us": "Median round-trip time",
    "rtt_max_us": "Largest round-trip time",
    "queue_mean_bytes": "Mean queue",
    "queue_max_bytes": "Largest queue",
    "dropped_packets": "Dropped packets",
    "duration_s": "Duration of the program",
    "iperf3_sent_bps": "Rate that iperf3 sent at",
    "iperf3_received_bps": "Goodput that iperf3 tells",
    "iperf3_udp_bps": "Rate of UDP that iperf3 sent at",
    "iperf3_lost_packets": "UDP packets that iperf3 missed",
    "iperf3_jitter_us": "UDP jitter that iperf3 tells",
    "iperf3_udp_loss_ratio": "UDP packets that iperf3 lost",
    "iperf3_udp_jitter_us": "UDP jitter that iperf3 tells, in the mean",
    "probe_rtt_p50_us": "Median RTT of probes",
    "probe_rtt_p95_us": "95th percentile of the probes' RTT",
    "probe_loss_ratio": "Probes without an answer",
    "path_share": "Share of the path",
}
"""Those of single flows, paths and programs have its name before a dot."""

_SHARE = ((0.01, "%"),)
_UNITS: tuple[tuple[str, tuple[tuple[float, str], ...]], ...] = (
    ("_per_s", ((1.0, "1/s"),)),
    ("_bps", ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s"))),
    ("_us", ((1e6, "s"), (1e3, "ms"), (1.0, "\N{MICRO SIGN}s"))),
    ("_s", ((1.0, "s"), (1e-3, "ms"))),
    ("_bytes", ((1e6, "MB"), (1e3, "kB"), (1.0, "B"))),
    ("efficiency", _SHARE),
    ("_loss_ratio", _SHARE),
    ("path_share", _SHARE),
    ("path_share_max", _SHARE),
    ("path_share_window_max", _SHARE),
)
"""By the end of a metric's name; ratios and counts have no unit."""


def title_of(metric: str) -> str:
    """Return what `metric` is called; of a flow, a path or a program, with its name behind."""
    owner, _, name = metric.rpartition(".")
    title = TITLES.get(name) or TITLES.get(metric) or metric
    return f"{title}, {owner}" if owner else title


def scale_of(metric: str, largest: float) -> tuple[float, str]:
    """Return the divisor and the unit in which `metric` is shown when its largest value is `largest`."""
    units = next((units for ending, units in _UNITS if metric.endswith(ending)), ((1.0, ""),))
    return next(((factor, unit) for factor, unit in units if largest >= factor), units[-1])


def axis_title(metric: str, unit: str) -> str:
    """Return the title of an axis: what it is, and its unit if it has one."""
    return f"{title_of(metric)}, {unit}" if unit else title_of(metric)
