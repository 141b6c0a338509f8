"""These functions recompute goodputs and times as docs/reference/results.md defines them."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

from recorded import OTHER, Flow, Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

Span = tuple[float, float]


def active_us(spans: Sequence[Span]) -> float:
    """Return how long any of the spans covers."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def together(flows: list[Flow]) -> float | None:
    """Return application bytes * 8 / seconds of all flows together, over the time in which any of them is active."""
    if not flows or not all(flow.row["completed"] for flow in flows):
        return None
    return sum(flow.row["received_bytes"] for flow in flows) * 8e6 / active_us([flow.span for flow in flows])


def goodput(trial: Trial) -> float | None:
    """Return the goodput of the flows in the foreground."""
    return together(trial.foreground)


def flow_goodput(_: Trial, flow: Flow) -> float | None:
    return together([flow])


def window(trial: Trial, flow: Flow) -> Span | None:
    """Return begin and end; a time without a sign counts from the start, one with a minus from the end."""
    measure = trial.plan["measure"]
    start, end = flow.span
    ends = [start, end]
    for at, key in enumerate(("from_us", "to_us")):
        value = measure[key]
        if value is not None:
            ends[at] = start + value if value >= 0 else end + value
    return (ends[0], ends[1]) if start <= ends[0] < ends[1] <= end else None


def curve(trial: Trial, flow: Flow) -> list[tuple[float, float]]:
    """Return bytes at the receiver by time: none at the start, the samples, and all at the end if no sample follows."""
    start, end = flow.span
    samples = trial.of("connections", flow, OTHER[flow.sender], after_end=True).select(
        "t_us", "received_bytes"
    )
    points = [(float(t), float(count)) for t, count in samples.iter_rows() if t > start]
    if not points or points[-1][0] < end:
        points.append((end, float(flow.row["received_bytes"])))
    return [(start, 0.0), *points]


def bytes_at(points: list[tuple[float, float]], t: float) -> float:
    """Return bytes at a time, interpolated between samples."""
    after = bisect.bisect_left([x for x, _ in points], t)
    x1, y1 = points[after]
    if x1 == t:
        return y1
    x0, y0 = points[after - 1]
    return y0 + (y1 - y0) * (t - x0) / (x1 - x0)


def window_bytes(trial: Trial, flow: Flow, span: Span) -> float:
    """Return bytes in a window; of UDP those of the packets that arrived in it."""
    if flow.kind == "udp":
        arrived = [
            row for row in trial.rows("messages") if row["flow"] == flow.id and row["received_us"] is not None
        ]
        return float(sum(row["bytes"] for row in arrived if span[0] < row["received_us"] <= span[1]))
    points = curve(trial, flow)
    first, last = points[0][0], points[-1][0]
    low, high = (min(max(t, first), last) for t in span)
    return bytes_at(points, high) - bytes_at(points, low)


def steady(trial: Trial, flows: list[Flow]) -> float | None:
    """Return the sum of the flows' goodputs over their windows; null when one is too short or they never overlap."""
    if trial.plan["measure"] is None or not flows or not all(flow.row["completed"] for flow in flows):
        return None
    spans = [window(trial, flow) for flow in flows]
    measured = [span for span in spans if span is not None]
    if len(measured) < len(spans):
        return None
    if max(start for start, _ in measured) >= min(end for _, end in measured):
        return None  # never all at one time
    return sum(
        window_bytes(trial, flow, span) * 8e6 / (span[1] - span[0])
        for flow, span in zip(flows, measured, strict=True)
    )


def steady_goodput(trial: Trial) -> float | None:
    return steady(trial, trial.foreground)


def flow_steady_goodput(trial: Trial, flow: Flow) -> float | None:
    return steady(trial, [flow])


def completion(flows: list[Flow]) -> float | None:
    """Return the time from the start of the first transfer to the last byte of the last one."""
    transfers = [flow for flow in flows if flow.kind == "transfer"]
    if not transfers or not all(flow.row["completed"] for flow in transfers):
        return None
    return (max(flow.span[1] for flow in transfers) - min(flow.span[0] for flow in transfers)) / 1e6


def completion_s(trial: Trial) -> float | None:
    return completion(trial.foreground)


def flow_completion_s(_: Trial, flow: Flow) -> float | None:
    return completion([flow])


def mean_of(values: list[float | None]) -> float | None:
    """Return the mean; null when one of them is."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured and len(measured) == len(values) else None


def group_goodput(trial: Trial, group: str) -> float | None:
    return mean_of([together([flow]) for flow in trial.flows if flow.plan["group"] == group])


def group_steady_goodput(trial: Trial, group: str) -> float | None:
    return mean_of([steady(trial, [flow]) for flow in trial.flows if flow.plan["group"] == group])


def sharers(trial: Trial) -> list[list[Flow]]:
    """Return the users; without users, the flows: what follows each other is one, so are the connections of a page.

    The second direction of a connection is none.
    """
    flows = [flow for flow in trial.foreground if flow.plan["connection"] is None]
    users = {flow.plan["user"] for flow in flows} - {None}
    if users:
        return [[flow for flow in flows if flow.plan["user"] == user] for user in sorted(users)]
    chains: list[list[Flow]] = []
    for flow in flows:
        page = flow.plan.get("application", {}).get("page")
        follows = {*flow.plan["after"], *([] if page is None else [page])}
        before = [chain for chain in chains if {member.id for member in chain} & follows]
        if before:
            before[0].append(flow)
        else:
            chains.append([flow])
    return chains


def jain_index(trial: Trial) -> float | None:
    """(sum x)^2 / (n sum x^2) over the goodputs."""
    paced = {flow.kind in {"stream", "on_off", "udp"} for flow in trial.foreground}
    if len(paced) > 1 and not any(flow.plan["user"] for flow in trial.foreground):
        return None
    goodputs = [together(chain) for chain in sharers(trial)]
    measured = [x for x in goodputs if x is not None]
    if len(measured) < 2 or len(measured) < len(goodputs):
        return None
    return sum(measured) ** 2 / (len(measured) * sum(x * x for x in measured))


def program_duration(trial: Trial, program: str) -> float | None:
    """Return the time from the start of a program to its end by itself; null when plait stopped it."""
    [row] = [row for row in trial.rows("programs") if row["program"] == program]
    return None if row["stopped"] or row["end_us"] is None else (row["end_us"] - row["start_us"]) / 1e6


def program_goodput(trial: Trial, program: str) -> float | None:
    """Return the goodput of the foreground connections that a program opened."""
    return together([flow for flow in trial.foreground if flow.program == program])


def program_figure(trial: Trial, program: str, figure: str) -> float | None:
    figures = [
        row["value"]
        for row in trial.rows("program_figures")
        if (row["program"], row["figure"]) == (program, figure)
    ]
    return figures[0] if figures else None


def group_completions(trial: Trial, group: str) -> list[float] | None:
    """Return the completion times of the transfers of a group, ascending; null when one did not complete."""
    values = [completion([flow]) for flow in trial.flows if flow.plan["group"] == group]
    known = sorted(value for value in values if value is not None)
    return known if len(known) == len(values) else None


def group_mean_completion(trial: Trial, group: str) -> float | None:
    return mean_of([*(group_completions(trial, group) or [None])])


def group_completion_p99(trial: Trial, group: str) -> float | None:
    return nearest_rank(group_completions(trial, group), 0.99)


def nearest_rank(values: list[float] | None, share: float) -> float | None:
    """Return the smallest value that is at least as large as this share of all."""
    if not values:
        return None
    return next(value for i, value in enumerate(values, 1) if i / len(values) >= share - 1e-12)
