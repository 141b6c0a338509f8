"""Check this machine for the host engine: the features that it has, and the remedies of those that it lacks.

Each probe carries out a tiny plan with the agent that trials use, so it fails for the same reasons as a trial.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from plait.cache import temporary
from plait.engine.engine import Job
from plait.engine.host import agent
from plait.errors import TrialError, shell_command
from plait.plan.links.chain import with_chains
from plait.plan.model.links import VethEnd
from plait.plan.model.plan import Bridge, Flow, Ifb, Machine, Namespace, Network, Plan, Redirect, Side, Veth
from plait.plan.model.qdiscs import Bfifo, Codel, FqCodel, Netem, Pfifo, Qdisc, Tbf
from plait.traffic.bulk import Bulk

NAMESPACES, MPTCP, REDIRECT, BRIDGE, IFB = "namespaces", "MPTCP", "mirred and matchall", "bridge", "ifb"
_LIMIT_S = 30.0
_PROC = Path("/proc/sys")
_BYTES = 100_000
_QDISCS: Mapping[str, Netem | Tbf | Pfifo | Bfifo | Codel | FqCodel] = {
    "netem": Netem(delay_ns=1000, limit_packets=1000, seed=1),
    "tbf": Tbf(rate_bps=1_000_000, burst_bytes=10_000, limit_bytes=_BYTES),
    "pfifo": Pfifo(limit_packets=100),
    "bfifo": Bfifo(limit_bytes=_BYTES),
    "codel": Codel(limit_packets=100, target_us=5000, interval_us=100_000, ecn=False),
    "fq_codel": FqCodel(
        limit_packets=100, target_us=5000, interval_us=100_000, ecn=False, flows=64, quantum_bytes=1514
    ),
}
_NETWORKS: Mapping[str, Mapping[str, object]] = {
    REDIRECT: {"redirects": (Redirect(netns="a", source="e0", target="e0"),)},
    BRIDGE: {"bridges": (Bridge(netns="a", ifname="br0", mac="02:00:00:00:00:09", ports=("e0",)),)},
    IFB: {"ifbs": (Ifb(netns="a", ifname="ifb0", mac="02:00:00:00:00:09"),)},
    **{
        name: {"qdiscs": (Qdisc(netns="a", ifname="e0", parent="root", handle="1:", options=options),)}
        for name, options in _QDISCS.items()
    },
}
"""What the network of a probe has of each feature."""
_MODULES = {REDIRECT: "cls_matchall and act_mirred", BRIDGE: "bridge", IFB: "ifb"}


@dataclass(frozen=True)
class _Lack:
    """Something that this machine lacks or forbids."""

    what: str
    reason: str
    """The kernel's own words."""
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}; {self.remedy}"


def veth_plan(*, flows: tuple[Flow, ...] = (), **network: object) -> Plan:
    """Return a plan of two hosts, a and b, with a veth pair between them, and `network` in addition."""
    ends = [
        VethEnd(
            netns=name, ifname="e0", mac=f"02:00:00:00:00:0{number}", addresses=(f"10.255.255.{number}/30",)
        )
        for number, name in enumerate("ab", start=1)
    ]
    namespaces = tuple(Namespace(name=name, role="host") for name in "ab")
    base = Network(namespaces=namespaces, veths=(Veth(a=ends[0], b=ends[1]),))
    return Plan(
        seed=1,
        machine=Machine(),
        sample_interval_us=100_000,
        end_us=max([flow.start_us + 10_000_000 for flow in flows], default=0),
        network=base.model_copy(update=network),
        links=(),
        flows=flows,
    )


def veth_flow(transport: str, duration_us: int) -> Flow:
    """Return a bulk flow from a to b of `veth_plan`."""
    return Flow(
        id=0,
        name="probe",
        application=Bulk(duration_us=duration_us),
        transport="mptcp" if transport == "mptcp" else "tcp",
        client=Side(netns="a", address="10.255.255.1", port=0),
        server=Side(netns="b", address="10.255.255.2", port=5001),
        sender="client",
        start_us=0,
        paths=(),
        ideal_rate_bps=None,
    )


class Prober:
    """Probes this machine; each probe runs once."""

    def __init__(self) -> None:
        self._found: dict[str, _Lack | None] = {}

    def lacks(self, features: Iterable[str]) -> list[_Lack]:
        """Return what this machine lacks of `features`; without namespaces, only that."""
        missing = [lack for name in (NAMESPACES, *features) if (lack := self.lack(name)) is not None]
        return missing[:1] if missing and missing[0].what == NAMESPACES else missing

    def lack(self, feature: str) -> _Lack | None:
        """Return why this machine lacks `feature`, or None."""
        if feature not in self._found:
            self._found[feature] = self._probe(feature)
        return self._found[feature]

    def _probe(self, feature: str) -> _Lack | None:
        reason = self._failure(_plan_for(feature))
        if reason is None:
            return None
        if feature == NAMESPACES:
            return _forbidden() or _Lack(feature, reason, _remedy_of_namespaces())
        if feature == MPTCP:
            return _Lack(feature, reason, "boot a kernel with CONFIG_MPTCP")
        modules = _MODULES.get(feature, f"sch_{feature}")
        command = shell_command("modprobe", "-a", *modules.split(" and "))
        return _Lack(
            feature,
            reason,
            f"load it (`{command}` as root; the module may be in the package "
            f"linux-modules-extra-{platform.release()}), boot a kernel that has {modules}, or use --engine virtual",
        )

    def _failure(self, plan: Plan) -> str | None:
        with temporary("probe") as folder:
            try:
                agent.run(Job(plan, {}, folder), _LIMIT_S)
            except TrialError as error:
                return str(error)
        return None


def features_of(plan: Plan) -> set[str]:
    """Return the features that a plan needs of the kernel, besides namespaces."""
    network = with_chains(plan, exact=False).network
    needed: set[str] = {qdisc.options.kind for qdisc in network.qdiscs}
    needed |= {MPTCP} if any(flow.transport == "mptcp" for flow in plan.flows) else set()
    needed |= {REDIRECT} if network.redirects else set()
    needed |= {BRIDGE} if network.bridges else set()
    needed |= {IFB} if with_chains(plan).network.ifbs else set()
    return needed & {*_QDISCS, MPTCP, REDIRECT, BRIDGE, IFB}


ALL = (REDIRECT, BRIDGE, MPTCP, *_QDISCS)
"""The features of a typical scenario, for `plait doctor`."""


def _plan_for(feature: str) -> Plan:
    flows = (veth_flow("mptcp", 1000),) if feature == MPTCP else ()
    return veth_plan(flows=flows, **_NETWORKS.get(feature, {}))


def _forbidden() -> _Lack | None:
    """Return the setting of this machine that forbids ordinary users to create namespaces, if there is one."""
    if os.geteuid() == 0:
        return None
    for path, forbidding, allowing in (
        ("user/max_user_namespaces", "0", "15000"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ):
        if _read(path) == forbidding:
            name = path.replace("/", ".")
            return _Lack(
                NAMESPACES,
                f"{name} is {forbidding}, so an ordinary user cannot use network namespaces here",
                f"`{shell_command('sysctl', '-w', f'{name}={allowing}')}` as root, or run plait as root",
            )
    return None


def _remedy_of_namespaces() -> str:
    if os.geteuid() == 0:
        return "in a container, add the capability SYS_ADMIN and allow unshare and mount, or use --engine virtual"
    return (
        "a security module (AppArmor, SELinux) or a container may take the capabilities of user namespaces; "
        "run plait as root, or use --engine virtual"
    )


def _read(path: str) -> str | None:
    try:
        return (_PROC / path).read_text(encoding="ascii").strip()
    except OSError:
        return None
