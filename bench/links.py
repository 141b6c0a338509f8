"""Draw routed networks, run each on two kernels, and compare all bytes and the processor times.

    .venv/bin/python bench/links.py OLD NEW [--networks 50] [--seed 1]
    .venv/bin/python bench/links.py NEW NEW --whole-stack         the cut-through against whole stacks, on one kernel
    .venv/bin/python bench/links.py OLD NEW --scenario fat-tree --networks 3

A change of the links or of forwarding may make a kernel faster, but must not change a trial. This script draws networks
of routers with what such a change could get wrong: equal-cost routes, both families of addresses, links of a smaller
MTU, losses, inverted bits, copies and reordering, datagrams above the MTU, lifetimes that run out, and events that take
links down, cut them, or change their conditions, endpoints and settings under load. Programs on routers change routes,
addresses, neighbours, devices, qdiscs and filters, and print the counters of the node in the end. plait samples the
counters of interfaces and nodes, and captures two links of each network.

Each network is one trial on each of the two kernels, which take turns in running first. The script prints the files
that differ, and in the end the ratio of the processor times. If OLD is NEW, this ratio is the machine's noise. The same
seed draws the same network, so `--networks 1 --seed N` repeats one of them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.engine import Job
from plait.engine.virtual.boot_inputs import CUT_THROUGH
from plait.engine.virtual.trial import VirtualEngine
from plait.errors import TrialError
from plait.plan.model.plan import Plan
from plait.plan.resolve import resolve
from plait.scenario import load, parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

COMPARED = ("data", "pcap", "programs")
"""The folders of a trial's results that a kernel must not change."""
HOSTS = 4


def drawn(seed: int) -> dict[str, Any]:
    """Return the scenario of a network: rows of routers between two pairs of hosts."""
    chance = Random(seed)
    rows = [
        [f"r{row}{index}" for index in range(chance.randint(1, 3))] for row in range(chance.randint(1, 4))
    ]
    hosts = [f"h{number}" for number in range(HOSTS)]
    ends = [
        *((host, router) for host in hosts[:2] for router in chance.sample(rows[0], min(2, len(rows[0])))),
        *((left, right) for one, two in pairwise(rows) for left in one for right in two),
        *((router, host) for host in hosts[2:] for router in chance.sample(rows[-1], min(2, len(rows[-1])))),
    ]
    names = [f"{left}-{right}" for left, right in ends]
    links: dict[str, dict[str, Any]] = {name: _conditions(chance) for name in names}
    for name in chance.sample(names, chance.choice([0, 0, 1, 2])):
        links[name]["mtu"] = chance.choice([1280, 1400])
    linked = {name for end in ends for name in end}
    routers = [router for row in rows for router in row if router in linked]
    subflows = chance.choice([0, 1, 2, 4])
    return {
        "title": f"Drawn network {seed}",
        "seed": seed,
        "network": {
            "hosts": {host: {"sysctls": _settings(chance)} for host in hosts},
            "routers": routers,
            "links": links,
            "addresses": chance.choice(["ipv4", "ipv6", "dual"]),
            "routing": {"ecmp": chance.random() < 0.7, "metric": "hops"},
        },
        "mptcp": {"subflows_per_path": subflows} if subflows else {},
        "traffic": _traffic(chance, hosts),
        "events": _events(chance, names) + _other_events(chance, hosts, routers, [] if subflows else names),
        "programs": [
            {"node": router, "run": _changes(chance)}
            for router in chance.sample(routers, min(2, len(routers)))
        ],
        "monitors": {"interfaces": "100ms", "counters": "100ms", "capture": chance.sample(names, 2)},
    }


def _conditions(chance: Random) -> dict[str, Any]:
    conditions: dict[str, Any] = {
        "rate": f"{chance.choice([5, 20, 100])}mbit",
        "delay": f"{chance.choice([100, 1000, 7000])}us",
        "queue": f"{chance.choice([20, 100, 400])}pkt",
    }
    for name, share in (("loss", 0.2), ("corrupt", 0.1), ("duplicate", 0.1), ("reorder", 0.1)):
        if chance.random() < share:
            conditions[name] = f"{chance.choice([0.1, 1])}%"
    if chance.random() < 0.1:
        conditions["jitter"] = {"within": "50us", "reorder": chance.random() < 0.5}
    if chance.random() < 0.2:
        conditions["aqm"] = chance.choice(["codel", "fq_codel"])
    return conditions


def _settings(chance: Random) -> dict[str, str]:
    settings = {}
    if chance.random() < 0.2:
        settings["net.ipv4.ip_default_ttl"] = str(chance.randint(2, 5))
    if chance.random() < 0.3:
        settings["net.ipv4.ip_no_pmtu_disc"] = "1"
    return settings


def _traffic(chance: Random, hosts: list[str]) -> list[dict[str, Any]]:
    flows: list[dict[str, Any]] = []
    for sender, receiver in ((hosts[0], hosts[2]), (hosts[1], hosts[3])):
        transport = chance.choice(["tcp", "mptcp"])
        flow = {"from": sender, "to": receiver, "duration": "2s", "transport": transport}
        flows.append({"bulk": {**flow, "reverse": chance.random() < 0.5}})
        size = chance.choice([200, 1400, 4000])
        udp = {"from": receiver, "to": sender, "duration": "2s", "packet": f"{size}B", "rate": "500kbit"}
        flows.append({"udp": udp})
    return flows


def _events(chance: Random, names: list[str]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for link in chance.sample(names, min(chance.randint(0, 3), len(names))):
        start = chance.randint(200, 1200)
        if chance.random() < 0.4:
            events.append({"at": f"{start}ms", "set": {link: {"rate": "3mbit", "delay": "3ms"}}})
        else:
            events.append({"at": f"{start}ms", chance.choice(["down", "cut"]): link})
            events.append({"at": f"{start + chance.randint(50, 700)}ms", "up": link})
    return events


def _other_events(
    chance: Random, hosts: list[str], routers: list[str], names: list[str]
) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    choices = {
        "net.ipv4.ip_forward": "0",
        "net.ipv6.conf.all.forwarding": "0",
        "net.ipv4.fib_multipath_hash_policy": "0",
        "net.ipv4.ip_forward_update_priority": "0",
    }
    for router in chance.sample(routers, chance.randint(0, min(2, len(routers)))):
        name, value = chance.choice(list(choices.items()))
        start = chance.randint(200, 1500)
        events.append({"at": f"{start}ms", "sysctls": {router: {name: value}}})
        if name.endswith(("forward", "forwarding")):
            events.append({"at": f"{start + 100}ms", "sysctls": {router: {name: "1"}}})
    if chance.random() < 0.3:
        setting = {"net.ipv4.ip_default_ttl": str(chance.randint(1, 4))}
        events.append({"at": f"{chance.randint(200, 1500)}ms", "sysctls": {chance.choice(hosts): setting}})
    for link in chance.sample([name for name in names if name.startswith("h")], 1 if names else 0):
        host, start = link.partition("-")[0], chance.randint(200, 1000)
        again = {"link": link, "flags": ["subflow"]}
        events.append({"at": f"{start}ms", "endpoints": {host: {"remove": link}}})
        events.append({"at": f"{start + 400}ms", "endpoints": {host: {"add": again}}})
    return events


_EACH = "| while read a rest; do"
CHANGES = (
    f"ip route show | grep via | head -1 {_EACH} ip route del $a; sleep 0.2; ip route add $a $rest; done",
    f"ip -6 route show | grep via | head -1 {_EACH} ip -6 route del $a; sleep 0.2; ip -6 route add $a $rest; done",
    f"ip route show | grep via | tail -1 {_EACH} ip route add prohibit $a metric 1; done",
    "ip rule add tos 0 prohibit; sleep 0.1; ip rule del tos 0 prohibit",
    "ip neigh flush all",
    f"ip neigh show dev $dev | head -1 {_EACH} ip neigh replace $a lladdr 02:0:0:0:0:9 nud permanent dev $dev; done",
    "ip link set $dev mtu 1280; sleep 0.3; ip link set $dev mtu 1500",
    "ip link set $dev address 02:00:00:00:00:77",
    "ip link set $dev down; sleep 0.1; ip link set $dev up",
    "ip addr add 10.99.0.1/24 dev $dev; sleep 0.1; ip addr del 10.99.0.1/24 dev $dev",
    "ip addr show dev $dev | grep inet | head -1",
    "tc qdisc add dev $dev root pfifo limit 5; sleep 0.2; tc qdisc del dev $dev root",
    "tc qdisc add dev $dev clsact; sleep 0.1; tc qdisc del dev $dev clsact",
    "ethtool -K $dev tx off; sleep 0.1; ethtool -K $dev tx on",
    "iptables -A FORWARD -p udp -j DROP; sleep 0.2; iptables -F FORWARD",
)
"""What a program does to a router; what a kernel or a machine lacks fails on both kernels."""
COUNTERS = (
    "ip -s link; ip -s neigh; cat /proc/net/snmp /proc/net/snmp6 /proc/net/netstat /proc/net/dev_snmp6/*"
)


def _changes(chance: Random) -> str:
    lines = ["exec 2>&1", "devices=$(ls /proc/sys/net/ipv4/conf | grep -vxE 'all|default|lo' | sort)"]
    for change in chance.sample(CHANGES, chance.randint(0, 3)):
        lines.append(f"sleep {chance.randint(100, 500) / 1000}")
        lines.append(f"dev=$(echo $devices | cut -d' ' -f{chance.randint(1, 3)}); [ $dev ] || exit 0")
        lines.append(change)
    return "\n".join([*lines, "sleep 0.5", COUNTERS])


@dataclass(frozen=True)
class Network:
    """A plan to run on both kernels, with its input files by name."""

    name: str
    plan: Plan
    inputs: Mapping[str, Path]


def network_of(seed: int) -> Network:
    """Return the network that a seed draws."""
    model = parse(json.dumps(drawn(seed)), f"drawn-{seed}.yaml")
    plan = resolve(expand(model)[0].scenario, trial_seed(model.seed, 0))
    return Network(f"network {seed}", plan, {})


def children_s() -> float:
    """Return the processor time in s of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(engine: VirtualEngine, network: Network, folder: Path) -> float:
    """Run a trial in a new folder, and return its processor time in s."""
    folder.mkdir()
    before = children_s()
    engine.execute(Job(network.plan, network.inputs, folder))
    return children_s() - before


def differing(old: Path, new: Path) -> list[str]:
    """Return the names of the files that only one of two trials left, or whose bytes differ."""
    contents = [
        {
            str(path.relative_to(trial)): path.read_bytes()
            for name in COMPARED
            for path in sorted((trial / name).rglob("*"))
            if path.is_file()
        }
        for trial in (old, new)
    ]
    if not all(contents):
        raise SystemExit(f"cannot compare {old} and {new}: a trial left no file; see its status.json")
    names = sorted(contents[0].keys() | contents[1].keys())
    return [name for name in names if contents[0].get(name) != contents[1].get(name)]


def compared(engines: list[VirtualEngine], network: Network, *, new_first: bool) -> tuple[float, bool]:
    """Run a network on both kernels, and print what differs.

    Returns the ratio of processor times, and whether all is equal.

    Raises TrialError if a trial fails.
    """
    with tempfile.TemporaryDirectory() as place:
        folders = [Path(place) / "old", Path(place) / "new"]
        times = {
            index: run(engines[index], network, folders[index]) for index in ((1, 0) if new_first else (0, 1))
        }
        names = differing(*folders)
    verdict = f"DIFFERS in {', '.join(names)}" if names else "equal"
    print(f"{network.name}: {times[0]:.2f} s, {times[1]:.2f} s, {verdict}", flush=True)
    return times[1] / times[0], not names


def main(arguments: list[str] | None = None) -> int:
    """Compare the networks or scenarios. Return 0 if no file differed and all trials ran."""
    options = _options(arguments)
    engines = [_engine(options.old, whole=options.whole_stack), _engine(options.new, whole=False)]
    ratios, failed = [], 0
    networks = (
        planned(options.scenario) * options.networks
        if options.scenario
        else [network_of(options.seed + number) for number in range(options.networks)]
    )
    for number, network in enumerate(networks):
        try:
            ratio, equal = compared(engines, network, new_first=not number % 2)
        except TrialError as error:
            print(f"{network.name}: {error}", flush=True)
            failed += 1
            continue
        ratios.append(ratio)
        failed += not equal
    if ratios:
        print(f"ratio {min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}")
    print(f"{len(networks)} networks, {failed} differ or failed")
    return 1 if failed else 0


def planned(references: list[str]) -> list[Network]:
    """Return all cases of the scenarios, each with its first seed."""
    networks = []
    for reference in references:
        model = load(reference)
        for case in expand(model):
            plan = resolve(case.scenario, trial_seed(model.seed, 0))
            name = f"{Path(reference).stem} {case.name}"
            networks.append(Network(name, plan, case.scenario.input_files()))
    return networks


class _WholeStack(VirtualEngine):
    """An engine whose routers send each packet through their whole stacks."""

    def execute(self, job: Job) -> None:
        os.environ[CUT_THROUGH] = "0"
        try:
            super().execute(job)
        finally:
            del os.environ[CUT_THROUGH]


def _engine(name: str, *, whole: bool) -> VirtualEngine:
    return (_WholeStack if whole else VirtualEngine)(kernels.find(name), AGENT)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", help="a built kernel (`plait kernel list`)")
    parser.add_argument("new", help="the kernel to compare with it")
    parser.add_argument("--whole-stack", action="store_true", help="run OLD with PLAIT_CUT_THROUGH=0")
    parser.add_argument("--networks", type=int, default=50, help="how many; for scenarios, runs of each")
    parser.add_argument("--seed", type=int, default=1, help="that of the first network")
    parser.add_argument(
        "--scenario", action="append", default=[], help="compare its cases instead (repeatable)"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
