"""Records read one trial of a result folder with plain polars and json: its plan, its tables, and its flows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

OTHER = {"client": "server", "server": "client"}


@dataclass(frozen=True)
class Flow:
    """A flow of the plan, or a connection that a program opened, with its row of `flows`."""

    plan: dict[str, Any]
    row: dict[str, Any]
    connection: int
    sender: str
    background: bool
    program: str | None

    @property
    def id(self) -> int:
        return int(self.row["flow"])

    @property
    def name(self) -> str:
        return str(self.row["name"])

    @property
    def kind(self) -> str:
        return str(self.row["kind"])

    @property
    def mptcp(self) -> bool:
        return bool(self.row["transport"] == "mptcp")

    @property
    def span(self) -> tuple[int, int]:
        return self.row["start_us"], self.row["end_us"]


@dataclass
class Trial:
    """A trial's folder: `plan.json` and the Parquet files."""

    folder: Path
    plan: dict[str, Any] = field(init=False)
    flows: list[Flow] = field(init=False)

    def __post_init__(self) -> None:
        self.plan = json.loads((self.folder / "plan.json").read_text())
        planned = {flow["id"]: flow for flow in self.plan["flows"]}
        programs = {row["flow"]: row for row in self.rows("program_flows")}
        rows = self.rows("flows")
        largest = max((row["received_bytes"] or 0 for row in rows if row["flow"] in programs), default=0)
        udp = {program["name"] for program in self.plan.get("programs", ()) if "-u" in program["argv"]}
        self.flows = []
        for row in rows:
            if row["flow"] in planned:
                flow = planned[row["flow"]]
                connection = row["flow"] if flow["connection"] is None else flow["connection"]
                self.flows.append(Flow(flow, row, connection, flow["sender"], flow["background"], None))
            else:
                # In the background is what carried less than 1 % of the largest, and the control of `iperf3 -u`.
                opened = programs[row["flow"]]
                background = opened["program"] in udp or row["received_bytes"] < 0.01 * largest
                plan = self.peer(opened)
                self.flows.append(
                    Flow(plan, row, row["flow"], opened["sender"], background, opened["program"])
                )

    def peer(self, opened: dict[str, Any]) -> dict[str, Any]:
        """Return the paths between the two nodes of a program's connection, client first."""
        between = (opened["client"], opened["server"])
        [peer] = [peer for peer in self.plan["peers"] if (peer["source"], peer["target"]) == between]
        return {"paths": peer["paths"], "group": None, "user": None, "after": [], "connection": None}

    def table(self, name: str) -> pl.DataFrame | None:
        file = self.folder / f"{name}.parquet"
        return pl.read_parquet(file) if file.exists() else None

    def rows(self, name: str) -> list[dict[str, Any]]:
        table = self.table(name)
        return [] if table is None else table.to_dicts()

    def of(self, table: str, flow: Flow, side: str, *, after_end: bool = False) -> pl.DataFrame:
        """Return what one side of a flow has in `connections` or `subflows`, in order of time.

        "Counters come from samples: what happened after the last sample before a flow's end is missed."
        """
        frame = self.table(table)
        assert frame is not None
        mine = (pl.col("flow") == flow.connection) & (pl.col("side") == side)
        in_time = pl.lit(True) if after_end else pl.col("t_us") <= flow.span[1]
        return frame.filter(mine & in_time).sort("t_us", maintain_order=True)

    @property
    def foreground(self) -> list[Flow]:
        return [flow for flow in self.flows if not flow.background]

    @property
    def connected(self) -> list[Flow]:
        """Return the flows in the foreground that have a connection: TCP and MPTCP."""
        return [flow for flow in self.foreground if flow.kind != "udp"]

    @property
    def multipath(self) -> list[Flow]:
        return [flow for flow in self.connected if flow.mptcp]


def paths_of(flow: Flow, side: str, subflows: pl.DataFrame) -> dict[int, str]:
    """Return each subflow's path by the first addresses that `side` recorded; a closed subflow may lack them."""
    names = {(path["client_address"], path["server_address"]): path["name"] for path in flow.plan["paths"]}
    first = subflows.group_by("subflow", maintain_order=True).first().to_dicts()
    ends = ("local_address", "remote_address") if side == "client" else ("remote_address", "local_address")
    return {row["subflow"]: names[row[ends[0]], row[ends[1]]] for row in first}


def percentile(values: list[float], share: float) -> float | None:
    """Return the least value that so many have at most."""
    ordered = sorted(values)
    for at, value in enumerate(ordered, start=1):
        if at >= share * len(ordered) - 1e-9:
            return value
    return None
