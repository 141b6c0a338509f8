"""Compare virtual and real time with a Mininet script: `python bench/clocks.py FOLDER [SEEDS]`.

The script runs `mininet_pair.py` with Linux bridges and with Open vSwitch, by `plait exec` with both clocks and SEEDS
seeds (20). It tests whether the results of the two clocks come from the same distribution (two-sided Mann-Whitney,
Kolmogorov-Smirnov). Runs with the real clock are slow, and other work on the machine disturbs them. The script keeps
each run in FOLDER with the load before it, so that a later call continues. The table leaves out runs with a load above
LOAD_MAX, except as root: then runs with the real clock have priority over all other processes.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from scipy import stats  # type: ignore[import-untyped]  # scipy ships no types

HERE = Path(__file__).parent
PLAIT = Path(sys.executable).parent / "plait"
SYSTEM_PYTHON = "/usr/bin/python3"
SWITCHES, CLOCKS = ("ovs", "bridge"), ("virtual", "real")
LOAD_MAX = 1.0
BOUND_S = 600
_REAL_CLOCK_PREFIX = ("chrt", "--rr", "20") if os.geteuid() == 0 else ()
"""The command prefix of a run with the real clock."""
_MBITS = re.compile(r"([\d.]+) Mbits/sec")


def run_script(switch: str, clock: str, seed: int) -> dict[str, float]:
    """Run the script once. Return Mbit/s with TCP and with MPTCP, and the machine's load before the run."""
    load = os.getloadavg()[0]
    before = _REAL_CLOCK_PREFIX if clock == "real" else ()
    command = [*before, str(PLAIT), "exec", "--seed", str(seed), "--clock", clock, "--"]
    done = subprocess.run(
        [*command, SYSTEM_PYTHON, str(HERE / "mininet_pair.py"), switch],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOUND_S, check=True,
    )  # fmt: skip
    tcp, mptcp = (float(rate) for rate in _MBITS.findall(done.stdout))
    return {"tcp": tcp, "mptcp": mptcp, "load": load}


def run_missing(folder: Path, switch: str, clock: str, seeds: int) -> list[dict[str, float]]:
    """Return the result of each seed; run those that `folder` does not have."""
    runs = []
    for seed in range(1, seeds + 1):
        path = folder / f"{switch}-{clock}-{seed}.json"
        if not path.exists():
            path.write_text(json.dumps(run_script(switch, clock, seed)), encoding="ascii")
        runs.append(json.loads(path.read_text(encoding="ascii")))
    return runs


def row(switch: str, transport: str, sides: list[list[dict[str, float]]]) -> list[str]:
    """Return a row of the table: medians and ranges of both clocks, and the p values of both tests."""
    values = [
        [
            run[transport]
            for run in side
            if clock == "virtual" or _REAL_CLOCK_PREFIX or run["load"] <= LOAD_MAX
        ]
        for clock, side in zip(CLOCKS, sides, strict=True)
    ]
    cells = [
        f"{statistics.median(side):.2f} ({min(side):.2f} to {max(side):.2f}), n = {len(side)}"
        for side in values
    ]
    loads = [run["load"] for run in sides[CLOCKS.index("real")]]
    tests = (stats.mannwhitneyu(*values).pvalue, stats.ks_2samp(*values).pvalue)
    return [switch, transport, *cells, f"{min(loads):.1f} to {max(loads):.1f}", *(f"{p:.2f}" for p in tests)]


def main() -> int:
    """Run what is missing, and print the table."""
    folder, seeds = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    folder.mkdir(parents=True, exist_ok=True)
    table = Table("switches", "", *(f"{clock} clock, Mbit/s" for clock in CLOCKS), "load", "p (MW)", "p (KS)")
    for switch in SWITCHES:
        sides = [run_missing(folder, switch, clock, seeds) for clock in CLOCKS]
        for transport in ("tcp", "mptcp"):
            table.add_row(*row(switch, transport, sides))
    Console(width=150).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
