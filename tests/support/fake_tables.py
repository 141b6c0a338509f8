"""A fluid model of each subflow (slow start, a queue, a sawtooth) makes plausible tables for any plan.

The tables serve tests of the stages after an engine. This is no model of a network: flows do not affect each other.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from plait.dataset.model import ALL_TABLES, TABLES
from plait.frames import DEFAULT_MTU, DSS, FULL_PAYLOAD, frame_bytes
from plait.traffic.bulk import Bulk
from plait.traffic.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plait.plan.model.links import LinkDirection
    from plait.plan.model.plan import Flow, Path, Plan

STEP_US = 10_000
MSS = FULL_PAYLOAD
FRAME = frame_bytes(DEFAULT_MTU)
UNLIMITED_BPS = 1_000_000_000


@dataclass
class _Subflow:
    """The state of one fake subflow."""

    flow: Flow
    number: int
    path: Path
    start_us: float
    rate_bps: float
    """Payload bits per second if the path is fully used."""
    queue_limit_bytes: float
    rng: random.Random
    cwnd: float = 10.0
    ssthresh: float | None = None
    acked: float = 0.0
    retransmitted: int = 0
    queue_bytes: float = 0.0

    def advance(self, now_us: int) -> None:
        """Move the state by one step."""
        if now_us <= self.start_us:
            return
        base_s = self.path.base_rtt_us / 1e6 + 1e-4
        bdp = self.rate_bps * base_s / 8
        rtt_s = base_s + self.queue_bytes * 8 / self.rate_bps
        wanted_bps = self.cwnd * MSS * 8 / rtt_s
        self.acked += min(wanted_bps, self.rate_bps) * STEP_US / 8e6
        self.queue_bytes = min(max(self.cwnd * MSS - bdp, 0.0), self.queue_limit_bytes)
        rounds = STEP_US / 1e6 / rtt_s
        if self.cwnd * MSS > bdp + self.queue_limit_bytes:
            self.cwnd *= 0.7 + self.rng.uniform(-0.02, 0.02)
            self.ssthresh = self.cwnd
            self.retransmitted += self.rng.randint(1, 8)
        elif self.ssthresh is None:
            self.cwnd *= 2**rounds
        else:
            self.cwnd += rounds * self.rng.uniform(0.8, 1.2) * 1.5

    @property
    def rtt_us(self) -> int:
        """Return the smoothed round-trip time now."""
        return round(self.path.base_rtt_us + self.queue_bytes * 8e6 / self.rate_bps)


@dataclass
class _Run:
    """The rows of all tables so far."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in TABLES})
    wire: dict[str, float] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)


def fake_tables(plan: Plan) -> dict[str, pl.DataFrame]:
    """Return tables that a trial of `plan` could have left; the plan's seed decides the noise."""
    run = _Run()
    subflows = [subflow for flow in plan.flows for subflow in _subflows(plan, flow)]
    ends: dict[int, int] = {}
    for now_us in range(0, plan.end_us + 1, STEP_US):
        if len(ends) == len(plan.flows):
            break
        for subflow in subflows:
            if subflow.flow.id not in ends:
                _move(run, subflow, now_us)
        _note_ends(plan, subflows, ends, now_us)
        if now_us % plan.sample_interval_us == 0:
            _sample(run, plan, subflows, now_us, ends)
    _finish(run, plan, subflows, ends)
    return make_tables(run.rows)


def make_tables(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, pl.DataFrame]:
    """Return all tables of the contract from rows by table; missing columns are null, missing tables empty.

    Tables of monitors exist only if there are rows for them.
    """
    return {
        name: pl.DataFrame(
            [{column: row.get(column) for column in schema} for row in rows.get(name, ())], schema=schema
        )
        for name, schema in ALL_TABLES.items()
        if name in TABLES or name in rows
    }


def _subflows(plan: Plan, flow: Flow) -> list[_Subflow]:
    """Return the subflows of one flow: the initial one at once, each further one after its handshake."""
    directions = {direction.name: direction for link in plan.links for direction in link.directions}
    crossing: dict[str, int] = {}
    for other in plan.flows:
        for path in other.paths:
            for name in path.forward:
                crossing[name] = crossing.get(name, 0) + 1
    subflows = []
    for number, path in enumerate(flow.paths):
        rate = min(
            ((directions[n].rate_bps or UNLIMITED_BPS) / crossing[n] for n in path.forward), default=1e9
        )
        limits = [(directions[n].queue_packets or 1000) * FRAME for n in path.forward]
        subflows.append(
            _Subflow(
                flow=flow,
                number=number,
                path=path,
                start_us=flow.start_us + path.base_rtt_us * (1 if number == 0 else 2.5),
                rate_bps=rate * (MSS - DSS * (flow.transport == "mptcp")) / FRAME,
                queue_limit_bytes=min(limits, default=100 * FRAME),
                rng=random.Random(f"{plan.seed}/{flow.id}/{number}"),
            )
        )
    return subflows


def _move(run: _Run, subflow: _Subflow, now_us: int) -> None:
    """Advance one subflow and add its frames to the links that it crosses."""
    before, lost = subflow.acked, subflow.retransmitted
    subflow.advance(now_us)
    for name in subflow.path.forward:
        run.wire[name] = run.wire.get(name, 0.0) + (subflow.acked - before) * FRAME / MSS
    if subflow.path.forward:
        first = subflow.path.forward[0]
        run.drops[first] = run.drops.get(first, 0) + subflow.retransmitted - lost


def _note_ends(plan: Plan, subflows: list[_Subflow], ends: dict[int, int], now_us: int) -> None:
    """Record the flows that have ended by now."""
    for flow in plan.flows:
        if flow.id in ends:
            continue
        match flow.application:
            case Bulk(duration_us=int(lasts)) if now_us >= flow.start_us + lasts:
                ends[flow.id] = flow.start_us + lasts
            case Transfer(bytes=size) if _acked(subflows, flow) >= size:
                ends[flow.id] = now_us - random.Random(f"{plan.seed}/{flow.id}/end").randrange(STEP_US)


def _acked(subflows: list[_Subflow], flow: Flow) -> int:
    total = int(sum(subflow.acked for subflow in subflows if subflow.flow is flow))
    return min(total, flow.application.bytes) if isinstance(flow.application, Transfer) else total


def _sample(run: _Run, plan: Plan, subflows: list[_Subflow], now_us: int, ends: dict[int, int]) -> None:
    """Append one sample of every connection, subflow and link."""
    for flow in plan.flows:
        if flow.start_us < now_us <= ends.get(flow.id, plan.end_us):
            live = [subflow for subflow in subflows if subflow.flow is flow and subflow.start_us < now_us]
            for side in ("client", "server"):
                run.rows["connections"].append(_connection_row(flow, side, live, now_us))
                run.rows["subflows"] += [_subflow_row(subflow, side, now_us) for subflow in live]
    queues = {subflow.path.forward[0]: subflow.queue_bytes for subflow in subflows if subflow.path.forward}
    for link in plan.links:
        for direction in link.directions:
            queue = queues.get(direction.name, 0.0)
            run.rows["links"].append(_link_row(run, direction, queue, now_us))


def _connection_row(flow: Flow, side: str, live: list[_Subflow], now_us: int) -> dict[str, Any]:
    acked, sends = _acked(live, flow), side == flow.sender
    return {
        "t_us": now_us,
        "flow": flow.id,
        "side": side,
        "subflows": len(live),
        "sent_bytes": acked if sends else 0,
        "retransmitted_bytes": 0,
        "acked_bytes": acked if sends else 0,
        "received_bytes": 0 if sends else acked,
    }


def _link_row(run: _Run, direction: LinkDirection, queue: float, now_us: int) -> dict[str, Any]:
    sent, dropped = int(run.wire.get(direction.name, 0.0)), run.drops.get(direction.name, 0)
    limited = direction.rate_bps is not None
    return {
        "t_us": now_us,
        "link": direction.name,
        "sent_bytes": sent,
        "sent_packets": sent // FRAME,
        "dropped_packets": dropped,
        "overflow_packets": dropped if limited else None,
        "queue_bytes": int(queue) if limited else None,
        "queue_packets": int(queue / FRAME) if limited else None,
        "bucket_bytes": None,
    }


def _subflow_row(subflow: _Subflow, side: str, now_us: int) -> dict[str, Any]:
    sends = side == subflow.flow.sender
    client, server = subflow.path.client_address, subflow.path.server_address
    port = 40_000 + subflow.number
    here, there = ((client, port), (server, subflow.flow.server.port))
    if side == "server":
        here, there = there, here
    acked = int(subflow.acked)
    return {
        "t_us": now_us,
        "flow": subflow.flow.id,
        "side": side,
        "subflow": subflow.number,
        "local_address": here[0],
        "local_port": here[1],
        "remote_address": there[0],
        "remote_port": there[1],
        "state": "ESTABLISHED",
        "backup": False,
        "stale": False,
        "rtt_us": subflow.rtt_us if sends else round(subflow.path.base_rtt_us),
        "rttvar_us": subflow.rtt_us // 20,
        "min_rtt_us": round(subflow.path.base_rtt_us),
        "cwnd_segments": int(subflow.cwnd) if sends else 10,
        "ssthresh_segments": None if subflow.ssthresh is None or not sends else int(subflow.ssthresh),
        "mss_bytes": MSS,
        "sent_bytes": acked + subflow.retransmitted * MSS if sends else 0,
        "retransmitted_bytes": subflow.retransmitted * MSS if sends else 0,
        "retransmitted_segments": subflow.retransmitted if sends else 0,
        "acked_bytes": acked if sends else 0,
        "received_bytes": 0 if sends else acked,
        "congestion_state": "Open",
    }


def _finish(run: _Run, plan: Plan, subflows: list[_Subflow], ends: dict[int, int]) -> None:
    """Append the rows that the agent writes at the end of a trial."""
    for flow in plan.flows:
        done = flow.id in ends
        received = _acked(subflows, flow)
        file = flow.application.file if isinstance(flow.application, Transfer) else None
        checksum = file.sha256 if file is not None else None
        rtt = flow.paths[0].base_rtt_us if flow.paths else 0.0
        run.rows["flows"].append(
            {
                "flow": flow.id,
                "name": flow.name,
                "kind": flow.kind,
                "transport": flow.transport,
                "congestion_control": flow.socket.congestion_control or "cubic",
                "start_us": flow.start_us,
                "connected_us": flow.start_us + round(rtt),
                "first_byte_us": flow.start_us + round(1.5 * rtt),
                "end_us": ends.get(flow.id),
                "sent_bytes": received,
                "received_bytes": received,
                "completed": done,
                "fallback": False if flow.transport == "mptcp" else None,
                "sent_sha256": checksum,
                "received_sha256": checksum if done else None,
                "error": None if done else "the trial ended before the transfer",
            }
        )
        run.rows["events"] += [
            {"t_us": flow.start_us, "node": flow.client.netns, "event": "flow_start", "flow": flow.id},
            {"t_us": ends.get(flow.id), "node": flow.client.netns, "event": "flow_end", "flow": flow.id},
        ]
    run.rows["events"].sort(key=lambda row: (row["t_us"] is None, row["t_us"]))
    lost = sum(subflow.retransmitted for subflow in subflows)
    run.rows["counters"].append({"node": "h1", "counter": "TcpRetransSegs", "before": 0, "after": lost})
