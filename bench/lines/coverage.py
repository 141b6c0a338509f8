"""Draw lines, plant them between hosts of a guest, and count how often the intervals of `plait lines` are right.

    .venv/bin/python bench/lines/coverage.py [--lines 100] [--seed 1] [--most-rate 300]

A line counts as covered if every interval of both directions contains the planted value, and every statement holds (no
bucket before a time, an active queue). Rates are from 1 to 300 Mbit/s, RTTs from 2 to 300 ms, loss from 0 to 3 %,
independent or in bursts, queues from 10 ms to 2 s; a part has fq_codel, a token bucket or jitter. The directions of a
line are drawn apart. It takes some minutes for every ten lines.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "remote"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from guest_runs import in_guest

LEAST_FRAMES, FRAME = 3, 1514
AT_ONCE = 4
SHAPER_BYTES = 5000
"""What a shaper without a larger bucket passes at once."""
SYSTEM_CALL = "300ns"
"""As on a real host: at the 7 us that `plait exec` takes a fast line would wait for the processor of its hosts."""


@dataclass(frozen=True)
class Direction:
    """What a direction of a line is planted with."""

    rate_bps: float
    delay_us: float
    queue_bytes: int
    loss: float = 0.0
    burst: float = 1.0
    """Mean number of packets that are lost one after the other."""
    bucket: tuple[int, float] | None = None
    """Burst in bytes, baseline in bit/s."""
    fair: bool = False
    jitter_us: float = 0.0

    def qdiscs(self) -> list[str]:
        """Return the arguments of the qdiscs, the outer one first."""
        jitter = f" {self.jitter_us / 1000:.4f}ms distribution normal" if self.jitter_us else ""
        loss = ""
        if self.loss and self.burst == 1:
            loss = f" loss {self.loss * 100:.5f}%"
        elif self.loss:
            r = 1 / self.burst
            loss = f" loss gemodel {100 * r * self.loss / (1 - self.loss):.5f}% {100 * r:.5f}% 100% 0%"
        netem = f"netem delay {self.delay_us / 1000:.4f}ms{jitter} limit 100000{loss}"
        burst, baseline = self.bucket or (SHAPER_BYTES, self.rate_bps)
        tbf = f"tbf rate {round(baseline)}bit burst {burst}b limit {self.queue_bytes}b"
        if self.bucket:
            tbf += f" peakrate {round(self.rate_bps)}bit mtu 10000"
        return [netem, tbf, *(["fq_codel"] if self.fair else [])]


def draw(random: np.random.Generator, most_bps: float) -> tuple[Direction, Direction]:
    """Draw a line."""
    rtt_us = 1000 * log_uniform(random, 2, 300)
    part = random.uniform(0.3, 0.7)
    there, back = (draw_direction(random, rtt_us * share, most_bps) for share in (part, 1 - part))
    return there, back


def draw_direction(random: np.random.Generator, delay_us: float, most_bps: float) -> Direction:
    """Draw a direction."""
    rate = log_uniform(random, 1e6, most_bps)
    fair = bool(random.random() < 0.3)
    kind = random.integers(3)
    bucket = None
    if not fair and random.random() < 0.25:
        baseline = rate * random.uniform(0.1, 0.7)
        bucket = (max(100_000, round(rate / 8 * log_uniform(random, 0.1, 10))), baseline)
    lasting = bucket[1] if bucket else rate
    return Direction(
        rate_bps=rate,
        delay_us=delay_us,
        queue_bytes=max(LEAST_FRAMES * FRAME, round(lasting / 8 * log_uniform(random, 0.01, 2))),
        loss=0.0 if kind == 0 else log_uniform(random, 0.001, 0.03),
        burst=float(random.integers(2, 9)) if kind == 2 else 1.0,
        bucket=bucket,
        fair=fair,
        jitter_us=delay_us * random.uniform(0.02, 0.1) if random.random() < 0.15 else 0.0,
    )


def log_uniform(random: np.random.Generator, low: float, high: float) -> float:
    """Draw a number whose logarithm is uniform."""
    return float(np.exp(random.uniform(np.log(low), np.log(high))))


def misses(planted: tuple[Direction, Direction], line: dict[str, Any]) -> list[str]:
    """Return what the estimate of a line says that is wrong."""
    wrong = [
        f"{name} {what}"
        for name, direction in zip(("forward", "backward"), planted, strict=True)
        for what in direction_misses(direction, line[name])
    ]
    if not any(direction.jitter_us for direction in planted):  # else the least delay is not defined
        wrong += outside("base RTT", line["base_rtt_us"], sum(direction.delay_us for direction in planted))
    return wrong


def direction_misses(planted: Direction, estimate: dict[str, Any]) -> list[str]:
    """Return what the estimate of a direction says that is wrong."""
    wrong = outside("rate", estimate["rate_bps"], planted.rate_bps)
    wrong += outside("loss", estimate["loss_ratio"], planted.loss)
    if planted.jitter_us:
        wrong += outside("jitter", estimate["jitter_us"], planted.jitter_us)
    bucket, queue = estimate["bucket"], estimate["queue"]
    if estimate["burst_bytes"]["value"] is not None:
        wrong += outside("burst of the shaper", estimate["burst_bytes"], SHAPER_BYTES)
    if planted.bucket and bucket:
        wrong += outside("burst", bucket["burst_bytes"], planted.bucket[0])
        wrong += outside("baseline", bucket["baseline_bps"], planted.bucket[1])
    elif planted.bucket:
        lasts_s = planted.bucket[0] * 8 / (planted.rate_bps - planted.bucket[1])
        wrong += ["bucket: not seen"] if lasts_s < 0.89 * estimate["lasted_s"] else []
    elif bucket:
        wrong.append("bucket: there is none")
    if planted.fair or queue["kind"] == "active":
        return wrong + ([] if planted.fair and queue["kind"] == "active" else [f"queue: {queue}"])
    known = outside("queue", queue["bytes"], planted.queue_bytes)
    return wrong + [f"{what}, {queue['kind']}, {queue['reason']}" for what in known]


def outside(name: str, value: dict[str, float | None], truth: float) -> list[str]:
    """Return a message if an interval does not contain the truth, or says nothing."""
    low, high = value["low"], value["high"]
    known = low is not None or high is not None
    if known and (low is None or low <= truth) and (high is None or truth <= high):
        return []
    return [f"{name}: {low} to {high} (value {value['value']}), planted {truth}"]


def main() -> None:
    """Measure drawn lines, and print what their intervals missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most-rate", type=float, default=300, metavar="MBIT", help="lower is faster to run")
    parser.add_argument(
        "--skip", type=int, default=0, help="draw this many lines first, and measure none of them"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the packets and the estimates of each line"
    )
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    lines = [draw(random, options.most_rate * 1e6) for _ in range(options.skip + options.lines)][
        options.skip :
    ]
    covered, values = 0, Counter[str]()
    for begin in range(0, len(lines), AT_ONCE):
        group = lines[begin : begin + AT_ONCE]
        with tempfile.TemporaryDirectory(prefix="plait-lines-") as folder:
            estimates = measured(Path(folder), group, options.most_rate)
            if options.keep:
                keep(Path(folder), options.keep / f"{options.seed}-{options.skip + begin:03}", group)
            for planted, line in zip(group, estimates, strict=True):
                wrong = misses(planted, line)
                covered += not wrong
                values.update(what.split(":")[0].split(" ", 1)[-1] for what in wrong)
                for what in wrong:
                    print(f"{what}; {planted}", flush=True)
        end = begin + len(group)
        print(f"{covered} of {end} lines covered; missed: {dict(values)}", flush=True)


def keep(folder: Path, kept: Path, group: list[tuple[Direction, Direction]]) -> None:
    """Copy what `measured` left in a folder, with what was planted."""
    kept.mkdir(parents=True)
    shutil.copy(folder / "estimates.json", kept)
    shutil.copytree(folder / "packets", kept / "packets")
    planted = [[asdict(direction) for direction in line] for line in group]
    (kept / "planted.json").write_text(json.dumps(planted), encoding="utf-8")


def measured(
    folder: Path, group: list[tuple[Direction, Direction]], most_mbit: float
) -> list[dict[str, Any]]:
    """Plant lines in a guest, and return their estimates."""
    names = ["h1-h2", *(f"h1-h2#{number}" for number in range(2, len(group) + 1))]
    request = {
        "lines": [
            [name, there.qdiscs(), back.qdiscs()] for name, (there, back) in zip(names, group, strict=True)
        ],
        "limits": f"rate: {round(1.4 * most_mbit)}mbit, bytes: 100GB, time: 1h",
        "program": str(Path(__file__).with_name("estimates.py")),
        "command": ["{hosts}", "{ssh_config}", "{folder}/estimates.json"],
    }
    in_guest(folder, request, "--system-call", SYSTEM_CALL)
    estimates: list[dict[str, Any]] = json.loads((folder / "estimates.json").read_text(encoding="utf-8"))
    return estimates


if __name__ == "__main__":
    main()
