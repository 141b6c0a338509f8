"""Warn before a run about settings that work but may not give the intended result.

`docs/reference/lint.md` lists every code with its threshold and its reason. Each problem of a case has one finding,
with the most specific code that applies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plait.cautions import Code
from plait.plan.lint import event_warnings, flow_warnings, link_warnings, subflow_warnings
from plait.plan.lint.finding import LintFinding
from plait.scenario.read.source import Source
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plait.cautions import Caution
    from plait.plan.case_plan import CasePlan
    from plait.plan.model.plan import Plan
    from plait.scenario.vary.cases import Case

_MAX_ALIKE = 3
"""The largest number of findings of one kind in a case before they become one."""


def lint(case: CasePlan, seed: int = 1) -> list[LintFinding]:
    """Return the findings of a case: about its subflows, its flows, its links and its events."""
    scenario, plan = case.scenario, case.plan(seed)
    findings = [
        *subflow_warnings.lint(scenario, plan, case.missing),
        *flow_warnings.lint(scenario, plan),
        *link_warnings.lint(plan),
        *event_warnings.lint(scenario, plan),
        *_prompt_halts(plan),
    ]
    return _collapse_alike(
        list({(finding.code, finding.where, finding.message): finding for finding in findings}.values())
    )


def _prompt_halts(plan: Plan) -> Iterator[LintFinding]:
    if plan.pause:
        yield LintFinding(
            Code.PAUSE,
            "every trial",
            f"halted for a prompt {' and '.join(plan.pause)} its traffic; no file records the commands at the prompt",
            "leave pause out for figures that others reproduce",
            ("pause",),
        )


def _collapse_alike(findings: list[LintFinding]) -> list[LintFinding]:
    """Return the findings, with only the first one of many that are alike."""
    out: list[LintFinding] = []
    for finding in findings:
        alike = [other for other in findings if other.code == finding.code]
        if len(alike) <= _MAX_ALIKE:
            out.append(finding)
        elif finding is alike[0]:
            out.append(replace(finding, where=f"{finding.where} and {len(alike) - 1} similar ones"))
    return out


def lint_cases(cases: Sequence[CasePlan], seed: int) -> list[Caution]:
    """Return each caution of a study's cases once, with its place in the scenario's text and its cases."""
    findings: dict[tuple[str, str, str], tuple[Case, LintFinding, list[str]]] = {}
    for case in cases:
        for finding in lint(case, trial_seed(seed, 0)):
            key = (finding.code, finding.where, finding.message)
            findings.setdefault(key, (case.case, finding, []))[2].append(case.name)
    return [_caution(case, finding, names, len(cases)) for case, finding, names in findings.values()]


def _caution(case: Case, finding: LintFinding, names: list[str], total: int) -> Caution:
    source = case.scenario.source or Source("")
    place = source.mistake(case.place(case.scenario.place(finding.field)), "") if finding.field else None
    return finding.caution(place, () if len(names) == total else tuple(names))
