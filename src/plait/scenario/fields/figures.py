"""The figures of a scenario, which replace those that plait would choose: name, kind, axes, caption.

Figures do not affect trials: plait draws other figures of finished trials without running any.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field

from plait.scenario.fields.parts import Part

Kind = Literal["line", "heat-map", "scatter", "cases", "distribution", "over-time"]
METRICS = (
    "goodput_bps", "steady_goodput_bps", "completion_s", "ideal_goodput_bps", "efficiency", "aggregation_benefit",
    "best_path_ratio", "path_share", "path_share_max", "path_share_window_max", "path_switches_per_s",
    "duplicate_bytes", "out_of_order_max_bytes", "out_of_order_mean_bytes", "subflows_used", "retransmits",
    "reinjected_bytes", "jain_index",
    "second_subflow_s", "message_delay_p50_us", "message_delay_p95_us", "message_delay_p99_us",
    "message_delay_max_us", "request_latency_p50_us", "request_latency_p95_us", "request_latency_p99_us",
    "request_latency_max_us", "page_load_s", "page_load_max_s", "udp_loss_ratio", "udp_delay_p50_us",
    "udp_delay_p95_us", "udp_delay_p99_us", "udp_delay_max_us", "udp_jitter_us", "rtt_median_us", "rtt_max_us",
    "queue_mean_bytes", "queue_max_bytes", "dropped_packets", "duration_s", "iperf3_sent_bps",
    "iperf3_received_bps", "iperf3_udp_bps", "iperf3_lost_packets", "iperf3_jitter_us", "iperf3_udp_loss_ratio",
    "iperf3_udp_jitter_us", "probe_rtt_p50_us", "probe_rtt_p95_us", "probe_loss_ratio",
)  # fmt: skip
"""docs/reference/results.md defines each."""
OVER_TIME = ("goodput", "rtt", "cwnd", "queue")
RESERVED = re.compile(r"network|(goodput|rtt|cwnd|queue)-over-time|[a-z-]+-delay-distribution")
"""Names of figures that plait always draws."""


class FigureSpec(Part):
    """One figure of a metric, of all cases or of some."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]
    """Name of its files, and its heading on the page."""
    kind: Kind | None = None
    """`line` with intervals, `heat-map`, `scatter` (one panel per varied field), `cases` (boxes and points),
    `distribution` (ECDF over trials), or `over-time`. Default: depends on what varies."""
    metric: str | None = None
    """Metric to plot. Default: the main metric of the study. Over time: goodput, rtt, cwnd or queue."""
    x: str | None = None
    """Varied field on the x axis. Default: the one with most values."""
    y: str | None = None
    """Varied field on the y axis of a heat map."""
    facets: str | None = None
    """Varied field with one panel per value."""
    only: dict[str, Any] = {}
    """Cases to show: `{transport: mptcp}`; a list selects any of its values."""
    caption: Annotated[str, Field(max_length=2000)] = ""
    width: Literal["column", "page"] = "page"
    """Width of the files: 85 mm for a column of a paper, 175 mm for a page."""
