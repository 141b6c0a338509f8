"""Stress links that are devices: change, cut and remove them while they carry packets.

    .venv/bin/python bench/soak_links.py --kernel ID --minutes 15

Boots a laboratory kernel for one trial after the other until the time is over, each with a seed of its own. A trial
builds networks of two hosts, direct links and a chain of routers, and loads them with connections of Multipath TCP and
TCP and with bursts of UDP. Meanwhile it changes the conditions of links and their qdiscs, cuts them, takes their ends
down, removes links and routers and builds them again, moves an end to another namespace, and reads the counters. In
the end it deletes the namespaces with packets in flight. A trial fails if the kernel printed a warning or the report of
a debug check, or if memory leaked. A kernel of `plait kernel build --debug` checks most.

The file has the host's side, which boots the kernel, and the first process of the guest. Sleeps of the latter pass in
the guest's virtual time.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "links"))

import argparse

from link_netlink import NetlinkSocket
from link_soak.load import CALM, MIXED
from link_soak.network import AT_HOME, Network
from stressed import arguments, boot, run_first_process, unreferenced_objects

from plait.testing.hunt.netlink import COMPLAINTS

CUT_THROUGH = Path("/sys/module/plait_links/parameters/cut_through")
"""How many packets did not pass the stack of a router, in a kernel that remembers where flows go."""


def main() -> int:
    """Boot trials until the time is over. Return 0 if no kernel gave a warning."""
    options = _options()
    if options.guest:
        return run_first_process(lambda: _guest(options))
    from plait.kernel import ensure, find

    kernel = find(options.kernel) if options.kernel else ensure()
    print(f"kernel {kernel.name}, {options.minutes} minutes from seed {options.seed}", flush=True)
    started, trials, total, alarms = time.monotonic(), 0, Counter[str](), 0
    while not trials or time.monotonic() - started < 60 * options.minutes:
        console = boot(
            kernel.binary, __file__, options, options.seed + trials, ("networks", "changes", "direct")
        )
        trials += 1
        counts = Counter(
            {name: int(n) for n, name in re.findall(r"^SOAK (\d+) (.*)$", console, re.MULTILINE)}
        )
        total += counts
        complaints = [line for line in console.splitlines() if COMPLAINTS.search(line)]
        unfinished = "SOAK finished" not in console
        shown = ", ".join(f"{number} {name}" for name, number in counts.items())
        print(f"trial {trials}, {time.monotonic() - started:.0f} s: {shown}", flush=True)
        if complaints or unfinished or counts["unreferenced objects"]:
            alarms += 1
            print(
                f"seed {options.seed + trials - 1}: {len(complaints)} warnings\n{console[-20_000:]}",
                flush=True,
            )
    print("\n".join(f"{number} {name}" for name, number in sorted(total.items())))
    print(f"{trials} trials, {alarms} with warnings, {time.monotonic() - started:.0f} s")
    return 1 if alarms else 0


def _options() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=15, help="start trials for this time; at least one")
    parser.add_argument("--networks", type=int, default=3, help="how often a trial builds its network")
    parser.add_argument("--changes", type=int, default=400, help="changes of each network")
    parser.add_argument("--direct", type=int, default=3, help="links between the hosts themselves")
    return parser.parse_args()


def softirqs(kind: str) -> int:
    """Return how often the kernel ran a kind of softirq."""
    lines = Path("/proc/softirqs").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.strip().startswith(f"{kind}:"))


def _guest(options: argparse.Namespace) -> None:
    AT_HOME.append(NetlinkSocket())
    chance, counts = random.Random(options.seed), Counter[str]()
    for _ in range(options.networks):
        _play(chance, counts, options)
    if CUT_THROUGH.exists():
        counts["packets cut through"] += int(CUT_THROUGH.read_text())
    counts["unreferenced objects"] += unreferenced_objects()
    for name, number in counts.items():
        print(f"SOAK {number} {name}", flush=True)


def _play(chance: random.Random, counts: Counter[str], options: argparse.Namespace) -> None:
    """Build a network, change it under load, and delete it."""
    calm = chance.random() < 0.4
    pauses = (0.1, 0.5) if calm else (0.0001, 0.001, 0.005, 0.02, 0.1)
    before, own = softirqs("HI"), Counter[str]()
    network = Network(chance, own, options.direct, calm)
    network.build(CALM if calm else MIXED)
    for _ in range(options.changes // 4 if calm else options.changes):
        time.sleep(chance.choice(pauses))
        network.change()
    network.tear_down()
    own["runs of the links' timer"] = softirqs("HI") - before
    own["networks"] = 1
    for name in ("packets delivered", "runs of the links' timer", "networks"):
        if calm:
            counts[f"{name}, one flow"] += own.pop(name)
    counts.update(own)


if __name__ == "__main__":
    raise SystemExit(main())
