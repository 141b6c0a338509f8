"""The metrics that a study is judged by, as the scenario in study.json has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.cautions import Caution
from plait.metric_names import is_judged, judged_metric

if TYPE_CHECKING:
    from plait.analysis.model import Summary


def judged_in(scenario: object) -> tuple[str, ...]:
    """Return the metrics that a scenario judges by; unknown names of a later version are not among them."""
    given = scenario.get("judge") if isinstance(scenario, dict) else None
    listed = given if isinstance(given, list) else []
    names = [judged_metric(name) for name in listed if isinstance(name, str)]
    return tuple(dict.fromkeys(name for name in names if is_judged(name)))


def unmeasured(summary: Summary) -> list[Caution]:
    """Return a caution for each metric that the study shall be judged by and did not measure."""
    return [
        Caution(
            code="JUDGE_EMPTY",
            message=f"the scenario judges by {metric}, which no trial measured",
            remedy="write under `judge` metrics of its traffic: docs/reference/results.md lists them by kind",
        )
        for metric in summary.judged
        if all((stats := case.metrics.get(metric)) is None or not stats.n for case in summary.cases)
    ]
