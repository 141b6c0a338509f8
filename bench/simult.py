"""Repeat the kernel's test of simultaneous flows over many seeds: 8 cases with equal and 12 with unequal rates.

    python bench/simult.py SEEDS [JOBS]

Prints, for each rate of the second link and each pair of queues, how many trials exceeded the bound of
simult_flows.sh (nine tenths of both rates, and 450 ms), and the longest.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.engine.uml.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.seeds import trial_seed

SIZES = (("16MiB", "80KiB"), ("80KiB", "16MiB"))
DELAYS = {10: (("50us", "50us"), ("1ms", "25ms")), 3: (("50us", "50us"), ("1ms", "25ms"), ("25ms", "1ms"))}
"""Delays of both links, by the rate of the second link in Mbit/s; the first link has 10."""
QUEUES = {10: ((20, 20), (20, 50)), 3: ((50, 50), (20, 20), (20, 50))}
"""Packets, by the same rate. The kernel's script gives netem 50 on both links."""


def main() -> None:
    """Run all cases and print the results."""
    seeds, jobs = int(sys.argv[1]), int((sys.argv[2:] or ["2"])[0])
    engine = VirtualEngine(kernels.ensure(), AGENT)
    for rate, queues in ((rate, pair) for rate, pairs in QUEUES.items() for pair in pairs):
        bound_ms = 16 * 2**20 * 8 * 10 // ((10 + rate) * 9_000) + 450
        cases = list(product(DELAYS[rate], [queues], SIZES, range(seeds)))
        with ThreadPoolExecutor(jobs) as pool:
            took = list(pool.map(lambda case: _took_ms(engine, rate, case), cases))  # noqa: B023 - used at once
        over = [f"{case}: {ms:.0f} ms" for case, ms in zip(cases, took, strict=True) if ms > bound_ms]
        print(
            f"10 and {rate} Mbit/s, queues {queues}: {len(took)} trials, {min(took):.0f} to {max(took):.0f} ms; "
            f"the kernel's bound is {bound_ms} ms, {len(over)} exceed it",
            *over,
            sep="\n  ",
            flush=True,
        )


def _took_ms(
    engine: VirtualEngine, rate: int, case: tuple[tuple[str, str], tuple[int, int], tuple[str, str], int]
) -> float:
    """Return the time in ms until both directions of a trial are complete."""
    delays, queues, sizes, repeat = case
    link = "network.links.client-router"
    settings = (
        "vary={}",
        f"{link}.delay={delays[0]}",
        f"{link}#2.delay={delays[1]}",
        f"{link}#2.rate={rate}mbit",
        f"{link}.queue={queues[0]}pkt",
        f"{link}#2.queue={queues[1]}pkt",
        f"traffic.0.transfer.bytes={sizes[0]}",
        f"traffic.0.transfer.back={sizes[1]}",
    )
    scenario = load("simult-flows", settings)
    with tempfile.TemporaryDirectory(prefix="plait-simult-") as place:
        folder = Path(place) / "job"
        folder.mkdir()
        engine.execute(Job(resolve(scenario, trial_seed(scenario.seed, repeat)), {}, folder))
        flows = convert(folder / "data", Path(place) / "tables")["flows"]
    if not flows["completed"].all():
        return float("inf")
    return float(flows["end_us"].max() - flows["start_us"].min()) / 1000  # type: ignore[operator, arg-type]  # of numbers


if __name__ == "__main__":
    main()
