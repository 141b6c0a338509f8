"""Draw routed networks, run each on two kernels, and compare all bytes and the processor times.

    .venv/bin/python bench/links.py OLD NEW [--networks 50] [--seed 1]

A change of the links or of forwarding may make a kernel faster, but must not change a trial. This script draws networks
of routers with what such a change could get wrong: equal-cost routes, both families of addresses, a link of a smaller
MTU, and events that take links down, cut them or change their conditions under load. plait samples the counters of
interfaces and nodes, and captures two links of each network.

Each network is one trial on each of the two kernels, which take turns in running first. The script prints the files
that differ, and in the end the ratio of the processor times. If OLD is NEW, this ratio is the machine's noise. The same
seed draws the same network, so `--networks 1 --seed N` repeats one of them.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import tempfile
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.engine import Job
from plait.engine.virtual.trial import VirtualEngine
from plait.errors import TrialError
from plait.plan.model.plan import Plan
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

COMPARED = ("data", "pcap")
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
    if chance.random() < 0.4:
        links[chance.choice(names)]["mtu"] = chance.choice([1280, 1400])
    return {
        "title": f"Drawn network {seed}",
        "seed": seed,
        "network": {
            "hosts": hosts,
            "routers": [router for row in rows for router in row],
            "links": links,
            "addresses": chance.choice(["ipv4", "ipv6", "dual"]),
            "routing": {"ecmp": chance.random() < 0.7, "metric": "hops"},
        },
        "mptcp": {"subflows_per_path": chance.choice([1, 2, 4])},
        "traffic": _traffic(chance, hosts),
        "events": _events(chance, names),
        "monitors": {"interfaces": "100ms", "counters": "100ms", "capture": chance.sample(names, 2)},
    }


def _conditions(chance: Random) -> dict[str, Any]:
    conditions: dict[str, Any] = {
        "rate": f"{chance.choice([5, 20, 100])}mbit",
        "delay": f"{chance.choice([100, 1000, 7000])}us",
        "queue": f"{chance.choice([20, 100, 400])}pkt",
    }
    if chance.random() < 0.2:
        conditions["loss"] = f"{chance.choice([0.1, 1])}%"
    return conditions


def _traffic(chance: Random, hosts: list[str]) -> list[dict[str, Any]]:
    flows: list[dict[str, Any]] = []
    for sender, receiver in ((hosts[0], hosts[2]), (hosts[1], hosts[3])):
        transport = chance.choice(["tcp", "mptcp"])
        flow = {"from": sender, "to": receiver, "duration": "2s", "transport": transport}
        flows.append({"bulk": {**flow, "reverse": chance.random() < 0.5}})
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


def plan_of(seed: int) -> Plan:
    """Return the plan of the network that a seed draws."""
    model = parse(json.dumps(drawn(seed)), f"drawn-{seed}.yaml")
    return resolve(expand(model)[0].scenario, trial_seed(model.seed, 0))


def children_s() -> float:
    """Return the processor time in s of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(engine: VirtualEngine, plan: Plan, folder: Path) -> float:
    """Run a trial in an empty folder, and return its processor time in s."""
    folder.mkdir()
    before = children_s()
    engine.execute(Job(plan, {}, folder))
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


def main() -> int:
    """Compare the networks. Return 0 if no file differed and all trials ran."""
    options = _options()
    engines = [VirtualEngine(kernels.find(name), AGENT) for name in (options.old, options.new)]
    ratios, failed = [], 0
    for number in range(options.networks):
        seed = options.seed + number
        plan, order = plan_of(seed), (0, 1) if number % 2 else (1, 0)
        with tempfile.TemporaryDirectory() as place:
            folders = [Path(place) / "old", Path(place) / "new"]
            try:
                times = {index: run(engines[index], plan, folders[index]) for index in order}
            except TrialError as error:
                print(f"network {seed}: {error}", flush=True)
                failed += 1
                continue
            names = differing(*folders)
        ratios.append(times[1] / times[0])
        verdict = f"DIFFERS in {', '.join(names)}" if names else "equal"
        print(f"network {seed}: {times[0]:.2f} s, {times[1]:.2f} s, {verdict}", flush=True)
        failed += bool(names)
    if ratios:
        print(f"ratio {min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}")
    print(f"{options.networks} networks, {failed} differ or failed")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", help="a built kernel (`plait kernel list`)")
    parser.add_argument("new", help="the kernel to compare with it")
    parser.add_argument("--networks", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1, help="that of the first network")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
