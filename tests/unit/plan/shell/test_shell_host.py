"""The exported commands, run on this host's kernel, build the plan's network.

Needs some of that kernel, and no root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from ipaddress import ip_interface
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import shell_host
from plait.plan.identity import plan_bytes
from plait.plan.links.chain import with_chains
from plait.plan.shell.script import to_shell
from scenario_samples import ISLANDS, MESH, TWO, direct, plan_of

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan, Route

ENVIRONMENT = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
"""In which an ordinary user finds `tc`."""
HOW: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 120, "env": ENVIRONMENT}
UNSHARE = ("unshare",) if os.geteuid() == 0 else ("unshare", "--map-root-user")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
FULLMESH = ", ".join(f"{{link: '{link}', flags: [subflow, fullmesh]}}" for link in ("c-r", "c-r#2"))
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "two paths": (TWO, ()),
    "mesh": (MESH, ()),
    "fullmesh": (MESH, (f"mptcp.endpoints.c=[{FULLMESH}]",)),
    "islands": (ISLANDS, ("traffic.0.bulk.via=n1-r2",)),
    "five in reverse": (
        direct(", ".join(f"a-b#{i}: {{rate: 5mbit}}" for i in range(2, 7))),
        ("traffic.0.bulk.reverse=true", "traffic.0.bulk.via=a-b#4"),
    ),
    "one segment": (TWO.replace("    s2-h2:", "    s1-s2: {}\n    s2-h2:"), ()),
    "ipv6": (TWO, ("network.hosts.h1.addresses={h1-s1: 'fd00:1::1/64', h1-s2: 'fd00:2::1/64'}",)),
    "queue in bytes": (TWO, ("network.links.h1-s1={rate: 10mbit, delay: 3ms, loss: 1%, queue: 64KiB}",)),
}


def missing() -> str | None:
    """Return what this host lacks to run the test at all."""
    tools = [
        tool
        for tool in ("ip", "tc", "ss", "unshare", "sysctl", "mount")
        if not shutil.which(tool, path=ENVIRONMENT["PATH"])
    ]
    if tools:
        return f"needs {', '.join(tools)}"
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        return "needs a kernel with MPTCP"
    probe = "ip link add p0 type veth peer name p1 && tc qdisc add dev p0 root tbf rate 1mbit burst 3028 limit 9000"
    done = subprocess.run([*UNSHARE, "-n", "sh", "-c", probe], check=False, **HOW)
    return None if done.returncode == 0 else f"needs network namespaces, veth and tbf: {done.stderr.strip()}"


LACKS = missing()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(LACKS is not None, reason=LACKS or "")]


class Applied:
    """A plan, and what the kernel made of its export."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        (folder / "plan.json").write_bytes(plan_bytes(plan))
        (folder / "network.sh").write_text(to_shell(plan), encoding="utf-8")
        inner = [sys.executable, str(Path(shell_host.__file__)), str(folder / "plan.json")]
        command = [*UNSHARE, "-m", "-n", "-p", "-f", "--mount-proc", *inner, str(folder / "network.sh")]
        done = subprocess.run(command, check=False, **HOW)
        assert done.returncode == 0, done.stderr
        self.report: dict[str, Any] = json.loads(done.stdout)

    def state_of(self, netns: str) -> dict[str, Any]:
        state: dict[str, Any] = self.report["state"][netns]
        return state


@pytest.fixture(scope="module", params=CASES)
def applied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Applied:
    text, overrides = CASES[request.param]
    # only a congestion control that this host allows to others than its first namespace
    allowed = ALLOWED.read_text(encoding="ascii").split()
    control = next(name for name in ("cubic", "bbr", "reno") if name in allowed)
    return Applied(
        plan_of(text, f"tcp.congestion_control={control}", *overrides), tmp_path_factory.mktemp("shell")
    )


def test_interfaces_have_the_planned_addresses(applied: Applied) -> None:
    for veth in applied.plan.network.veths:
        for end in (veth.a, veth.b):
            (link,) = (link for link in applied.state_of(end.netns)["links"] if link["ifname"] == end.ifname)
            addresses = {
                f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["scope"] == "global"
            }
            assert addresses == set(end.addresses)
            assert (link["address"], link["mtu"]) == (end.mac, veth.mtu)
            assert "UP" in link["flags"]


def test_bridges_hold_the_planned_ports(applied: Applied) -> None:
    for bridge in applied.plan.network.bridges:
        links = applied.state_of(bridge.netns)["links"]
        assert {link["ifname"] for link in links if link.get("master") == bridge.ifname} == set(bridge.ports)
        (data,) = (link["linkinfo"]["info_data"] for link in links if link["ifname"] == bridge.ifname)
        assert (data["stp_state"], data["mcast_snooping"]) == (0, 0)


def test_routes_and_rules_are_the_planned_ones(applied: Applied) -> None:
    for space in applied.plan.network.namespaces:
        state = applied.state_of(space.name)
        shown = (r for r in state["routes"] if r.get("protocol") != "kernel" and r.get("table") != "local")
        planned = (r for r in applied.plan.network.routes if r.netns == space.name)
        assert {as_shown(r) for r in shown} == {as_planned(r) for r in planned}
        rules = {(r["src"], str(r["table"]), r["priority"]) for r in state["rules"] if r["src"] != "all"}
        assert rules == {
            (str(ip_interface(r.source).ip), str(r.table), r.priority)
            for r in applied.plan.network.rules
            if r.netns == space.name
        }


def as_shown(route: dict[str, Any]) -> tuple[object, ...]:
    """Return what decides about a route, as `ip -j route` tells it."""
    kind = route.get("type", "unicast")
    device = None if kind == "unreachable" else route["dev"]
    return route["dst"], kind, device, route.get("gateway"), str(route.get("table", "main"))


def as_planned(route: Route) -> tuple[object, ...]:
    """Return the same of a planned route."""
    destination = "default" if route.destination == "::/0" else route.destination
    table = "main" if route.table == 254 else str(route.table)
    return destination, route.kind, route.device, route.via, table


def test_kernel_settings_are_the_planned_ones(applied: Applied) -> None:
    for space in applied.plan.network.namespaces:
        planned = {path: value.split() for path, value in space.sysctls}
        assert applied.state_of(space.name)["sysctls"] == planned


def test_endpoints_and_limits_are_the_planned_ones(applied: Applied) -> None:
    for manager in applied.plan.network.mptcp:
        state = applied.state_of(manager.netns)
        endpoints = {tuple(sorted(line.split())) for line in state["endpoints"].splitlines()}
        assert endpoints == {tuple(sorted([e.address, "id", str(e.id), *e.flags])) for e in manager.endpoints}
        limits = state["limits"].split()
        assert limits == [
            "add_addr_accepted",
            str(manager.add_addr_accepted),
            "subflows",
            str(manager.subflows),
        ]


def test_links_are_limited_and_queued_as_planned(applied: Applied) -> None:
    kinds = {"tbf", "pfifo", "bfifo"} | ({"netem"} - set(applied.report["lacking"]))
    limits = {
        (q["dev"], q["kind"], limit(q)) for q in applied.state_of("wire")["qdiscs"] if q["kind"] in kinds
    }
    planned = {
        (q.ifname, q.options.kind, limit(q.options.model_dump()))
        for q in with_chains(applied.plan).network.qdiscs
        if q.options.kind in kinds
    }
    assert limits == planned


def limit(qdisc: dict[str, Any]) -> int:
    """Return the number that decides: a rate in bit/s, a queue in packets or bytes, a delay in us."""
    options = qdisc.get("options", qdisc)
    if qdisc["kind"] == "tbf":
        return int(options["rate_bps"]) if "rate_bps" in options else int(options["rate"]) * 8
    if qdisc["kind"] == "netem":
        return (
            options["delay_ns"] // 1000 if "delay_ns" in options else round(options["delay"]["delay"] * 1e6)
        )
    return int(next(options[key] for key in ("limit_packets", "limit_bytes", "limit") if key in options))


def test_the_kernel_opens_exactly_the_planned_subflows(applied: Applied) -> None:
    planned = sorted([p.client_address, p.server_address] for p in applied.plan.flows[0].paths)
    assert applied.report["joined"] == planned


def test_nothing_is_left_after_the_clean_up(applied: Applied) -> None:
    assert applied.report["left"] == []


def test_delays_are_compared_only_where_the_kernel_has_netem(applied: Applied) -> None:
    if "netem" in applied.report["lacking"]:
        pytest.skip("this host's kernel has no netem: delays are checked in the laboratory kernel only")
    assert any(q["kind"] == "netem" for q in applied.state_of("wire")["qdiscs"])
