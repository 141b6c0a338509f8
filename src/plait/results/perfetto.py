"""A trial as a trace for the Perfetto viewer, in the JSON trace event format that it and chrome://tracing read.

Each flow is a process, each subflow a thread with a slice for its life, and three counters beside it. Events are
instants.
Links are counters of the process `network`. Format: the "Trace Event Format" of the Chromium project.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from plait.analysis.subflow_samples import SubflowSamples, subflow_samples
from plait.dataset.model import Tables
from plait.plan.model.plan import Flow, Plan

NETWORK = 1
"""The number of the process that has the links, and the events that belong to no flow."""
_FIRST_FLOW = 2
_CONNECTION = 1
"""The thread of a flow that has the events of the whole connection."""
_FIRST_SUBFLOW = 2
_COUNTERS = (
    ("goodput", "goodput_bps", "Mbit/s", 1e-6),
    ("rtt", "rtt_us", "ms", 1e-3),
    ("cwnd", "cwnd_segments", "segments", 1.0),
)

Event = dict[str, Any]


def perfetto_trace(plan: Plan, tables: Tables, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the trace of a trial; its times are microseconds from the trial's zero.

    A counter keeps a value until its next one. The goodput between two samples starts at the first of them; the counter
    is 0 after the last sample of a subflow. A value that plait did not measure leaves the counter unchanged.

    Args:
        plan: the plan, with the connections of programs as flows.
        tables: the tables of the trial.
        facts: what the trace says about its origin.
    """
    events: list[Event] = [_name("process_name", NETWORK, 0, "network"), *_links(tables["links"])]
    threads: dict[tuple[int, str, str], int] = {}
    for flow in plan.flows:
        process = _FIRST_FLOW + flow.id
        events += [
            _name("process_name", process, 0, f"{flow.name} ({flow.transport})"),
            _name("thread_name", process, _CONNECTION, "connection"),
        ]
        events += _life(flow, process, tables["flows"])
        for subflow in subflow_samples(flow, tables["subflows"]):
            thread = _FIRST_SUBFLOW + subflow.number
            threads[flow.id, subflow.local, subflow.remote] = thread
            threads[flow.id, subflow.remote, subflow.local] = thread
            events += _subflow(process, thread, subflow)
    flows = {flow.id for flow in plan.flows}
    events += [_instant(row, flows, threads) for row in tables["events"].iter_rows(named=True)]
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": dict(facts)}


def _name(kind: str, process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _life(flow: Flow, process: int, flows: pl.DataFrame) -> Iterator[Event]:
    """Yield the slice of a flow from its start to its end."""
    for row in flows.filter(pl.col("flow") == flow.id).iter_rows(named=True):
        if row["start_us"] is not None and row["end_us"] is not None:
            kept = (
                "kind",
                "congestion_control",
                "sent_bytes",
                "received_bytes",
                "completed",
                "fallback",
                "error",
            )
            yield {
                "ph": "X",
                "cat": "flow",
                "name": flow.name,
                "pid": process,
                "tid": _CONNECTION,
                "ts": row["start_us"],
                "dur": row["end_us"] - row["start_us"],
                "args": {name: row[name] for name in kept if row[name] is not None},
            }


def _subflow(process: int, thread: int, subflow: SubflowSamples) -> Iterator[Event]:
    """Yield the name of a subflow's track, the slice of its life, and its counters."""
    yield _name("thread_name", process, thread, f"subflow {subflow.number}: {subflow.label}")
    samples = subflow.samples
    times = samples["t_us"].to_list()
    yield {
        "ph": "X",
        "cat": "subflow",
        "name": subflow.label,
        "pid": process,
        "tid": thread,
        "ts": times[0],
        "dur": times[-1] - times[0],
        "args": {
            "local": subflow.local,
            "remote": subflow.remote,
            "acked_bytes": samples["acked_bytes"][-1],
            "retransmitted_bytes": samples["retransmitted_bytes"][-1],
        },
    }
    for name, column, unit, factor in _COUNTERS:
        values = samples[column].to_list()
        if column == "goodput_bps":  # the value at a sample counts from the sample before
            values = [*values[1:], 0.0]
        title = f"{name} {subflow.number}: {subflow.label}"
        yield from (
            _counter(process, title, t_us, unit, value * factor)
            for t_us, value in zip(times, values, strict=True)
            if value is not None
        )


def _counter(process: int, title: str, t_us: int, unit: str, value: float) -> Event:
    return {"ph": "C", "name": title, "pid": process, "tid": 0, "ts": t_us, "args": {unit: value}}


def _links(links: pl.DataFrame) -> Iterator[Event]:
    """Yield the queue of each link direction that has one, and the frames that it dropped so far."""
    for part in links.sort("t_us", maintain_order=True).partition_by("link", maintain_order=True):
        name = part["link"][0]
        for title, column, unit in (
            ("queue", "queue_bytes", "bytes"),
            ("dropped", "dropped_packets", "packets"),
        ):
            known = part.select("t_us", column).drop_nulls()
            yield from (
                _counter(NETWORK, f"{title} {name}", t_us, unit, value) for t_us, value in known.iter_rows()
            )


def _instant(row: Mapping[str, Any], flows: set[int], threads: Mapping[tuple[int, str, str], int]) -> Event:
    """Return an event as an instant: on its subflow's track, else on its connection's, else for the whole trace."""
    process, thread, scope = NETWORK, 0, "g"
    if row["flow"] in flows:
        process, scope = _FIRST_FLOW + row["flow"], "t"
        ends = (_endpoint(row, "local"), _endpoint(row, "remote"))
        thread = threads.get((row["flow"], *ends), _CONNECTION)
    return {
        "ph": "i",
        "cat": "event",
        "name": row["event"] if scope == "t" else f"{row['event']} {row['node']}",
        "pid": process,
        "tid": thread,
        "ts": row["t_us"],
        "s": scope,
        "args": {
            name: value for name, value in row.items() if value is not None and name not in ("t_us", "event")
        },
    }


def _endpoint(row: Mapping[str, Any], side: str) -> str:
    address, port = row[f"{side}_address"], row[f"{side}_port"]
    return f"[{address}]:{port}" if ":" in str(address) else f"{address}:{port}"
