"""Draw pairs of lines, plant them between hosts of a guest, and compare a download there with one on its twin.

    .venv/bin/python bench/lines/twins.py [--pairs 20] [--seed 1] [--skip 0]

`plait lines` measures a pair, and the scenario that it writes runs twice: on the hosts (the engine `remote`) and in the
laboratory. A pair agrees if the mean goodput differs by at most 5 %, and the median RTT under load of each line by at
most 10 %. (The median of both lines' samples together lies between two modes, and jumps from one to the other.)
Rates are from 2 to 20 Mbit/s, RTTs from 10 to 120 ms, queues from 20 to 300 ms, loss from 0 to 0.5 % on one line of
three, alone or in bursts; one line of four has fq_codel. Both hosts use both lines with MPTCP, cubic or bbr.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "remote"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from coverage import SYSTEM_CALL, Direction, log_uniform

from guest_runs import in_guest
from plait.engine.factory import make_engine
from plait.results.read import read_study
from plait.scenario import load
from plait.study.perform import Options, perform
from plait.study.progress import silent

GOODPUT_BOUND, RTT_BOUND = 0.05, 0.10
SENDING_BYTES = 10_000
"""A subflow that sent less only acknowledges."""
TRIALS = 12
"""Of an original and of a twin. With random losses, the median RTTs of four trials differ by 20 % by chance."""


def draw(random: np.random.Generator) -> tuple[Direction, Direction]:
    """Draw a line."""
    delay_us, fair = 500 * log_uniform(random, 10, 120), bool(random.random() < 0.25)
    loss = log_uniform(random, 0.0005, 0.005) if random.random() < 1 / 3 else 0.0
    burst = float(random.choice([1.0, 3.0]))
    rates = [log_uniform(random, 2e6, 20e6) for _ in range(2)]
    queue_s = log_uniform(random, 0.02, 0.3)
    there, back = (
        Direction(rate, delay_us, max(15_000, round(rate / 8 * queue_s)), loss, burst, None, fair)
        for rate in rates
    )
    return there, back


def compared(
    folder: Path, number: int, pair: list[tuple[Direction, Direction]], control: str, seed: int
) -> bool:
    """Measure a pair, run it and its twin, and print how they compare; return whether they agree."""
    names = ["h1-h2", "h1-h2#2"]
    limits = ("limits", "set", "subflows", "4", "add_addr_accepted", "4")
    request = {
        "lines": [
            [name, there.qdiscs(), back.qdiscs()] for name, (there, back) in zip(names, pair, strict=True)
        ],
        "limits": "rate: 60mbit, bytes: 100GB, time: 2h",
        "program": str(Path(__file__).with_name("original.py")),
        "command": ["{hosts}", "{ssh_config}", "{folder}", str(TRIALS)],
        "before": [
            *([host, "ip", "mptcp", *limits] for host in ("h1", "h2")),
            ["h2", "ip", "mptcp", "endpoint", "add", "10.1.2.2", "dev", "l2", "signal"],
            *([host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={control}"] for host in ("h1", "h2")),
        ],
    }
    in_guest(folder, request, "--system-call", SYSTEM_CALL, "--seed", str(seed))
    scenario = load(folder / "lines.yaml", ["vary={}", "transport=mptcp"])
    perform(
        scenario, "twin", make_engine, Options(repeat=TRIALS, calibrate=False), folder=folder / "twin",
        watch=silent, notify=lambda _: None,
    )  # fmt: skip
    originals, twins = figures(folder / "original"), figures(folder / "twin")
    agrees, words = True, []
    for name, original in originals.items():
        difference = twins[name] / original - 1
        agrees = agrees and abs(difference) <= (GOODPUT_BOUND if name == "goodput" else RTT_BOUND)
        words.append(f"{name} {original:.4g} {twins[name]:.4g} {100 * difference:+.1f} %")
    print(f"{number:2} {control:5} {'; '.join(words)} {'agrees' if agrees else 'DIFFERS'}", flush=True)
    return agrees


def figures(study: Path) -> dict[str, float]:
    """Return the mean goodput in bit/s, and for each line the mean of the trials' median RTTs in us."""
    goodputs = [value for _, value in read_study(study).cases[0].measured("goodput_bps")]
    medians: dict[str, list[float]] = {}
    for table in sorted(study.glob("trials/*/*/subflows.parquet")):
        sending = pl.read_parquet(table).filter(pl.col("sent_bytes") > SENDING_BYTES)
        for (address,), rows in sending.group_by("local_address"):
            medians.setdefault(f"RTT of {address}", []).append(float(np.median(rows["rtt_us"].drop_nulls())))
    lines = {name: float(np.mean(medians[name])) for name in sorted(medians)}
    return {"goodput": float(np.mean(goodputs)), **lines}


def main() -> None:
    """Compare drawn pairs, and print how many agree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--skip", type=int, default=0, help="draw this many pairs first, and run none of them"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep scenario and studies of each pair")
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    agreeing = 0
    for number in range(options.skip + options.pairs):
        pair, control = [draw(random) for _ in range(2)], str(random.choice(["cubic", "bbr"]))
        if number < options.skip:
            continue
        with tempfile.TemporaryDirectory(prefix="plait-twins-") as temporary:
            folder = Path(temporary) if options.keep is None else options.keep / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "planted.json").write_text(json.dumps([str(line) for line in pair]), encoding="utf-8")
            began = time.monotonic()
            agreeing += compared(folder, number, pair, control, 1000 * options.seed + number)
            print(f"   {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    print(f"{agreeing} of {options.pairs} agree")


if __name__ == "__main__":
    main()
