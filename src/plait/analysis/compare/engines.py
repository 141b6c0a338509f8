"""Compares the engines of one study: the same cases, metric by metric, against the first engine."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from plait.analysis.model import Estimate
from plait.analysis.rows import CaseRows
from plait.analysis.statistics.differences import paired
from plait.analysis.statistics.intervals import describe
from plait.parts import Part

SETTING = "engine"
_METRICS = ("goodput_bps", "completion_s", "rtt_median_us")
_SHARE = ".path_share"


class EngineDifference(Part):
    """One metric of one case on an engine, against the reference engine."""

    case: str
    """The case without its engine; empty if nothing else varies."""
    metric: str
    reference: str
    engine: str
    expected: Estimate
    """The mean on the reference engine."""
    measured: Estimate | None
    """The mean on the engine; null if no trial measured it there."""
    difference: Estimate | None
    """Relative to the reference; of a share of a path in points (0.01 is a percentage point)."""
    verdict: Literal["within", "beyond", "not measured"]
    """Whether the value of the difference is within the bound."""


class CrossCheck(Part):
    """All differences between the engines of a study."""

    engines: tuple[str, ...]
    bound: float
    differences: tuple[EngineDifference, ...]

    @property
    def beyond(self) -> list[EngineDifference]:
        """The differences that are not within the bound."""
        return [row for row in self.differences if row.verdict != "within"]

    @property
    def uncertain(self) -> list[EngineDifference]:
        """The differences whose value is within the bound, and whose interval is not."""
        return [
            row
            for row in self.differences
            if row.verdict == "within"
            and row.difference is not None
            and row.difference.ci95 is not None
            and max(map(abs, row.difference.ci95)) > self.bound
        ]


def cross_check(cases: Sequence[CaseRows], engines: Sequence[str], bound: float) -> CrossCheck:
    """Return the differences of all engines from the first of `engines`.

    A metric that the reference engine did not measure is left out. `bound`: relative, or in points for shares.
    """
    groups: dict[str, dict[str, CaseRows]] = {}
    for case in cases:
        constants = {name: value for name, value in case.settings.items() if name != SETTING}
        label = ", ".join(f"{name}={value}" for name, value in constants.items())
        groups.setdefault(label, {})[str(case.settings[SETTING])] = case
    rows = [
        row
        for label, group in groups.items()
        for engine in engines[1:]
        for row in _compare(label, engines[0], engine, group, bound)
    ]
    return CrossCheck(engines=tuple(engines), bound=bound, differences=tuple(rows))


def _compare(
    label: str, reference: str, engine: str, group: Mapping[str, CaseRows], bound: float
) -> Iterator[EngineDifference]:
    expected_rows, measured_rows = group[reference], group[engine]
    for metric in _measured(expected_rows):
        expected, measured = expected_rows.by_seed(metric), measured_rows.by_seed(metric)
        seeds = sorted(expected.keys() & measured.keys())
        row = EngineDifference(
            case=label,
            metric=metric,
            reference=reference,
            engine=engine,
            expected=_mean(list(expected.values())),
            measured=_mean(list(measured.values())) if measured else None,
            difference=None,
            verdict="not measured",
        )
        if seeds:
            pairs = [expected[seed] for seed in seeds], [measured[seed] for seed in seeds]
            difference = _difference(metric, *pairs)
            within = difference is not None and abs(difference.value) <= bound
            row = row.model_copy(
                update={"difference": difference, "verdict": "within" if within else "beyond"}
            )
        yield row


def _difference(metric: str, reference: Sequence[float], checked: Sequence[float]) -> Estimate | None:
    if metric.endswith(_SHARE):
        return paired(reference, checked).difference
    ratio = paired(reference, checked).ratio
    if ratio is None:
        return None
    low_high = None if ratio.ci95 is None else (ratio.ci95[0] - 1, ratio.ci95[1] - 1)
    return Estimate(value=ratio.value - 1, ci95=low_high)


def _measured(case: CaseRows) -> list[str]:
    names = dict.fromkeys(name for row in case.rows for name in row.metrics)
    wanted = [name for name in names if name in _METRICS or name.endswith(_SHARE)]
    return [name for name in wanted if case.by_seed(name)]


def _mean(values: list[float]) -> Estimate:
    return Estimate(value=statistics.fmean(values), ci95=describe(values).ci95)
