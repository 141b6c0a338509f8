"""Compare the goodput of shipped scenarios over links as devices with that over links as chains.

    python bench/links_agree.py [SCENARIO..]

Each scenario runs its first case with its first seed, once with each kind of links.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from plait import kernel as kernels
from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.engine.uml.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from plait.kernel import Kernel
    from plait.plan.model.plan import LinksAs

SCENARIOS = (
    *("two-paths", "file-transfer", "n-paths", "interface-rates", "path-rates", "path-delays", "dumbbell"),
    *("shared-bottleneck", "source-limited", "khalili-a", "khalili-c", "handover"),
)


def delivered_bytes(kernel: Kernel, scenario: str, links: LinksAs) -> tuple[int, float]:
    """Return what all receivers got, and the virtual time of the last sample, in s."""
    model = load(scenario, ())
    plan = resolve(expand(model)[0].scenario, trial_seed(model.seed, 0))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        VirtualEngine(kernel, AGENT, links=links).execute(Job(plan, {}, folder))
        tables = convert(folder / "data", folder / "tables")
    last = tables["connections"].filter(pl.col("side") == "server").sort("t_us").group_by("flow").last()
    ends = tables["flows"]["end_us"].max()
    return int(last["received_bytes"].sum()), float(ends) / 1e6 if isinstance(ends, int) else 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenario", nargs="*", help="names of shipped scenarios")
    asked = parser.parse_args()
    kernel = kernels.ensure()
    rows = []
    for scenario in asked.scenario or SCENARIOS:
        chain, device = (delivered_bytes(kernel, scenario, links) for links in ("chain", "device"))
        rates = [size * 8 / end / 1e6 if end else float("nan") for size, end in (chain, device)]
        rows.append(
            {
                "scenario": scenario, "chain Mbit/s": round(rates[0], 3), "device Mbit/s": round(rates[1], 3),
                "difference %": round(100 * (rates[1] / rates[0] - 1), 2) if rates[0] else None,
            }
        )  # fmt: skip
        print(rows[-1], file=sys.stderr, flush=True)
    print(pl.DataFrame(rows))


if __name__ == "__main__":
    main()
