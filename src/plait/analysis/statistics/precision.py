"""How well the means of a study are known, and how many repeats it takes to know them better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plait.analysis.rows import CaseRows
from plait.analysis.statistics.intervals import describe
from plait.metrics import COMPARED


@dataclass(frozen=True)
class _Wide:
    """A mean that is not known well enough."""

    case: str
    metric: str
    n: int
    """Trials that were measured."""
    share: float
    """Half of its 95 % interval as a share of the mean."""


def wide(cases: Sequence[CaseRows], precision: float, judged: Sequence[str] = ()) -> list[_Wide]:
    """Return the means of the judged metrics whose interval is wider than `precision` (half of it / mean).

    Without any these are all metrics that represent a kind of traffic.

    Trials with equal values need no repetition, and a case in which nothing can be measured has
    nothing to find.
    """
    intervals = []
    for case in cases:
        for metric in judged or COMPARED:
            stats = describe([row.metrics.get(metric) for row in case.rows])
            if stats.n == 1:
                intervals.append(_Wide(case.name, metric, 1, math.inf))
            elif stats.ci95 is not None and stats.mean:
                share = (stats.ci95[1] - stats.ci95[0]) / 2 / abs(stats.mean)
                if share > precision:
                    intervals.append(_Wide(case.name, metric, stats.n, share))
    return intervals


def next_repeat(
    cases: Sequence[CaseRows], repeats: int, *, precision: float, limit: int, judged: Sequence[str] = ()
) -> int | None:
    """Return to how many repeats to go on after `repeats`; None when all means are known, or `limit` are done.

    The interval shrinks with the square root of the number. It is at most doubled at once, because a spread that a
    few trials show is itself not known well.
    """
    intervals = wide(cases, precision, judged)
    if not intervals or repeats >= limit:
        return None
    needed = max((interval.share / precision) ** 2 for interval in intervals)
    return min(limit, max(repeats + 1, math.ceil(repeats * min(needed, 2.0))))
