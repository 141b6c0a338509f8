"""These functions compare a metric of `summary.json` with its recomputation from the tables."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
from catalog import EXCHANGED, FLOW, GROUP, OF_PAGES, PROGRAM, QUEUEING_DELAYS, STUDY, recompute
from recorded import Trial
from scipy.stats import t

from result_folders import summary_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IPERF3 = (
    *("sent_bps", "sent_bytes", "received_bps", "received_bytes", "retransmits"),
    *("udp_bps", "packets", "lost_packets", "jitter_us"),
)
LEAST: dict[str, float | None] = {
    "aggregation_benefit": None,
    **dict.fromkeys(("slowdown", "slowdown_p50", "slowdown_p99"), 1.0),
}
"""The least value of metrics that cannot be less; of all others it is 0."""
METRICS = (
    *(
        *STUDY,
        *EXCHANGED,
        "observed_1path_share",
        "observed_2path_share",
        "PATH.path_share",
        "FLOW.PATH.path_share",
    ),
    *(f"FLOW.{name}" for name in (*FLOW, *EXCHANGED) if name not in OF_PAGES),
    *(f"GROUP.{name}" for name in GROUP),
    *(f"LINK.{name}" for name in QUEUEING_DELAYS),
    *(f"PROGRAM.{name}" for name in (*PROGRAM, *(f"iperf3_{figure}" for figure in IPERF3))),
)


class Case:
    """One case of a result folder: its metrics, and its trials."""

    def __init__(self, study: Path, case: dict[str, Any]) -> None:
        self.name = f"{study.name} {case['name']}"
        self.metrics: dict[str, dict[str, Any] | None] = case["metrics"]
        self.trials = [Trial(folder) for folder in sorted((study / "trials" / case["name"]).iterdir())]

    def family(self, name: str) -> str:
        """`video.goodput_bps` is one of FLOW.goodput_bps."""
        owner, _, metric = name.rpartition(".")
        trial = self.trials[0]
        if not owner:
            return name
        if metric == "path_share":
            paths = {path["name"] for flow in trial.flows for path in flow.plan["paths"]}
            return "PATH.path_share" if owner in paths else "FLOW.PATH.path_share"
        if metric in QUEUEING_DELAYS:
            return f"LINK.{metric}"
        if owner in {flow.name for flow in trial.flows}:
            return f"FLOW.{metric}"
        programs = {program["name"] for program in trial.plan.get("programs", ())}
        return f"PROGRAM.{metric}" if owner in programs else f"GROUP.{metric}"

    def differences(self, metric: str) -> Iterator[tuple[str, str | None]]:
        """Yield each figure of a metric, and how it differs from its recomputation."""
        for name, recorded in self.metrics.items():
            if self.family(name) == metric:
                expected = [recompute(name, trial) for trial in self.trials]
                yield name, difference(expected, recorded, least=LEAST.get(name.rpartition(".")[2], 0.0))


def cases(study: Path) -> list[Case]:
    return [Case(study, case) for case in summary_json(study)["cases"]]


def difference(
    expected: list[float | None], reported: dict[str, Any] | None, *, least: float | None = 0.0
) -> str | None:
    """Return how the figures over trials differ from those of the expected values; None where they agree."""
    values = [value for value in expected if value is not None]
    count = 0 if reported is None else reported["n"]
    if count != len(values):
        return f"measured in {count} trials, recomputed {expected}"
    if reported is None or not values:
        return None
    figures = {
        "mean": statistics.fmean(values),
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
    }
    if len(values) > 1:
        figures["stdev"] = statistics.stdev(values)
        figures |= dict(zip(("first", "third"), np.quantile(values, (0.25, 0.75)), strict=True))
    reported = reported | dict(zip(("first", "third"), reported["quartiles"], strict=True))
    rounding = 1e-12 * max(map(abs, values))
    wrong: dict[str, Any] = {
        key: reported[key]
        for key, value in figures.items()
        if not math.isclose(reported[key], value, rel_tol=1e-9, abs_tol=rounding)
    }
    if not same_interval(values, reported["ci95"], least=least):
        wrong["ci95"] = reported["ci95"]
    return f"{wrong}, recomputed {expected}" if wrong else None


def same_interval(values: list[float], ci95: list[float] | None, *, least: float | None) -> bool:
    """Return whether the interval is mean -+ t(0.975, n-1) stdev / sqrt(n); null without a second value or spread.

    It does not reach below `least`, the least value that the metric can have, where no value does.
    """
    if ci95 is None or len(set(values)) < 2:
        return ci95 is None and len(set(values)) < 2
    half = t.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    low = max(least, mean - half) if least is not None and min(values) >= least else mean - half
    return np.allclose(ci95, (low, mean + half), rtol=1e-9, atol=1e-9 * half)
