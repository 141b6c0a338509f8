"""Runs plait-agent as an ordinary process, with plans that every kernel with veth, tbf and MPTCP can carry out."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plait.binaries import AGENT
from plait.plan.identity import plan_bytes
from plait.plan.model.links import VethEnd
from plait.plan.model.mptcp import Endpoint, Mptcp
from plait.plan.model.plan import Flow, Machine, Namespace, Network, Plan, Rule, Side, Veth
from plait.plan.model.plan import Route as PlannedRoute
from plait.plan.model.qdiscs import Qdisc, Tbf
from plait.traffic.bulk import Bulk
from plait.traffic.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Iterator

RATE_BPS = 10_000_000
TIMEOUT_S = 300.0


def veth_plan(*, transport: str = "mptcp", duration_us: int = 400_000, paths: int = 2) -> Plan:
    """Return a plan of two hosts with a veth pair of 10 Mbit/s each way for each path, and one bulk flow."""
    numbers = range(paths)
    veths = tuple(
        Veth(
            a=VethEnd(
                netns="h1", ifname=f"e{n}", mac=f"02:00:00:00:00:0{2 * n}", addresses=(f"10.0.{n}.1/24",)
            ),
            b=VethEnd(
                netns="h2", ifname=f"e{n}", mac=f"02:00:00:00:00:0{2 * n + 1}", addresses=(f"10.0.{n}.2/24",)
            ),
        )
        for n in numbers
    )
    hosts = (("h1", 1), ("h2", 2))
    bucket = Tbf(rate_bps=RATE_BPS, burst_bytes=20_000, limit_bytes=100_000)
    network = Network(
        namespaces=tuple(
            Namespace(name=name, role="host", sysctls=(("net/mptcp/enabled", "1"),)) for name, _ in hosts
        ),
        veths=veths,
        qdiscs=tuple(
            Qdisc(netns=name, ifname=f"e{n}", parent="root", handle="1:", options=bucket)
            for name, _ in hosts
            for n in numbers
        ),
        routes=tuple(
            PlannedRoute(netns=name, destination=f"10.0.{n}.0/24", device=f"e{n}", table=1001 + n)
            for name, _ in hosts
            for n in numbers
        ),
        rules=tuple(
            Rule(netns=name, source=f"10.0.{n}.{last}/32", table=1001 + n, priority=1000 + n)
            for name, last in hosts
            for n in numbers
        ),
        mptcp=(
            Mptcp(
                netns="h1",
                subflows=8,
                add_addr_accepted=8,
                endpoints=tuple(
                    Endpoint(address=f"10.0.{n}.1", id=n + 1, flags=("subflow",), device=f"e{n}")
                    for n in numbers
                    if n
                ),
            ),
            Mptcp(netns="h2", subflows=8, add_addr_accepted=8),
        ),
    )
    flow = _flow(transport, Bulk(duration_us=duration_us), ("10.0.0.1", "10.0.0.2"), 5001)
    return Plan(
        seed=1,
        machine=Machine(),
        sample_interval_us=50_000,
        end_us=duration_us + 5_000_000,
        network=network,
        links=(),
        flows=(flow,),
    )


def node_plan(node: str, port: int, byte_count: int) -> Plan:
    """Return the plan of one of two nodes that share a loopback interface: h1 sends a transfer to h2."""
    flow = _flow("tcp", Transfer(bytes=byte_count), ("127.0.0.1", "127.0.0.1"), port)
    return Plan(
        seed=1,
        machine=Machine(),
        sample_interval_us=50_000,
        end_us=20_000_000,
        network=Network(namespaces=(Namespace(name=node, role="host"),), veths=()),
        links=(),
        flows=(flow,),
    )


def _flow(transport: str, application: Bulk | Transfer, addresses: tuple[str, str], port: int) -> Flow:
    return Flow.model_validate(
        {
            "id": 0,
            "name": "flow1",
            "application": application.model_dump(),
            "transport": transport,
            "client": Side(netns="h1", address=addresses[0], port=0).model_dump(),
            "server": Side(netns="h2", address=addresses[1], port=port).model_dump(),
            "sender": "client",
            "start_us": 0,
            "paths": (),
            "ideal_rate_bps": None,
        }
    )


@dataclass
class AgentProcess:
    """A running agent, with its input open."""

    process: subprocess.Popen[bytes]
    folder: Path

    def wait(self) -> int:
        """Return its exit code."""
        return self.process.wait(TIMEOUT_S)

    def status(self) -> dict[str, Any]:
        """Return its report."""
        report: dict[str, Any] = json.loads((self.folder / "status.json").read_text())
        return report

    def order(self, text: str) -> None:
        """Send a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def answer(self) -> str:
        """Return the next line of its output."""
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], TIMEOUT_S)[0], "the agent did not answer"
        return self.process.stdout.readline().decode().strip()

    def close(self) -> None:
        """End it and everything that it started."""
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def until_running(self) -> None:
        """Wait until the trial's zero has passed."""
        wait_for(
            lambda: (self.folder / "progress").exists() and (self.folder / "progress").stat().st_size > 0
        )

    def descendants(self) -> list[int]:
        """Return the PIDs of the processes below it."""
        return list(_children(self.process.pid))


def start_agent(folder: Path, plan: Plan, *options: str, user: int | None = None) -> AgentProcess:
    """Start an agent in an empty folder; `user` only as root."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_bytes(plan_bytes(plan))
    if user is not None:
        os.chown(folder, user, user)
    process = subprocess.Popen(
        [str(AGENT), "--job", str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "console.log").open("wb"),
        user=user,
        group=user,
        extra_groups=None if user is None else [],
        cwd="/",
    )
    return AgentProcess(process, folder)


def wait_for(holds: Any, timeout_s: float = TIMEOUT_S) -> None:
    """Wait until `holds()` is true."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        select.select([], [], [], 0.01)


def is_gone(pid: int) -> bool:
    """Whether a process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def _children(pid: int) -> Iterator[int]:
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield int(child)
        yield from _children(int(child))
