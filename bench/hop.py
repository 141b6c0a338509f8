"""Count the instructions that one packet and hop takes in the laboratory kernel, by what they do.

    python bench/hop.py LINUX [--steps N]

LINUX is the program `linux`, with its symbols, of a developer's tree (`plait kernel build --tree DIR`). The script runs
a flow over a chain of routers (`bench/links.py`), and executes N instructions of the guest's kernel one by one. The
count does not depend on what else the machine does. Time does not pass for the guest meanwhile.
"""

from __future__ import annotations

import argparse
import bisect
import ctypes
import hashlib
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from links import routers
from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.engine import Job
from plait.engine.uml.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

PEEKUSER, SINGLESTEP, DETACH, SEIZE, INTERRUPT = 3, 9, 17, 0x4206, 0x4207
RIP = 16 * 8
"""Offset of the instruction pointer in x86-64's `struct user`."""
TRAP = 5
ALL = 0x40000000
DEADLINE_S = 60.0

GROUPS = {
    "link device": "plait_",
    "virtual time, interrupts, softirq, idle loop": (
        "time_travel|ktime_get|timer_read|irq|tick_|block_signals|um_set_signals|tasklet|idle|wake_up_var|bh_enable|rcu_|"
        "jiffies|timekeeping|get_next_timer|hrtimer|run_timer"
    ),
    "IP": "^ip_|^__ip_finish|fib_|inet_lookup_ifaddr|find_exception|neigh|make_kuid|map_id_range|ipv4_dst",
    "network devices, Ethernet": "netif_|dev_|validate_xmit|skb_network_protocol|eth_|skb_scrub|skb_csum_hw|skb_push",
    "memory": "kmem|slab|kfree|kmalloc|alloc_skb|memset|memcpy|skb_release|build_skb|free_skb|page_frag",
    "hosts: TCP, MPTCP, programs": "",
}


def trace(pid: int, steps: int) -> Counter[int]:
    """Execute instructions of a process one by one; return how often each address came."""
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.restype = ctypes.c_long
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if ptrace(SEIZE, pid, None, None) or ptrace(INTERRUPT, pid, None, None):
        raise OSError(ctypes.get_errno(), "tracing the guest's kernel")
    os.waitpid(pid, ALL)
    seen: Counter[int] = Counter()
    signal = 0
    for _ in range(steps):
        seen[ptrace(PEEKUSER, pid, RIP, None)] += 1
        ptrace(SINGLESTEP, pid, None, signal)
        _, status = os.waitpid(pid, ALL)
        if not os.WIFSTOPPED(status):
            break
        signal = 0 if os.WSTOPSIG(status) == TRAP else os.WSTOPSIG(status)
    ptrace(DETACH, pid, None, None)
    return seen


def guest_of(pid: int) -> int | None:
    """Return the kernel's process among the descendants of a process."""
    waiting = [pid]
    while waiting:
        one = waiting.pop(0)
        try:
            if Path(f"/proc/{one}/comm").read_text().strip() == "linux":
                return one
            tasks = Path(f"/proc/{one}/task").iterdir()
            waiting += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return None


def symbols(program: Path) -> tuple[list[int], list[str]]:
    """Return the addresses of the program's functions, ascending, and their names."""
    lines = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    parts = [line.split() for line in lines]
    found = sorted((int(part[0], 16), part[2]) for part in parts if len(part) == 3 and part[1] in "tTwW")
    return [address for address, _ in found], [name for _, name in found]


def table(seen: dict[int, int], program: Path) -> pl.DataFrame:
    """Return the instructions per packet and hop of each group."""
    addresses, names = symbols(program)
    entry = addresses[names.index("plait_xmit")]
    hops = max(seen.get(entry, 0), 1)
    count: Counter[str] = Counter()
    for address, times in seen.items():
        name = names[max(bisect.bisect_right(addresses, address) - 1, 0)]
        count[next(group for group, pattern in GROUPS.items() if re.search(pattern, name))] += times
    total = sum(count.values())
    rows = [
        {"part": group, "instructions": round(count[group] / hops), "share": round(count[group] / total, 3)}
        for group in GROUPS
    ]
    return pl.DataFrame([*rows, {"part": "all", "instructions": round(total / hops), "share": 1.0}])


def run(program: Path, folder: Path) -> None:
    """Run the trial with a copy of the kernel without symbols."""
    stripped = folder / "linux"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    digest = hashlib.sha256(stripped.read_bytes()).hexdigest()
    kernel = replace(kernels.ensure(), binary=stripped, binary_sha256=digest)
    model = parse(routers(), "hop.yaml")
    plan = resolve(expand(model)[0].scenario, trial_seed(model.seed, 0))
    VirtualEngine(kernel, AGENT, links="device").execute(Job(plan, {}, folder / "job"))


def tracer(connection: Connection, steps: int) -> None:
    """Trace the process whose number comes over the connection, and answer with the counts."""
    connection.send(trace(connection.recv(), steps))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", type=Path, help="`linux` of a developer's tree")
    parser.add_argument("--steps", type=int, default=1_000_000)
    asked = parser.parse_args()
    # another process traces, because this one waits for the guest
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    context.Process(target=tracer, args=(there, asked.steps), daemon=True).start()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job").mkdir()
        trial = threading.Thread(target=run, args=(asked.program, folder), daemon=True)
        trial.start()
        deadline = time.monotonic() + DEADLINE_S
        while (pid := guest_of(os.getpid())) is None:
            if time.monotonic() > deadline:
                sys.exit("no guest has started")
            time.sleep(0.02)  # the pace of looking
        time.sleep(0.8)  # by now the flow is at its full rate
        here.send(pid)
        seen = here.recv()
        trial.join()
    with pl.Config(fmt_str_lengths=60):
        print(table(seen, asked.program))


if __name__ == "__main__":
    main()
