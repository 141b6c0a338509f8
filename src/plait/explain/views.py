"""The flows to explain: those of the plan, and connections that programs opened by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.plan.applications import Bulk, Transfer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from plait.plan.model import Flow, Path, Plan

    Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class View:
    """A flow as an explanation sees it."""

    flow_id: int
    carrier: int
    """The flow under whose number its connection is sampled."""
    name: str
    transport: str
    sender: str
    client: str
    server: str
    """The nodes."""
    paths: tuple[Path, ...]
    greedy: bool
    """It sends as fast as it can, until it ends."""
    flow: Flow | None = None


def views(plan: Plan, tables: Tables) -> list[View]:
    """Returns the flows over TCP and MPTCP, in the order of their numbers."""
    found = [_of_plan(flow) for flow in plan.flows if flow.transport != "udp" and flow.kind != "page"]
    known = {flow.id for flow in plan.flows}
    foreign = sorted(set(tables["connections"]["flow"].drop_nulls().to_list()) - known)
    return found + [view for number in foreign if (view := _foreign(plan, tables, number)) is not None]


def _of_plan(flow: Flow) -> View:
    return View(
        flow_id=flow.id,
        carrier=flow.carrier,
        name=flow.name,
        transport=flow.transport,
        sender=flow.sender,
        client=flow.client.netns,
        server=flow.server.netns,
        paths=flow.paths,
        greedy=isinstance(flow.application, (Bulk, Transfer)),
        flow=flow,
    )


def _foreign(plan: Plan, tables: Tables, number: int) -> View | None:
    """A connection of a program: its ends are known from its subflows, its sender is who sent more."""
    rows = tables["subflows"].filter(tables["subflows"]["flow"] == number)
    if rows.is_empty():
        return None
    flows = tables["flows"].filter(tables["flows"]["flow"] == number)
    about = flows.row(0, named=True) if len(flows) else {}
    sent = {
        str(side[0]): float(part["sent_bytes"].max() or 0)  # type: ignore[arg-type]
        for side, part in rows.partition_by("side", as_dict=True).items()
    }
    sender = max(sent, key=lambda side: sent[side])
    first = rows.filter(rows["side"] == sender).row(0, named=True)
    here, there = str(first["local_address"]), str(first["remote_address"])
    nodes = _nodes(plan)
    ends = (nodes.get(here, here), nodes.get(there, there))
    client, server = ends if sender == "client" else ends[::-1]
    subflows = rows["subflow"].n_unique()
    return View(
        flow_id=number,
        carrier=number,
        name=str(about.get("name") or f"{client} to {server} #{number}"),
        transport=str(about.get("transport") or ("mptcp" if subflows > 1 else "tcp")),
        sender=sender,
        client=client,
        server=server,
        paths=_known_paths(plan, rows),
        greedy=False,
    )


def _nodes(plan: Plan) -> dict[str, str]:
    """The node that has an address."""
    return {
        address.split("/")[0]: end.netns
        for veth in plan.network.veths
        for end in (veth.a, veth.b)
        for address in end.addresses
    }


def _known_paths(plan: Plan, rows: pl.DataFrame) -> tuple[Path, ...]:
    """The paths of any flow of the plan that join the same addresses."""
    pairs = set(rows.select("local_address", "remote_address").rows())
    found: dict[str, Path] = {}
    for flow in plan.flows:
        for path in flow.paths:
            ends = (path.client_address, path.server_address)
            if ends in pairs or ends[::-1] in pairs:
                found.setdefault(path.name, path)
    return tuple(found.values())
