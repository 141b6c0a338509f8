"""One set of tables from those of several hosts.

Each host has its own clock. plait shifts the times of every host by a constant, so that all of them count from the zero
of the first host; the bound of the error is among the facts of the trial. Times of the receiver decide when a flow
ended, those of the client when it began.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Mapping as Map
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from plait.dataset.convert import read_stream
from plait.dataset.model import ALL_TABLES, TABLES, Tables
from plait.engine.remote.clocks import Zero
from plait.engine.remote.mapping import Mapping, Pair, flows_of
from plait.files import Folder
from plait.plan.model.plan import Flow, Plan

_OPTIONAL = ("messages", "counter_series")
FETCHED = (*TABLES, *_OPTIONAL)
"""The tables that a host may have."""


def read_hosts(folder: Path, zeros: Map[str, Zero], names: Iterable[str] = FETCHED) -> dict[str, Tables]:
    """Return the tables that each host has sent to its subfolder, with times from the zero of the first host.

    Raises:
        DataError: a table is missing or damaged, or its columns differ from the contract.
    """
    first = next(iter(zeros.values()))
    hosts: dict[str, Tables] = {}
    for node, zero in zeros.items():
        files = {name: folder / node / f"{name}.arrow" for name in names}
        present = {name: file for name, file in files.items() if name not in _OPTIONAL or file.exists()}
        hosts[node] = {
            name: _shifted(read_stream(file, name), zero.after_us(first)) for name, file in present.items()
        }
    return hosts


def merged(plan: Plan, real: Mapping, hosts: Map[str, Tables]) -> dict[str, pl.DataFrame]:
    """Return the tables of the trial, with the flows, addresses and ports of `plan`."""
    known = _Paths.collected(plan, real, hosts)
    parts: dict[str, list[pl.DataFrame]] = {}
    rows: dict[int, dict[str, dict[str, object]]] = {}
    for node, tables in hosts.items():
        flows = flows_of(plan, node)
        for name, frame in tables.items():
            numbered = _numbered(frame, flows)
            if name == "flows":
                for row in numbered.to_dicts():
                    rows.setdefault(row["flow"], {})[node] = row
            else:
                parts.setdefault(name, []).append(_planned(numbered, name, node, flows, known))
    out = {name: pl.concat(frames) for name, frames in parts.items()}
    out["events"] = _without_copies(out["events"])
    if "messages" in out:
        out["messages"] = joined_messages(plan, out["messages"])
    for name in ("connections", "subflows", "counter_series"):
        if name in out:
            out[name] = out[name].sort("t_us", maintain_order=True)
    merged_rows = [_flow_row(flow, rows.get(flow.id, {}), real) for flow in plan.flows]
    out["flows"] = pl.DataFrame(merged_rows, schema=ALL_TABLES["flows"])
    return out


def write(tables: Tables, folder: Path) -> None:
    """Write the tables as the agent does, `NAME.arrow`."""
    folder.mkdir()
    for name, frame in tables.items():
        with Folder(folder).create(f"{name}.arrow") as file:
            frame.write_ipc_stream(file, compression="uncompressed", compat_level=pl.CompatLevel.oldest())


def join_logs(folder: Path, nodes: Iterable[str]) -> None:
    """Write what the agents printed to the trial's console log."""
    for node in nodes:
        log = folder / node / "console.log"
        if log.is_file():
            lines = log.read_bytes().splitlines(keepends=True)
            Folder(folder).append("console.log", b"".join(f"{node}: ".encode() + line for line in lines))


def _shifted(frame: pl.DataFrame, later_us: int) -> pl.DataFrame:
    """Add `later_us` to all times; a column called `*_us` of these tables is a time or a length of time."""
    names = ["t_us", "start_us", "connected_us", "first_byte_us", "end_us"]
    if "copies" in frame.columns:  # the table of messages
        names += ["sent_us", "received_us"]
    times = [name for name in names if name in frame.columns]
    return frame.with_columns(pl.col(name) + later_us for name in times)


def _numbered(frame: pl.DataFrame, flows: list[Flow]) -> pl.DataFrame:
    if "flow" not in frame.columns:
        return frame
    numbers = {number: flow.id for number, flow in enumerate(flows)}
    return frame.with_columns(pl.col("flow").replace_strict(numbers, default=None, return_dtype=pl.Int64))


@dataclass(frozen=True)
class _Paths:
    """The facts that identify the path of a subflow: the mapping, and the ports of the side that connected."""

    real: Mapping
    opened: Map[tuple[int, int], Pair]
    """By flow and port, the plan's addresses of client and server. Most translating routers keep a port."""

    @classmethod
    def collected(cls, plan: Plan, real: Mapping, hosts: Map[str, Tables]) -> _Paths:
        """Collect the ports from the tables of the hosts."""
        by_id = {flow.id: flow for flow in plan.flows}
        opened: dict[tuple[int, int], Pair] = {}
        for node, tables in hosts.items():
            subflows = _numbered(tables["subflows"], flows_of(plan, node))
            columns = ("flow", "local_address", "local_port", "remote_address")
            for number, local, port, remote in subflows.select(columns).unique().rows():
                if (flow := by_id.get(number)) is None:
                    continue  # of a flow that the host was not given
                pairs = real.pairs(flow, node).get((local, remote), [])
                if real.opener(flow) == node and port is not None and len(pairs) == 1:
                    opened[number, port] = pairs[0]
        return cls(real, opened)

    def pair(self, flow: Flow, node: str, ends: _Ends) -> Pair | None:
        """Return the plan's addresses of client and server of a subflow that `node` sampled."""
        local, _local_port, remote, remote_port = ends
        if local is None or remote is None:
            return None
        pairs = self.real.pairs(flow, node)
        if known := pairs.get((local, remote)):
            return known[0]
        # The other side has no address that this one could know: its port, or the only choice left, shows the path.
        hidden = pairs.get((local, None), [])
        by_port = self.opened.get((flow.id, remote_port or 0))
        return by_port if by_port in hidden else hidden[0] if len(hidden) == 1 else None


def _planned(frame: pl.DataFrame, name: str, node: str, flows: list[Flow], known: _Paths) -> pl.DataFrame:
    """Replace real addresses, ports and sides by those of the plan."""
    by_id = {flow.id: flow for flow in flows}
    if "side" in frame.columns:
        turned = [flow.id for flow in flows if known.real.is_turned(flow)]
        other = pl.col("side").replace({"client": "server", "server": "client"})
        frame = frame.with_columns(side=pl.when(pl.col("flow").is_in(turned)).then(other).otherwise("side"))
    if name not in ("subflows", "events") or frame.is_empty():
        return frame
    ends = ("local_address", "local_port", "remote_address", "remote_port")
    rows = frame.select("flow", *ends).rows()
    planned = [_planned_ends(by_id.get(row[0]), node, row[1:], known) for row in rows]
    columns = zip(ends, zip(*planned, strict=True), strict=True)
    return frame.with_columns(pl.Series(name, values, dtype=frame.schema[name]) for name, values in columns)


_Ends = tuple[str | None, int | None, str | None, int | None]


def _planned_ends(flow: Flow | None, node: str, ends: _Ends, known: _Paths) -> _Ends:
    local, local_port, remote, remote_port = ends
    # An announcement has one address, and a connection of another program may have any.
    real = known.real
    single = real.planned_address(local, node), real.planned_address(remote, node, elsewhere=True)
    if flow is None:
        return single[0], local_port, single[1], remote_port
    is_client = flow.client.netns == node
    connects = real.opener(flow) == node
    pair = known.pair(flow, node, ends)
    if pair is not None:
        local, remote = pair if is_client else (pair[1], pair[0])
    else:
        local, remote = single
    peer = flow.server.netns if is_client else flow.client.netns
    if connects:
        remote_port = real.planned_port(peer, remote_port)
    else:
        local_port = real.planned_port(node, local_port)
    return local, local_port, remote, remote_port


def _without_copies(events: pl.DataFrame) -> pl.DataFrame:
    """Return the events in the order of their times; of those of a flow that both hosts record, the first."""
    events = events.sort("t_us", maintain_order=True)
    own = events["flow"].is_not_null() & events["token"].is_null()
    first = events.select(pl.struct("flow", "event", "node").is_first_distinct()).to_series()
    return events.filter(~own | first)


def joined_messages(plan: Plan, rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each message, of those of its two hosts.

    `sent_us` is null where a host has sent the message and the other one has received it: the difference of their times
    would be no delay.
    """
    jobs = {flow.id: flow.application for flow in plan.flows}
    apart = {number for number, job in jobs.items() if job.MEASURED_DELAY is not None and not job.ANSWERS}
    is_apart = pl.col("flow").is_in(apart)
    joined = (
        rows.filter(is_apart)
        .group_by("flow", "index", maintain_order=True)
        .agg(
            pl.lit(None, dtype=pl.Int64).alias("sent_us"),
            pl.col("received_us").max(),
            pl.col("bytes").max(),
            pl.col("copies").max(),
        )
    )
    return pl.concat([rows.filter(~is_apart), joined.select(rows.columns)]).sort("flow", "index")


def _flow_row(flow: Flow, rows: Map[str, Map[str, object]], real: Mapping) -> dict[str, object]:
    """Return the row of a flow from those of its two hosts."""
    client, server = rows.get(flow.client.netns, {}), rows.get(flow.server.netns, {})
    sender, receiver = (client, server) if flow.sender == "client" else (server, client)
    opener = rows.get(real.opener(flow), {})
    ended = (
        opener if flow.kind == "bulk" else receiver
    )  # a bulk flow completes if it connects; the side that connects knows that
    of_sender = ("congestion_control", "sent_bytes", "sent_sha256")
    of_receiver = ("first_byte_us", "end_us", "received_bytes", "received_sha256")
    errors = [str(row["error"]) for row in (receiver, sender) if row.get("error") is not None]
    fallbacks = [row["fallback"] for row in (client, server) if row.get("fallback") is not None]
    return {
        **{name: opener.get(name) for name in TABLES["flows"]},
        "flow": flow.id,
        "name": flow.name,
        "kind": flow.kind,
        "transport": flow.transport,
        **{name: sender.get(name) for name in of_sender},
        **{name: receiver.get(name) for name in of_receiver},
        "completed": bool(ended.get("completed")) and not errors,
        "fallback": any(fallbacks) if fallbacks else None,
        "error": "; ".join(dict.fromkeys(errors)) or None,
    }
