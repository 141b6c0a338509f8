"""These functions recompute how a flow's bytes spread over its paths and arrive, by docs/reference/results.md."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import polars as pl
from recorded import OTHER, Flow, Trial, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def by_path(
    trial: Trial, flow: Flow, side: str, column: str, *, more_than: int = 0, after_end: bool = False
) -> dict[str, float]:
    """Return what the subflows of each path have counted by the last sample; 0 for a planned path without data."""
    total = dict.fromkeys((path["name"] for path in flow.plan["paths"]), 0.0)
    rows = trial.of("subflows", flow, side, after_end=after_end)
    path = paths_of(flow, side, rows)
    for row in rows.group_by("subflow", maintain_order=True).last().to_dicts():
        if row[column] > more_than:
            total[path[row["subflow"]]] += row[column]
    return total


def shares(total: dict[str, float]) -> dict[str, float]:
    everything = sum(total.values())
    return {path: carried / everything for path, carried in total.items()} if everything else {}


def acked(trial: Trial, flow: Flow) -> dict[str, float]:
    """Return the payload that subflows of the sender had acknowledged, by path."""
    return by_path(trial, flow, flow.sender, "acked_bytes", more_than=2)


def path_share_max(trial: Trial) -> float | None:
    """Return the greatest share of a path; with several flows, the greatest over those of MPTCP."""
    flows = trial.connected if len(trial.connected) == 1 else trial.multipath or trial.connected
    return max((share for flow in flows for share in shares(acked(trial, flow)).values()), default=None)


def path_share(trial: Trial, path: str) -> float | None:
    """Return the share of each path; a program's share covers all its connections in the foreground together."""
    total: dict[str, float] = {}
    for flow in trial.connected:
        for name, carried in acked(trial, flow).items():
            total[name] = total.get(name, 0) + carried
    return shares(total).get(path)


def flow_path_share(trial: Trial, flow: Flow, path: str) -> float | None:
    return shares(acked(trial, flow)).get(path)


def sent_over_time(trial: Trial, flow: Flow) -> list[tuple[int, dict[str, float]]]:
    """Return the bytes put on each path at each sample of the sender (retransmissions included)."""
    counted: dict[int, float] = {}
    rows = trial.of("subflows", flow, flow.sender)
    path = paths_of(flow, flow.sender, rows)
    series = []
    for frame in rows.partition_by("t_us", maintain_order=True):
        for row in frame.to_dicts():
            counted[row["subflow"]] = row["sent_bytes"]
        total = dict.fromkeys((planned["name"] for planned in flow.plan["paths"]), 0.0)
        for subflow, sent in counted.items():
            total[path[subflow]] += sent
        series.append((int(frame["t_us"][0]), total))
    return series


def differences(series: list[tuple[int, dict[str, float]]]) -> list[dict[str, float]]:
    pairs = itertools.pairwise(series)
    return [{path: now[path] - before[path] for path in now} for (_, before), (_, now) in pairs]


def window_share(trial: Trial, flow: Flow) -> float | None:
    """Return the greatest share over windows that end at a sample and start at the last sample at least 1 s earlier."""
    start, end = flow.span
    if end - start < 2_000_000:
        return None
    series = [(t, sent) for t, sent in sent_over_time(trial, flow) if t >= start + 1_000_000]
    window_shares: list[float] = []
    for until, sent in series:
        before = [other for t, other in series if t <= until - 1_000_000]
        if before:
            window_shares += shares({path: sent[path] - before[-1][path] for path in sent}).values()
    return max(window_shares, default=None)


def path_share_window_max(trial: Trial) -> float | None:
    return greatest(window_share(trial, flow) for flow in trial.multipath)


def greatest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def observed(trial: Trial, paths: int) -> float | None:
    """Return bytes that the best so many paths have brought / bytes of the stream, at most 1."""
    ratios = []
    for flow in trial.multipath:
        brought = sorted(
            by_path(trial, flow, OTHER[flow.sender], "received_bytes", after_end=True).values(), reverse=True
        )
        ratios.append(min(1.0, sum(brought[:paths]) / flow.row["received_bytes"]))
    return max(ratios, default=None)


def switches(trial: Trial, flow: Flow) -> float | None:
    """Count k - 1 between two samples with bytes on k paths, and one more when none is among those of before."""
    series = sent_over_time(trial, flow)
    count, before = 0, set[str]()
    for given in differences(series):
        paths = {path for path, sent in given.items() if sent > 0}
        if paths:
            count += len(paths) - 1 + bool(before and not paths & before)
            before = paths
    return count * 1e6 / (series[-1][0] - series[0][0]) if len(series) > 1 else None


def path_switches_per_s(trial: Trial) -> float | None:
    return greatest(switches(trial, flow) for flow in trial.multipath)


def run_bytes(trial: Trial, flow: Flow) -> float | None:
    """Return the most bytes in a row that one path was given while no other was given any, between samples."""
    best, run, last = 0.0, 0.0, None
    for given in differences(sent_over_time(trial, flow)):
        paths = [path for path, sent in given.items() if sent > 0]
        if len(paths) == 1:
            run = (run if paths[0] == last else 0) + given[paths[0]]
            last, best = paths[0], max(best, run)
        elif paths:
            run, last = 0.0, None
    return best or None


def path_run_max_bytes(trial: Trial) -> float | None:
    return greatest(run_bytes(trial, flow) for flow in trial.multipath)


def waiting(trial: Trial, flow: Flow) -> tuple[list[float], list[float]] | None:
    """Return w(t) = e(t) - c(t), and c(t), at the receiver's samples."""
    receiver = OTHER[flow.sender]
    arrived = trial.of("subflows", flow, receiver)
    stream = dict(trial.of("connections", flow, receiver).select("t_us", "received_bytes").iter_rows())
    sender = trial.of("connections", flow, flow.sender).select("t_us", "retransmitted_bytes")
    again = [(t, sent) for t, sent in sender.iter_rows() if sent is not None]
    if not again:
        return None
    counted: dict[int, float] = {}
    excess: list[tuple[int, float]] = []
    for frame in arrived.partition_by("t_us", maintain_order=True):
        for row in frame.to_dicts():
            counted[row["subflow"]] = row["received_bytes"]
        t = int(frame["t_us"][0])
        if stream.get(t) is not None:
            excess.append((t, sum(counted.values()) - stream[t]))
    copies, least = [], float("inf")
    for t, e in reversed(excess):
        least = min(least, e)
        copies.append(max(0.0, min(least, max((sent for at, sent in again if at <= t), default=0))))
    copies.reverse()
    return [e - c for (_, e), c in zip(excess, copies, strict=True)], copies


def all_waiting(trial: Trial) -> list[tuple[list[float], list[float]]]:
    return [curve for flow in trial.multipath if (curve := waiting(trial, flow)) is not None]


def duplicate_bytes(trial: Trial) -> float | None:
    curves = all_waiting(trial)
    return sum(copies[-1] for _, copies in curves) if curves else None


def out_of_order_max_bytes(trial: Trial) -> float | None:
    return greatest(max(waits) for waits, _ in all_waiting(trial))


def out_of_order_mean_bytes(trial: Trial) -> float | None:
    return greatest(sum(waits) / len(waits) for waits, _ in all_waiting(trial))


def last_of(trial: Trial, flow: Flow, table: str, column: str) -> list[float]:
    key = ["subflow"] if table == "subflows" else ["flow"]
    last = trial.of(table, flow, flow.sender).group_by(key, maintain_order=True).last()
    return [value for value in last[column].to_list() if value is not None]


def subflows_used(trial: Trial) -> float | None:
    """Return the number of subflows that carried data (more than their SYN and FIN)."""
    return greatest(
        sum(1 for sent in last_of(trial, flow, "subflows", "acked_bytes") if sent > 2)
        for flow in trial.connected
    )


def retransmits(trial: Trial) -> float | None:
    """Return segments sent again by TCP: the last counters of each subflow, of each sending side of a connection once.

    A bulk flow stops while data are in flight, so its counters are those at its end.
    """
    counts: dict[tuple[int, str], float] = {}
    for flow in trial.connected:
        rows = trial.of("subflows", flow, flow.sender, after_end=flow.kind != "bulk")
        last = rows.group_by("subflow", maintain_order=True).last()["retransmitted_segments"].drop_nulls()
        counts[flow.connection, flow.sender] = float(last.sum())
    return sum(counts.values()) if counts else None


def reinjected_bytes(trial: Trial) -> float | None:
    """Return bytes that MPTCP sent again on another subflow; null for TCP."""
    counts = [last_of(trial, flow, "connections", "retransmitted_bytes") for flow in trial.multipath]
    return sum(sum(values) for values in counts) if counts else None


def second_subflow_s(trial: Trial) -> float | None:
    """Return the mean time from connect() to the sender's first data on another subflow than the initial one."""
    delays = []
    for flow in trial.multipath:
        rows = trial.of("subflows", flow, flow.sender)
        with_data = rows.filter((pl.col("subflow") != 0) & (pl.col("sent_bytes") > 0))
        first = with_data.group_by("subflow", maintain_order=True).first().to_dicts()
        if first:
            delays.append((min(row["t_us"] - row["busy_us"] for row in first) - flow.row["start_us"]) / 1e6)
    return sum(delays) / len(delays) if delays else None


def flow_stall(trial: Trial, flow: Flow) -> float | None:
    """Return the longest time in s over which `received_bytes` of the receiver's samples stays the same."""
    if flow.kind not in {"bulk", "transfer"} or flow.row["first_byte_us"] is None:
        return None
    rows = trial.of("connections", flow, OTHER[flow.sender], after_end=flow.row["end_us"] is None)
    rows = rows.filter(pl.col("t_us") >= flow.row["first_byte_us"])
    spans = rows.group_by("received_bytes").agg(pl.col("t_us").max() - pl.col("t_us").min())["t_us"].to_list()
    return max(spans) / 1e6 if spans else None


def longest_stall(trial: Trial) -> float | None:
    """Return that of the flow with the longest; null if one of them has none."""
    stalls = [flow_stall(trial, flow) for flow in trial.connected if flow.kind in {"bulk", "transfer"}]
    return greatest(stalls) if None not in stalls else None


def round_trips(trial: Trial) -> list[float]:
    """Return the kernel's smoothed round-trip time, over all samples of sending subflows that carry data."""
    samples: list[float] = []
    for flow in trial.connected:
        rows = trial.of("subflows", flow, flow.sender, after_end=True)
        samples += rows.filter((pl.col("acked_bytes") > 2) & pl.col("rtt_us").is_not_null())[
            "rtt_us"
        ].to_list()
    return samples


def rtt_median_us(trial: Trial) -> float | None:
    return pl.Series(round_trips(trial), dtype=pl.Float64).median()


def rtt_max_us(trial: Trial) -> float | None:
    return greatest(round_trips(trial))
