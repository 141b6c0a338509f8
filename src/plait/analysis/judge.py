"""The metrics by which a scenario judges a study: metrics, and their smallest differences of interest."""

from __future__ import annotations

from plait.analysis.model import Summary
from plait.cautions import Caution
from plait.metrics import is_judged, judged_metric
from plait.units import Ratio


def judged_in(scenario: object) -> tuple[str, ...]:
    """Return the metrics that a scenario judges by; unknown names of a later version are not among them."""
    return tuple(name for name in _judge_section(scenario) if is_judged(name))


def margins_in(scenario: object) -> dict[str, float]:
    """Return the smallest difference of interest of each metric for which a scenario has one, as a ratio."""
    margins: dict[str, float] = {}
    for name, text in _judge_section(scenario).items():
        try:
            margins |= {} if text is None else {name: float(Ratio.parse(text))}
        except ValueError:  # of a later version, or damaged
            continue
    return margins


def _judge_section(scenario: object) -> dict[str, object]:
    judged = scenario.get("judge") if isinstance(scenario, dict) else None
    if isinstance(judged, list):
        judged = dict.fromkeys(name for name in judged if isinstance(name, str))
    return (
        {judged_metric(str(name)): text for name, text in judged.items()} if isinstance(judged, dict) else {}
    )


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
