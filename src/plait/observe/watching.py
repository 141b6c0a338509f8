"""The engine of an observation: an agent in the network namespace of the connections, which changes nothing."""

from __future__ import annotations

import platform
import threading
from dataclasses import dataclass
from pathlib import Path

from plait.engine.engine import Engine, EngineIdentity, Job
from plait.engine.host import agent
from plait.errors import MachineError, RequestError
from plait.plan.model.monitors import ConnectionMonitor, Monitors
from plait.plan.model.plan import Machine, Namespace, Network, Plan

LONGEST_S = 24 * 3600
_NAMESPACES = Path("/run/netns")
_MPTCP = Path("/proc/sys/net/mptcp")


@dataclass(frozen=True)
class Selection:
    """Which connections to observe: those that match each restriction."""

    ports: tuple[int, ...] = ()
    """Local or remote TCP ports."""
    peers: tuple[str, ...] = ()
    """Addresses of the other end."""
    processes: tuple[int, ...] = ()
    """Processes that hold the socket."""
    namespace: str | None = None
    """A network namespace as `ip netns` names it; None: that of plait."""


def observing_plan(node: str, selection: Selection, duration_s: float, interval_s: float) -> Plan:
    """Return the plan that lets an agent observe the connections of this machine, which it calls `node`."""
    return Plan(
        seed=0,
        machine=Machine(),
        sample_interval_us=round(interval_s * 1e6),
        end_us=round(duration_s * 1e6),
        network=Network(namespaces=(Namespace(name=node, role="host"),), veths=()),
        links=(),
        flows=(),
        monitors=Monitors(
            connections=ConnectionMonitor(
                node=node, ports=selection.ports, peers=selection.peers, processes=selection.processes
            )
        ),
    )


class Observer(Engine):
    """The engine `observed`: real connections, in real time."""

    name = "observed"

    def __init__(self, over: threading.Event, namespace: str | None = None) -> None:
        """`over` ends the observation early, with complete tables. Raises MachineError without MPTCP, RequestError."""
        if not _MPTCP.exists():
            raise MachineError(
                f"observing MPTCP: the kernel of this machine ({platform.release()}) has no MPTCP (CONFIG_MPTCP); "
                "observe on a machine with Linux 5.6 or later whose kernel has it"
            )
        if namespace is not None and not (_NAMESPACES / namespace).exists():
            raise RequestError(
                f"observing in the network namespace {namespace}: {_NAMESPACES / namespace} does not exist; "
                "`ip netns list` lists those that do"
            )
        self._over = over
        self._namespace = None if namespace is None else _NAMESPACES / namespace

    def identity(self) -> EngineIdentity:
        """Return the identities of this machine's kernel and of the agent."""
        return agent.identity(self.name)

    def execute(self, job: Job) -> None:
        """Observe until the end of the plan, or until `over` is set (see Engine)."""
        node = job.plan.network.namespaces[0].name
        limit_s = LONGEST_S + agent.HEARTBEAT_S
        agent.run(job, limit_s, node=node, namespace=self._namespace, over=self._over)
