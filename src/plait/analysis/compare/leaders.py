"""The best case of each judged metric in each network, with the cases that are the same or may be as good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.analysis.compare.cases import pairs_of
from plait.analysis.compare.factors import by_stratum
from plait.analysis.judge import margin_of
from plait.analysis.metrics.catalogue import compared_metric
from plait.analysis.model import Leader
from plait.analysis.statistics.differences import direction, paired
from plait.analysis.statistics.tests import holm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plait.analysis.compare.factors import Design
    from plait.analysis.rows import CaseRows


def leaders(
    cases: Sequence[CaseRows],
    metrics: Sequence[str],
    means: Mapping[str, Mapping[str, float]],
    design: Design,
) -> list[Leader]:
    """Return the leader of each metric among the cases of each network; `means` are those of cases by metric.

    Holm's correction covers the comparisons with one leader. Cases without a common seed are undecided.
    """
    best_cases = []
    for levels, group in by_stratum(cases, design.strata).items():
        for metric in metrics:
            measured = [case for case in group if case.name in means[metric]]
            if measured:
                better = max if compared_metric(metric).more_is_better else min
                best = better(measured, key=lambda case: means[metric][case.name])
                best_cases.append(
                    _leader(best, measured, metric, design, dict(zip(design.strata, levels, strict=True)))
                )
    return best_cases


def _leader(
    best: CaseRows, measured: Sequence[CaseRows], metric: str, design: Design, levels: dict[str, str]
) -> Leader:
    margin = margin_of(metric, design.margins)
    rivals = [case for case in measured if case is not best]
    sides = [pairs_of(case, best, metric) for case in rivals]
    tests = [paired(*side) if side[0] else None for side in sides]
    corrected = holm([test.p_value if test is not None else None for test in tests])
    verdicts = {
        case.name: "unclear" if test is None else direction(test, p, margin)
        for case, test, p in zip(rivals, tests, corrected, strict=True)
    }
    return Leader(
        metric=metric,
        stratum=levels,
        case=best.name,
        same=tuple(name for name, verdict in verdicts.items() if verdict == "same"),
        undecided=tuple(name for name, verdict in verdicts.items() if verdict == "unclear"),
        margin=margin,
    )
