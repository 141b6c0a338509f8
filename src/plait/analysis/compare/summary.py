"""From the metrics of every trial to the summary of the study."""

from __future__ import annotations

from collections.abc import Sequence

from plait.analysis.compare.cases import compare, leaders
from plait.analysis.compare.effects import effects
from plait.analysis.compare.factors import PLAIN, Design
from plait.analysis.gaps import part
from plait.analysis.labels.study_labels import StudyLabels
from plait.analysis.metrics.catalogue import judged_metrics, least_of
from plait.analysis.model import CaseSummary, Statistics, Summary
from plait.analysis.published import Published
from plait.analysis.rows import CaseRows
from plait.analysis.statistics.intervals import describe


def summarise(
    cases: Sequence[CaseRows],
    *,
    scenario: str,
    digest: str,
    baseline: str | None,
    published: Published | None = None,
    judged: tuple[str, ...] = (),
    design: Design = PLAIN,
    labels: StudyLabels | None = None,
) -> Summary:
    """Return the summary of a study.

    Args:
        cases: its trials by case.
        scenario: its name.
        digest: of its data.
        baseline: the name of the case that the others are compared with.
        published: published results of the same experiment.
        judged: the metrics that the scenario judges by.
        design: how the cases may be compared.
        labels: what people call the parts of the study.
    """
    figures = published or Published()
    names = list(dict.fromkeys(name for case in cases for row in case.rows for name in row.metrics))
    summary = Summary(
        scenario=scenario,
        digest=digest,
        cases=tuple(
            CaseSummary(
                name=case.name,
                settings=case.settings,
                trials=case.trials,
                failed=len(case.failed),
                excluded=case.excluded,
                published=figures.of_case(case.settings),
                label=case.label,
                metrics={
                    name: _described(name, [row.metrics.get(name) for row in case.rows])
                    for name in names
                    # Names of flows and paths belong to the cases that have them.
                    if "." not in name or any(name in row.metrics for row in case.rows)
                },
            )
            for case in cases
        ),
        judged=judged,
        strata=design.strata,
        zipped=design.zipped,
        labels=labels or StudyLabels(),
        published_source=figures.source or None,
        comparisons=tuple(part("comparisons of cases", lambda: compare(cases, baseline, judged, design), [])),
    )
    metrics = judged_metrics(summary)
    tested = part("effects of factors", lambda: effects(cases, metrics, design), ([], []))
    best = part("the best cases", lambda: leaders(cases, summary, design), [])
    return summary.model_copy(
        update={"effects": tuple(tested[0]), "untested": tuple(tested[1]), "leaders": tuple(best)}
    )


def _described(name: str, values: Sequence[float | None]) -> Statistics:
    return part(f"statistics of {name}", lambda: describe(values, least_of(name)), Statistics(n=0))
