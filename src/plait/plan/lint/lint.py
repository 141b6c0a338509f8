"""Warn before a run about settings that work but may not give the intended result.

`docs/reference/lint.md` lists every code with its threshold and its reason. Each problem of a case has one finding,
with the most specific code that applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from plait.cautions import Caution, Code
from plait.plan.case_plan import CasePlan
from plait.plan.finding import LintFinding
from plait.plan.lint import flow_warnings, link_warnings, subflow_warnings, unused_settings
from plait.plan.model.plan import Plan
from plait.scenario.source import Source
from plait.scenario.vary.cases import Case
from plait.seeds import trial_seed

_MAX_ALIKE = 3
"""The largest number of findings of one kind in a case before they become one."""
_FEWER_SUBFLOWS = frozenset(
    {
        Code.SUBFLOW_LIMIT,
        Code.ADD_ADDR_LIMIT,
        Code.NO_ROUTE,
        Code.NO_SIGNAL,
        Code.NO_ENDPOINT,
        Code.WRONG_SIDE,
        Code.MPTCP_OFF,
    }
)
_OF_ALL_CASES = (Code.UNREAD, Code.UNCROSSED)
"""Codes of settings without an effect, which are worth a caution only if no case reads them."""


def lint(case: CasePlan, seed: int = 1) -> list[LintFinding]:
    """Return the findings of a case: about its subflows, its flows, its links and its events."""
    scenario, plan = case.scenario, case.plan(seed)
    findings = [
        *subflow_warnings.lint(scenario, plan, case.missing),
        *flow_warnings.lint(scenario, plan),
        *link_warnings.lint(plan),
        *link_warnings.lint_events(scenario, plan),
        *unused_settings.lint(scenario, plan),
        *_prompt_halts(plan),
    ]
    if any(finding.code in _FEWER_SUBFLOWS for finding in findings):
        # A link that waits for such a subflow needs no caution of its own.
        findings = [finding for finding in findings if finding.code is not Code.UNCROSSED]
    unread = {finding.field for finding in findings if finding.code is Code.UNREAD}
    findings = [finding for finding in findings if finding.code is Code.UNREAD or finding.field not in unread]
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
    found = {case.name: lint(case, trial_seed(seed, 0)) for case in cases}
    for case in cases:
        for finding in found[case.name]:
            key = (finding.code, finding.where, finding.message)
            findings.setdefault(key, (case, finding, []))[2].append(case.name)
    return [
        *(
            _caution(case, finding, names, len(cases))
            for case, finding, names in findings.values()
            if len(names) == len(cases) or finding.code not in _OF_ALL_CASES
        ),
        *_same_cases(cases, found),
    ]


def _same_cases(cases: Sequence[CasePlan], found: Mapping[str, Sequence[LintFinding]]) -> Iterator[Caution]:
    """Yield the cases whose trials do exactly the same, so that what varies between them has no effect.

    Their plans are equal, or differ only in fields that their traffic does not read (`found` has the findings by case).
    """
    groups: dict[object, list[CasePlan]] = {}
    by_plan: dict[object, object] = {}
    for case in cases:
        key = by_plan.setdefault(case.content, _read_settings(case, found[case.name]))
        groups.setdefault(key, []).append(case)
    for first, *others in groups.values():
        if others:
            settings = [
                {name: repr(value) for name, value in case.settings.items()} for case in (first, *others)
            ]
            names_of_all = dict.fromkeys(name for one in settings for name in one)
            differ = [name for name in names_of_all if len({one.get(name) for one in settings}) > 1]
            finding = LintFinding(
                Code.SAME_CASES,
                ", ".join(differ) or "vary",
                f"{len(others) + 1} cases do the same, so it has no effect there",
                "vary something that their traffic reads, or leave these cases out",
                ("vary",),
            )
            names = [case.name for case in (first, *others)]
            yield _caution(first, finding, names, len(cases))


def _read_settings(case: CasePlan, findings: Sequence[LintFinding]) -> tuple[tuple[str, str], ...]:
    """Return the varied fields of a case with their values (or their places), without those that have no effect."""
    unread = [tuple(map(str, finding.field)) for finding in findings if finding.code in _OF_ALL_CASES]
    return tuple(
        (name, repr(case.settings.get(name, place)))
        for name, place in case.varied
        if not any(tuple(name.split("."))[: len(field)] == field for field in unread)
    )


def _caution(case: Case, finding: LintFinding, names: list[str], total: int) -> Caution:
    source = case.scenario.source or Source("")
    place = source.mistake(case.place(case.scenario.place(finding.field)), "")
    return Caution(
        code=finding.code,
        where=finding.where,
        message=finding.message,
        remedy=finding.remedy,
        field=place.path,
        line=place.line,
        column=place.column,
        figures=dict(finding.figures),
        cases=() if len(names) == total else tuple(names),
    )
