"""A flow of a trial as a data file of flent: each subflow is a stream of its tests `tcp_nup` and `tcp_ndown`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from plait.analysis.subflow_samples import subflow_samples
from plait.dataset.model import Tables
from plait.plan.model.plan import Flow, Plan

FORMAT = 4
"""The version of flent's file format, which flent 1.0 and later read."""
PING = "Ping (ms) ICMP"
_ZERO = "1970-01-01T00:00:00.000000Z"
"""Times are virtual: the trial's zero is the epoch, so that the same trial has the same file."""
_RAW = (
    ("tcp_rtt", "rtt_us", 1e-3),
    ("tcp_cwnd", "cwnd_segments", 1.0),
    ("tcp_delivery_rate", "delivery_rate_bps", 1e-6),
)


def flent_file(document: Mapping[str, Any]) -> bytes:
    """Return the content of a `.flent.gz` file."""
    return gzip.compress(json.dumps(document, indent=1, sort_keys=True, allow_nan=False).encode(), mtime=0)


def flent_document(plan: Plan, flow: Flow, tables: Tables, title: str, version: str) -> dict[str, Any]:
    """Return a flow in flent's format: goodput in Mbit/s per sample, RTTs in ms; null for what was not measured.

    The streams are the subflows. `Ping (ms) ICMP` has the probes of the scenario (`monitors.ping`), if it has any: the
    mean of the replies to those that left since the sample before. Where they take several paths, each path has a
    series of its own, with its name behind.
    """
    subflows = subflow_samples(flow, tables["subflows"])
    direction = "upload" if flow.sender == "client" else "download"
    step = plan.sample_interval_us
    last = max((subflow.samples["t_us"][-1] for subflow in subflows), default=0)
    grid = [number * step for number in range(last // step + 1)]
    streams = {f"TCP {direction}::{number}": subflow for number, subflow in enumerate(subflows, 1)}
    series = {
        name: _on_grid(
            subflow.samples["t_us"].to_list(), subflow.samples["goodput_bps"].to_list(), grid, 1e-6
        )
        for name, subflow in streams.items()
    }
    sums = [_sum([values[index] for values in series.values()]) for index in range(len(grid))]
    means = [
        None if total is None else total / sum(values[index] is not None for values in series.values())
        for index, total in enumerate(sums)
    ]
    results: dict[str, Any] = {**series, f"TCP {direction} sum": sums, f"TCP {direction} avg": means}
    raw = {name: _raw(subflow.samples) for name, subflow in streams.items()}
    probes = tables.get("probes")
    if probes is not None:
        paths = probes["path"].unique(maintain_order=True).to_list()
        for path in paths:
            name = PING if len(paths) == 1 else f"{PING} {path}"
            replies = probes.filter(pl.col("path").eq_missing(path)).drop_nulls("rtt_us").sort("t_us")
            times, rtts = replies["t_us"].to_list(), replies["rtt_us"].to_list()
            results[name] = _on_grid(times, rtts, grid, 1e-3)
            raw[name] = [
                {"t": time_s / 1e6, "val": rtt / 1e3} for time_s, rtt in zip(times, rtts, strict=True)
            ]
    return {
        "version": FORMAT,
        "metadata": _metadata(
            plan, flow, direction, {name: s.label for name, s in streams.items()}, grid[-1] / 1e6
        )
        | {"TITLE": title, "FLENT_VERSION": f"plait {version}"},
        "x_values": [time_s / 1e6 for time_s in grid],
        "results": results,
        "raw_values": raw,
    }


def _metadata(
    plan: Plan, flow: Flow, direction: str, labels: Mapping[str, str], seconds: float
) -> dict[str, Any]:
    name = "tcp_nup" if direction == "upload" else "tcp_ndown"
    return {
        "NAME": name,
        "NOTE": f"Exported by plait; the streams are the subflows of {flow.name}. Times are virtual.",
        "HOST": flow.server.address,
        "HOSTS": [flow.server.address],
        "LOCAL_HOST": flow.client.address,
        "TIME": _ZERO,
        "T0": _ZERO,
        "LENGTH": seconds,
        "TOTAL_LENGTH": seconds,
        "STEP_SIZE": plan.sample_interval_us / 1e6,
        "TEST_PARAMETERS": {f"{direction}_streams": str(len(labels))},
        "DATA_FILENAME": f"{name}.flent.gz",
        "SERIES_META": {stream: {"PATH": label, "UNITS": "Mbits/s"} for stream, label in labels.items()},
    }


def _on_grid(
    times: Sequence[int], values: Sequence[float | None], grid: Sequence[int], factor: float
) -> list[float | None]:
    """Return the mean of the values in each step that ends at a time of the grid; None without a value."""
    step = grid[1] - grid[0] if len(grid) > 1 else 1
    bins: dict[int, list[float]] = {}
    for time_s, value in zip(times, values, strict=True):
        if value is not None:
            bins.setdefault(-(-time_s // step), []).append(value)
    return [
        sum(bins[number]) / len(bins[number]) * factor if number in bins else None
        for number in range(len(grid))
    ]


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _raw(samples: pl.DataFrame) -> list[dict[str, float]]:
    """Return the samples of a stream; a value that was not measured is absent."""
    rows = []
    for row in samples.iter_rows(named=True):
        known = {name: row[column] * factor for name, column, factor in _RAW if row[column] is not None}
        if row["goodput_bps"] is not None:
            known["val"] = row["goodput_bps"] / 1e6
        rows.append({"t": row["t_us"] / 1e6, **known})
    return rows
