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

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "links"))

from link_netlink import NetlinkSocket
from link_soak.load import CALM, MIXED
from link_soak.network import HOME, Network
from soak import COMPLAINTS

from plait.testing.hunt import netlink


def main() -> int:
    """Boot trials until the time is over. Return 0 if no kernel gave a warning."""
    options = _options()
    if options.guest:
        return _guest(options)
    from plait.kernel import ensure, find

    kernel = find(options.kernel) if options.kernel else ensure()
    print(f"kernel {kernel.name}, {options.minutes} minutes from seed {options.seed}", flush=True)
    started, trials, total, alarms = time.monotonic(), 0, Counter[str](), 0
    while not trials or time.monotonic() - started < 60 * options.minutes:
        console = _boot(kernel.binary, options, options.seed + trials)
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernel", help="a built kernel (`plait kernel list`); default: the default one")
    parser.add_argument("--minutes", type=float, default=15, help="start trials for this time; at least one")
    parser.add_argument("--networks", type=int, default=3, help="how often a trial builds its network")
    parser.add_argument("--changes", type=int, default=400, help="changes of each network")
    parser.add_argument("--direct", type=int, default=3, help="links between the hosts themselves")
    parser.add_argument("--seed", type=int, default=1, help="that of the first trial")
    parser.add_argument("--memory", default="768M")
    parser.add_argument("--guest", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def _boot(binary: Path, options: argparse.Namespace, seed: int) -> str:
    """Run the guest's side in a fresh kernel, and return its console."""
    with tempfile.TemporaryDirectory() as folder:
        init = Path(folder) / "init"
        command = [sys.executable, str(Path(__file__).resolve()), "--guest", f"--seed={seed}"]
        command += [f"--{name}={getattr(options, name)}" for name in ("networks", "changes", "direct")]
        init.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n")
        init.chmod(0o755)
        arguments = [
            f"mem={options.memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init={init}",
            "time-travel=inf-cpu", f"um_rng_seed={seed}", "con=null", "con0=null,fd:1", "uml_dir=.", "panic=-1",
            "loglevel=6",
        ]  # fmt: skip
        done = subprocess.run(
            ["setarch", "-R", str(binary), *arguments],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
    return done.stdout.decode(errors="replace").replace("\r", "")


def softirqs(kind: str) -> int:
    """Return how often the kernel ran a kind of softirq."""
    lines = Path("/proc/softirqs").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.strip().startswith(f"{kind}:"))


def _guest(options: argparse.Namespace) -> int:
    """Run as the first process of the guest; never return."""
    try:
        os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
        for kind, place in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")):  # noqa: S108 - the guest's own
            netlink.run(["mount", "-t", kind, kind, place])
        HOME.append((os.open("/proc/self/ns/net", os.O_RDONLY), NetlinkSocket()))
        chance, counts = random.Random(options.seed), Counter[str]()
        for _ in range(options.networks):
            _play(chance, counts, options)
        _look_for_leaks(counts)
        for name, number in counts.items():
            print(f"SOAK {number} {name}", flush=True)
        print("SOAK finished", flush=True)
    except BaseException as error:
        print(f"SOAK failed: {type(error).__name__}: {error}", flush=True)
        raise
    finally:
        sys.stdout.flush()
        netlink.LIBC.reboot(0x4321FEDC)
    return 0


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


def _look_for_leaks(counts: Counter[str]) -> None:
    leaks = Path("/sys/kernel/debug/kmemleak")
    if not leaks.parent.exists():
        return
    netlink.run(["mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"])
    for _ in range(3):
        time.sleep(15)
        leaks.write_text("scan")
    report = leaks.read_text()
    print(report, flush=True)
    counts["unreferenced objects"] += report.count("unreferenced object")


if __name__ == "__main__":
    raise SystemExit(main())
