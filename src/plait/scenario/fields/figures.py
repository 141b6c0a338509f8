"""Which figures a scenario wants instead of those that plait would choose: names, kinds, what is on the axes, captions.

What a figure shows is no part of a trial: other figures of the same trials are made without running any.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from plait.scenario.fields.parts import Part
from plait.scenario.fields.published import varied_by
from plait.scenario.read.wording import nearest
from plait.scenario.vary.text import tried

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plait.scenario.vary.text import Found, Where

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


class Figure(Part):
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


def check_figures(figures: Sequence[Figure], vary: dict[str, Any]) -> Iterator[Found]:
    """Every mistake in what figures name: metrics, fields that do not vary, names that stand twice."""
    known = list(dict.fromkeys(key for _, key, _ in tried(vary)))
    seen: set[str] = set()
    for i, figure in enumerate(figures):
        here: Where = ("figures", i)
        if figure.name in seen:
            yield (*here, "name"), f"'{figure.name}' stands here twice; every figure has a name of its own"
        elif RESERVED.fullmatch(figure.name):
            yield (*here, "name"), f"'{figure.name}' is a figure that there always is; take another name"
        seen.add(figure.name)
        yield from _metric(figure, here)
        yield from _fields(figure, here, known)


def field_named(known: Sequence[str], name: str) -> str | None:
    """The varied field that a name means: its path, or the end of one that no other has."""
    ends = [key for key in known if key == name or key.endswith(f".{name}")]
    return name if name in known else ends[0] if len(ends) == 1 else None


def without_unvaried_figures(raw: dict[str, Any]) -> None:
    """Leaves out, in place, figures over what no longer varies: for a `vary` that replaces the file's own."""
    figures = raw.get("figures")
    if isinstance(figures, list):
        known = sorted(varied_by(raw.get("vary")))
        raw["figures"] = [
            one for one in figures if all(field_named(known, name) is not None for name in _named(one))
        ]


def _named(figure: object) -> list[str]:
    """The fields that a figure names, as it stands in the file."""
    if not isinstance(figure, dict):
        return []
    axes = [figure.get(part) for part in ("x", "y", "facets")]
    only = figure.get("only")
    return [name for name in (*axes, *(only if isinstance(only, dict) else ())) if isinstance(name, str)]


def _metric(figure: Figure, here: Where) -> Iterator[Found]:
    metric = figure.metric
    if metric is None:
        return
    choices = OVER_TIME if figure.kind == "over-time" else METRICS
    name = metric.rpartition(".")[2] if figure.kind != "over-time" else metric
    if name not in choices and not re.fullmatch(r"observed_\d+path_share", name):
        right = nearest(name, choices) or "docs/reference/results.md lists them"
        yield (*here, "metric"), f"there is no metric '{metric[:60]}'; {right}"


def _fields(figure: Figure, here: Where, known: Sequence[str]) -> Iterator[Found]:
    for part in ("x", "y", "facets"):
        name = getattr(figure, part)
        if name is not None and field_named(known, name) is None:
            yield (*here, part), _unknown(name, known)
    for name in figure.only:
        if field_named(known, name) is None:
            yield (*here, "only", name), _unknown(name, known)
    allowed = {
        "line": ("x", "facets"),
        "heat-map": ("x", "y"),
        "scatter": ("x",),
        None: ("x", "y", "facets"),
    }.get(figure.kind, ())
    for part in ("x", "y", "facets"):
        if getattr(figure, part) is not None and part not in allowed:
            yield (*here, part), f"a figure of kind {figure.kind} has no {part}; leave it out"
    if figure.kind in {"line", "heat-map", "scatter"} and not known:
        yield (
            (*here, "kind"),
            f"nothing varies, so there is nothing along the axes of a {figure.kind}; see vary",
        )


def _unknown(name: str, known: Sequence[str]) -> str:
    if not known:
        return f"'{name[:60]}' does not vary; nothing does: see vary"
    return f"'{name[:60]}' does not vary, or means several; {nearest(name, known) or 'see vary'}"
