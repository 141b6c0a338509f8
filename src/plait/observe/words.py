"""What an observation saw, in a line for each connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from plait.analysis.wording import percent, rate
from plait.dataset.trial import Trial, read_trial, trial_folder
from plait.observe.captures.engine import NOT_VISIBLE
from plait.observe.remote import ROWS_LEFT_OUT
from plait.observe.seen import subflows_of
from plait.observe.study import CASE, disabled_mptcp
from plait.plan.model.plan import Plan

_LINES = 5
EVENTS_REFUSED = "the kernel reports MPTCP events only to root"
"""What the agent says on its console (agent/src/sample/mptcp_events.rs)."""


def sentences(folder: Path) -> Iterator[str]:
    """Yield what the observation in `folder` saw: a summary, then a line for each of the fastest connections."""
    trial = read_trial(trial_folder(folder, CASE, 0))
    flows = trial.tables["flows"]
    mptcp = flows.filter(pl.col("transport") == "mptcp")
    fallen = mptcp.filter(pl.col("fallback")).height
    yield (
        f"{_count(mptcp.height, 'MPTCP connection')}, of which {fallen} fell back to TCP; "
        f"{_count(flows.height - mptcp.height, 'TCP connection')}"
    )
    yield from _fastest(trial)
    yield from _rows_left_out(trial)
    if read_from_captures(trial):
        yield from _console(trial).splitlines()
        return
    yield from disabled_mptcp(_console(trial))
    if EVENTS_REFUSED in _console(trial):
        yield "The kernel reports path-manager events and closed sockets to root only: the study has none."


def read_from_captures(trial: Trial) -> bool:
    """Return whether captures are the source of an observation, whose console log then has sentences about them."""
    return trial.provenance.kernel_version == NOT_VISIBLE


def _rows_left_out(trial: Trial) -> Iterator[str]:
    """Yield how many samples each host reported without the addresses of a subflow."""
    for name, count in trial.provenance.host.items():
        host, _, fact = name.rpartition(".")
        if fact == ROWS_LEFT_OUT and count:
            rows = _count(int(count), "sample")
            yield f"plait left out {rows} of subflows that {host} reports: not between two unicast IP addresses"


def _console(trial: Trial) -> str:
    return (trial.folder / "logs").read("console.log").decode(errors="replace")


def _fastest(trial: Trial) -> Iterator[str]:
    flows, subflows = trial.tables["flows"], subflows_of(_own_node(trial.plan), trial.tables)
    names = _path_names(trial.plan)
    rated = []
    for row in flows.iter_rows(named=True):
        carried, start_us, end_us = row["received_bytes"], row["start_us"], row["end_us"]
        if carried is None or start_us is None or end_us is None or end_us <= start_us:
            continue
        rated.append((carried * 8e6 / (end_us - start_us), row))
    rated.sort(key=lambda item: -item[0])
    for bits_per_s, row in rated[:_LINES]:
        parts = _parts(subflows.filter(pl.col("flow") == row["flow"]), names)
        over = " / ".join(f"{name} {percent(share)}" for name, share in parts)
        yield f"  {row['name']}: {rate(bits_per_s)}{f' over {over}' if over else ''}"
    if len(rated) > _LINES:
        yield f"  and {_count(len(rated) - _LINES, 'slower connection')}"
    uncounted = flows["received_bytes"].null_count()
    if silent := flows.height - len(rated) - uncounted:
        yield f"  {_count(silent, 'connection')} carried no data in this time"
    if uncounted:
        yield f"  {_count(uncounted, 'connection')}: the kernel did not report how much data arrived"


def _own_node(plan: Plan) -> str:
    return plan.network.namespaces[0].name


def _parts(subflows: pl.DataFrame, names: Mapping[tuple[str, str], str]) -> list[tuple[str, float | None]]:
    """Return the share of each path in what the subflows of a connection carried; None if they carried nothing."""
    carried = subflows.group_by("local_address", "remote_address", "subflow", maintain_order=True).agg(
        (pl.col("acked_bytes").max() - pl.col("acked_bytes").min()).alias("sent"),
        (pl.col("received_bytes").max() - pl.col("received_bytes").min()).alias("received"),
    )
    column = max(("sent", "received"), key=lambda name: int(carried[name].sum() or 0))
    total = int(carried[column].sum() or 0)
    shares: dict[str, float] = {}
    for row in carried.iter_rows(named=True):
        name = names.get((row["local_address"], row["remote_address"]), row["local_address"])
        shares[name] = shares.get(name, 0.0) + (row[column] or 0) / max(total, 1)
    return [(name, share if total else None) for name, share in shares.items()]


def _path_names(plan: Plan) -> dict[tuple[str, str], str]:
    return {
        (path.client_address, path.server_address): path.name for peers in plan.peers for path in peers.paths
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
