"""Which figures a scenario wants instead of those that plait would choose: names, kinds, what is on the axes, captions.

What a figure shows is no part of a trial: other figures of the same trials are made without running any.
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
"""docs/reference/results.md tells what each is."""
OVER_TIME = ("goodput", "rtt", "cwnd", "queue")
RESERVED = re.compile(r"network|(goodput|rtt|cwnd|queue)-over-time|[a-z-]+-delay-distribution")
"""Names of figures that plait always makes."""


class FigureSpec(Part):
    """One figure, of the metric of all cases or of some."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,59}$")]
    """Of its files, and on the page."""
    kind: Kind | None = None
    """`line` with intervals, `heat-map`, `scatter` (a panel for each thing that varies), `cases` (boxes and points),
    `distribution` (ECDF over trials), `over-time`. Default: by what varies."""
    metric: str | None = None
    """Default: what the study is about. Of figures over time: goodput, rtt, cwnd or queue."""
    x: str | None = None
    """The varied field along the axis. Default: the one with most values."""
    y: str | None = None
    """The other one of a heat map."""
    facets: str | None = None
    """The varied field that has a panel for each of its values."""
    only: dict[str, Any] = {}
    """The cases that are shown: `{transport: mptcp}`; a list means any of its values."""
    caption: Annotated[str, Field(max_length=2000)] = ""
    width: Literal["column", "page"] = "page"
    """Of the files: 85 mm for a column of a paper, 175 mm for the page."""
