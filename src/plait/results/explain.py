"""Explains a study in its result folder: reads trials, and hands them to `plait.explain`, which is pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from plait.dataset.trial import making_sense, read_trial, trial_folder, trial_numbers
from plait.errors import DataError, RequestError
from plait.explain import explain_trial
from plait.explain.model import StudyExplanation, TrialExplanation
from plait.explain.unrestricted_paths import possible_of_case
from plait.results.read import read_study_file
from plait.scenario.read.wording import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from plait.dataset.trial import Trial
    from plait.explain.causes import Cause
    from plait.explain.model import FlowExplanation
    from plait.results.read import StudyFile
    from plait.scenario import Scenario

MOST_TRIALS = 5
"""Trials of a case that are looked at; the one that is shown is one of those that agree with most."""


@dataclass(frozen=True)
class _Explained:
    index: int
    trial: Trial
    flows: tuple[FlowExplanation, ...]


class Recorded:
    """The scenario of a study as study.json keeps it."""

    def __init__(self, about: StudyFile) -> None:
        self.about = about

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario (RequestError when this version cannot read it any more)."""
        from pydantic import ValidationError

        from plait.scenario import Scenario

        try:
            return Scenario.model_validate(self.about.scenario)
        except ValidationError as wrong:
            raise RequestError(
                "reading the scenario in study.json: this version of plait does not take it; run the study again"
            ) from wrong


def explain_study(
    folder: Path, *, case: str | None = None, flow: str | None = None, trial: int | None = None
) -> StudyExplanation:
    """Returns why the flows of a study were not faster: of each case, by one trial that stands for it.

    `case`, `flow` and `trial` (its number) choose. Raises DataError for a folder that is no study or is damaged,
    RequestError where there is no such case, flow or trial.
    """
    about = read_study_file(folder)
    names = [one.name for one in about.cases]
    if case is not None and case not in names:
        raise RequestError(
            f"--case {case}: there is no such case; {nearest(case, names) or ', '.join(names)}"
        )
    cases, failed = [], []
    for name in names if case is None else [case]:
        good, bad = _trials(folder, name, trial)
        failed += bad
        found = [_explained(index, one, about, name) for index, one in good]
        if found:
            cases.append(_shown(name, found, flow))
    if not cases:
        what = f"trial {trial} of " if trial is not None else ""
        raise RequestError(f"explaining {what}{folder}: there is no completed trial; {'; '.join(failed[:3])}")
    if flow is not None and not any(one.flows for one in cases):
        raise RequestError(f"--flow {flow}: no completed trial has such a flow over TCP or MPTCP")
    return StudyExplanation(scenario=about.name or about.heading, cases=tuple(cases), failed=tuple(failed))


def _explained(index: int, trial: Trial, about: StudyFile, case: str) -> _Explained:
    with making_sense(trial.folder):
        could = possible_of_case(about.scenario, case, trial.plan)
        return _Explained(index, trial, explain_trial(trial.plan, trial.tables, could))


def _trials(folder: Path, case: str, only: int | None) -> tuple[list[tuple[int, Trial]], list[str]]:
    """The completed trials that are looked at, evenly taken of all, and what is to be said of those that failed."""
    good, bad = [], []
    for number in trial_numbers(folder, case):
        if only is not None and number != only:
            continue
        try:
            one = read_trial(trial_folder(folder, case, number))
        except DataError as error:
            bad.append(f"{case} #{number}: {error}")
            continue
        if one.provenance.status == "failed":
            reason, *_ = (one.provenance.error or "no reason was recorded").splitlines()
            bad.append(f"{case} #{number}: {reason}")
        else:
            good.append((number, one))
    step = max(1, -(-len(good) // MOST_TRIALS))
    return good[::step], bad


def _main(flows: tuple[FlowExplanation, ...]) -> Cause | None:
    """What the first flow that is no background has first."""
    return next((one.first for one in sorted(flows, key=lambda one: one.background)), None)


def _shown(case: str, found: list[_Explained], flow: str | None) -> TrialExplanation:
    """The first of the trials whose first flow has the cause that most have."""
    causes = Counter(_main(one.flows) for one in found)
    usual, agree = causes.most_common(1)[0]
    chosen = next(one for one in found if _main(one.flows) == usual)
    return TrialExplanation(
        case=case,
        trial=chosen.index,
        seed=chosen.trial.provenance.seed,
        flows=tuple(
            one
            for one in sorted(chosen.flows, key=lambda one: one.background)
            if flow is None or one.flow == flow
        ),
        agree=agree,
        trials=len(found),
    )
