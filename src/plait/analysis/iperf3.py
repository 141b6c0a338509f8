"""A flow in the shape of `iperf3 -J`, with its subflows in an array of their own."""

from __future__ import annotations

from typing import Any

import polars as pl

from plait.analysis.translation import path_name
from plait.dataset.model import Tables
from plait.errors import RequestError
from plait.metrics import all_known
from plait.plan.model.plan import Flow, Plan

_SECOND_US = 1_000_000


def exportable(plan: Plan) -> list[Flow]:
    """Return the flows that have this shape: one connection, over TCP or MPTCP."""
    return [flow for flow in plan.flows if flow.transport != "udp" and flow.kind != "page"]


def iperf3_document(flow: Flow, tables: Tables, version: str) -> dict[str, Any]:
    """Return what `iperf3 -J` would print of this flow; bytes, seconds, bit/s; null for what was not measured.

    Intervals are of one second, each from the last sample at or before its beginning to the last one at or before its
    end, with the bytes that the sender's connection sent at the data level. Each interval and the end have `subflows`.
    RequestError when the trial has no row of the flow.
    """
    row = tables["flows"].filter(pl.col("flow") == flow.id)
    if row.is_empty():
        raise RequestError(f"exporting flow {flow.name}: the trial has no row of it in the table flows")
    [flow_row] = row.to_dicts()
    start, end = flow_row["start_us"], flow_row["end_us"]
    mine = (
        (pl.col("flow") == flow.carrier)
        & (pl.col("side") == flow.sender)
        & pl.col("t_us").is_between(start or 0, end or 0)
    )
    connection = tables["connections"].filter(mine).sort("t_us")
    subflows = tables["subflows"].filter(mine).sort("t_us")
    seconds = None if start is None or end is None else (end - start) / 1e6
    last = [
        _subflow(flow, frame) for _, frame in sorted(subflows.group_by("subflow"), key=lambda part: part[0])
    ]
    resent = all_known(frame["retransmits"] for frame in last)
    retransmits = sum(resent) if resent else None
    sent = _amount(0.0, seconds, flow_row["sent_bytes"]) | {"retransmits": retransmits, "sender": True}
    received = _amount(0.0, seconds, flow_row["received_bytes"]) | {"sender": True}
    control = {"sender_tcp_congestion": flow_row["congestion_control"]}
    return {
        "start": {
            "version": f"plait {version}",
            "connected": [_connected(flow)],
            "test_start": {
                "protocol": flow.transport.upper(),
                "num_streams": 1,
                "reverse": int(flow.sender == "server"),
                "duration": seconds,
            },
        },
        "intervals": _intervals(connection, subflows, start),
        "end": {
            "streams": [
                {"sender": {"socket": 1, **sent}, "receiver": {"socket": 1, **received}, "subflows": last}
            ],
            "sum_sent": sent,
            "sum_received": received,
            **control,
        },
        **({} if flow_row["error"] is None else {"error": flow_row["error"]}),
    }


def _connected(flow: Flow) -> dict[str, Any]:
    ends = {"local_host": flow.client.address, "local_port": flow.client.port or None}
    return {"socket": 1, **ends, "remote_host": flow.server.address, "remote_port": flow.server.port}


def _amount(start: float, end: float | None, count: int | None) -> dict[str, Any]:
    """Bytes over a time, as iperf3 writes it."""
    seconds = None if end is None else end - start
    rate = None if not seconds or count is None else count * 8 / seconds
    return {"start": start, "end": end, "seconds": seconds, "bytes": count, "bits_per_second": rate}


def _intervals(connection: pl.DataFrame, subflows: pl.DataFrame, start: int | None) -> list[dict[str, Any]]:
    """Return one entry a second, from sample to sample."""
    intervals: list[dict[str, Any]] = []
    if start is None or connection.is_empty():
        return intervals
    begun = {"t_us": start, "sent_bytes": 0}
    previous = begun
    number = (pl.col("t_us") - start - 1) // _SECOND_US
    for (_,), part in connection.group_by(number.alias("second"), maintain_order=True):
        last = part.row(-1, named=True)
        if last["t_us"] <= previous["t_us"]:
            continue
        is_complete = last["sent_bytes"] is not None and previous["sent_bytes"] is not None
        moved = last["sent_bytes"] - previous["sent_bytes"] if is_complete else None
        amount = _amount((previous["t_us"] - start) / 1e6, (last["t_us"] - start) / 1e6, moved)
        stream = {
            "socket": 1,
            **amount,
            "subflows": _within(subflows, previous["t_us"], last["t_us"], start),
            "sender": True,
        }
        intervals.append({"streams": [stream], "sum": {**amount, "sender": True}})
        previous = last
    return intervals


def _within(subflows: pl.DataFrame, low: int, high: int, start: int) -> list[dict[str, Any]]:
    """Return what each subflow sent between two samples, new payload only."""
    streams = []
    fresh = pl.col("sent_bytes") - pl.col("retransmitted_bytes")
    for (number,), frame in sorted(subflows.group_by("subflow"), key=lambda part: part[0]):
        end_us = frame.filter(pl.col("t_us") <= high).select(
            "t_us", fresh.alias("fresh"), "rtt_us", "cwnd_segments", "mss_bytes"
        )
        if end_us.is_empty() or end_us["t_us"][-1] <= low:
            continue
        earlier = end_us.filter(pl.col("t_us") <= low)
        first = earlier["fresh"][-1] if earlier.height else 0
        last = end_us.row(-1, named=True)
        is_sampled = last["fresh"] is not None and first is not None
        amount = _amount(
            (low - start) / 1e6, (high - start) / 1e6, last["fresh"] - first if is_sampled else None
        )
        streams.append({"id": number, **amount, "rtt": last["rtt_us"], "snd_cwnd": _window(last)})
    return streams


def _window(row: dict[str, Any]) -> int | None:
    cwnd, mss = row["cwnd_segments"], row["mss_bytes"]
    return None if cwnd is None or mss is None else cwnd * mss


def _subflow(flow: Flow, samples: pl.DataFrame) -> dict[str, Any]:
    """A subflow over the whole flow: its ends, its path, what it sent, and its RTT (us) and window (bytes)."""
    last = samples.row(-1, named=True)
    sent, resent = last["sent_bytes"], last["retransmitted_bytes"]
    windows = (samples["cwnd_segments"] * samples["mss_bytes"]).max()
    return {
        "id": last["subflow"],
        "path": path_name(flow.paths, last),
        "local_host": last["local_address"],
        "local_port": last["local_port"],
        "remote_host": last["remote_address"],
        "remote_port": last["remote_port"],
        "backup": last["backup"],
        "bytes": None if sent is None or resent is None else sent - resent,
        "retransmits": last["retransmitted_segments"],
        "mean_rtt": samples["rtt_us"].cast(pl.Float64).mean(),
        "max_rtt": samples["rtt_us"].max(),
        "max_snd_cwnd": windows,
    }
