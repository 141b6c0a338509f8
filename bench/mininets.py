"""Compare real Mininet with `plait exec`: the time and output of the same scripts (`python bench/mininets.py`).

Real Mininet runs as root on this machine's kernel, in separate mount, process and network namespaces. So it affects
nothing else here, and processes that it kills by name are its own. If it cannot run, its column gives the reason. Each
script runs once, or as often as the first argument says; times are medians. Real Mininet mostly waits, but a guest
never does. So the table also has the processor time of `plait exec`, on which other work has less influence.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
PLAIT = Path(sys.executable).parent / "plait"
SYSTEM_PYTHON = "/usr/bin/python3"
"""The distribution's Python, which has Mininet."""
OWN_NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
BOUND_S = 600
IPERF = {"IPERF_COMPAT": "1", "IPERF_SINGLECLIENT": "1"}
"""Without them Mininet's own throughput test does not end with iperf 2.1; `plait exec` sets them itself."""
_FIGURES = re.compile(r"[\d.]+ Mbits/sec|\d+% dropped|^\d+\.\d+$", re.MULTILINE)


@dataclass(frozen=True)
class ScriptRun:
    """The times and the output of a script."""

    seconds: float
    busy: float
    """Processor time in s."""
    printed: str


def scripts() -> dict[str, list[str]]:
    """Return the command of each script, by its name in the table."""
    bridge = ["mn", "--switch", "lxbr", "--controller", "none", "--link", "tc,bw=10"]
    return {
        "TCP 10 s, MPTCP 10 s, 2 x 5 Mbit/s": [SYSTEM_PYTHON, str(HERE / "mininet_pair.py")],
        "mn --topo linear,4 --test pingall": [*bridge, "--topo", "linear,4", "--test", "pingall"],
        "mn --topo tree,2,3 --test pingall": [
            *bridge,
            "--topo",
            "tree,depth=2,fanout=3",
            "--test",
            "pingall",
        ],
        "mn --test iperf": [*bridge, "--test", "iperf"],
        "fat tree k=4, nodes and links": [SYSTEM_PYTHON, str(HERE / "mininet_fat_tree.py"), "4"],
    }


def real(command: list[str]) -> ScriptRun | str:
    """Run a script on this machine's kernel. Return the reason if that is not possible."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("mn") is None:
        return "mininet is not installed"
    return _timed([*OWN_NAMESPACES, *command], {**os.environ, **IPERF})


def virtual(command: list[str]) -> ScriptRun | str:
    """Run a script in a guest."""
    return _timed([str(PLAIT), "exec", "--", *command], dict(os.environ))


def _timed(command: list[str], environment: dict[str, str]) -> ScriptRun | str:
    started, before = time.perf_counter(), children_s()
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment,
            timeout=BOUND_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"more than {BOUND_S} s"
    printed = done.stdout + done.stderr
    if done.returncode != 0:
        return f"failed: {printed.strip().splitlines()[-1][:60] if printed.strip() else done.returncode}"
    return ScriptRun(
        time.perf_counter() - started, children_s() - before, " ".join(_FIGURES.findall(printed))
    )


def children_s() -> float:
    """Return the processor time in s of the child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _median(runs: list[ScriptRun | str]) -> ScriptRun | str:
    good = [outcome for outcome in runs if isinstance(outcome, ScriptRun)]
    if len(good) < len(runs):
        return next(outcome for outcome in runs if isinstance(outcome, str))
    seconds, busy = (
        statistics.median(values)
        for values in zip(*((done.seconds, done.busy) for done in good), strict=True)
    )
    return ScriptRun(seconds, busy, good[0].printed)


def main() -> int:
    """Print the table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    table = Table("script", "Mininet", "plait exec", "of that busy", "faster", "they print")
    for name, command in scripts().items():
        mininet = _median([real(command) for _ in range(repeats)])
        guest = _median([virtual(command) for _ in range(repeats)])
        table.add_row(
            name,
            f"{mininet.seconds:.1f} s" if isinstance(mininet, ScriptRun) else mininet,
            f"{guest.seconds:.1f} s" if isinstance(guest, ScriptRun) else guest,
            f"{guest.busy:.1f} s" if isinstance(guest, ScriptRun) else "",
            f"{mininet.seconds / guest.seconds:.1f} x"
            if isinstance(mininet, ScriptRun) and isinstance(guest, ScriptRun)
            else "",
            "\n".join(side.printed for side in (mininet, guest) if isinstance(side, ScriptRun)),
        )
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
