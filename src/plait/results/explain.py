"""Explain a study in its result folder: read its trials and pass them to `plait.explain`."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from plait.analysis.failures import in_one_line
from plait.analysis.labels.cases import labels as case_labels
from plait.analysis.labels.labelled import labelled
from plait.analysis.labels.study_labels import StudyLabels, labels_in
from plait.dataset.study_file import StudyFile, read_study_file
from plait.dataset.trial import Trial, making_sense, read_trial, trial_folder, trial_numbers
from plait.errors import DataError, RequestError
from plait.explain import explain_trial
from plait.explain.effect import with_effects
from plait.explain.model import FlowExplanation, StudyExplanation, TrialExplanation
from plait.explain.unrestricted_paths import unrestricted_paths_of_case
from plait.scenario import Scenario
from plait.scenario.vary.choose import choose_case
from plait.scenario.wording import nearest
from plait.version import other_version

MAX_TRIALS = 5
"""At most this many trials of a case are examined."""
_MOST_FAILED = 3
"""At most this many failed trials have their reasons in an error."""


@dataclass(frozen=True)
class _ExplainedTrial:
    index: int
    trial: Trial
    flows: tuple[FlowExplanation, ...]


def recorded_folder(study_file: StudyFile) -> Path:
    """Return the folder of the scenario's file, where relative file names start."""
    from plait.scenario.read import library

    try:
        words = shlex.split(study_file.command)
    except ValueError:  # it is the text of a stranger
        words = []
    file = Path(words[2]) if len(words) > 2 else Path()
    return file.parent if file.is_file() else library.folder() or Path()


def recorded_scenario(study_file: StudyFile) -> Scenario:
    """Return the scenario that study.json records; RequestError if this version of plait does not accept it."""
    from pydantic import ValidationError

    try:
        return Scenario.model_validate(study_file.scenario)
    except ValidationError as wrong:
        remedy = other_version(study_file.plait_version)
        raise RequestError(
            "reading the scenario in study.json: this version of plait does not accept it; "
            + (f"{remedy}, or " if remedy else "")
            + "run the study again"
        ) from wrong


def explain_study(
    folder: Path,
    *,
    case: str | None = None,
    flow: str | None = None,
    trial: int | None = None,
    with_labels: bool = False,
) -> StudyExplanation:
    """Return why the flows of a study were not faster, with one representative trial of each case.

    Args:
        folder: the result folder.
        case: explain only this case: its name, a part of it, or its number.
        flow: explain only this flow, by its name.
        trial: explain the trial with this number.
        with_labels: call flows, paths and links by their labels, for people; otherwise by their names.

    Raises:
        DataError: the folder holds no study, or is damaged.
        RequestError: there is no such case, flow or completed trial.
    """
    study_file = read_study_file(folder)
    names = [trial_of_case.name for trial_of_case in study_file.cases]
    if case is not None:
        called = case_labels(study_file.cases, labels_in(study_file.scenario).cases)
        case = choose_case(case, names, called)
    labels = labels_in(study_file.scenario) if with_labels else StudyLabels()
    cases, failed, known = [], [], dict[str, None]()
    for name in names if case is None else [case]:
        completed, failures = _trials(folder, name, trial)
        failed += failures
        explained = [
            _explain(index, trial_of_case, study_file, name, labels) for index, trial_of_case in completed
        ]
        if explained:
            known |= dict.fromkeys(explanation.flow for each in explained for explanation in each.flows)
            flow_called = labels.flow(flow) if flow is not None else None
            cases.append(_representative(name, explained, flow_called))
    if not cases:
        selection = f"trial {trial} of " if trial is not None else ""
        if further := failed[_MOST_FAILED:]:
            failed = [
                *failed[:_MOST_FAILED],
                f"and {len(further)} more failed trial{'s' * (len(further) > 1)}",
            ]
        raise RequestError(
            f"explaining {selection}{folder}: there is no completed trial; "
            + ("; ".join(failed) or "`plait run` runs those that are missing")
        )
    if flow is not None and not any(trial_of_case.flows for trial_of_case in cases):
        guess = nearest(flow, known) or "leave the option out to see all"
        raise RequestError(
            f"--flow {flow}: no completed trial has such a flow that can be explained; {guess}"
        )
    return StudyExplanation(
        scenario=study_file.name or study_file.heading, cases=tuple(cases), failed=tuple(failed)
    )


def for_people(
    folder: Path, explanation: StudyExplanation, flow: str | None = None
) -> tuple[StudyExplanation, dict[str, str]]:
    """Return an explanation with labels in place of names, and what to call each case, by name.

    `flow` is the only flow that it explains.

    Raises:
        DataError: the folder is damaged.
    """
    study_file = read_study_file(folder)
    labels = labels_in(study_file.scenario)
    called = case_labels(study_file.cases, labels.cases)
    if not labels:
        return explanation, called
    cases = []
    for case in explanation.cases:
        repeated = explain_study(folder, case=case.case, flow=flow, trial=case.trial, with_labels=True).cases[
            0
        ]
        flows = (
            with_effects(shown, named.tried, named.untried)
            for shown, named in zip(repeated.flows, case.flows, strict=True)
        )
        cases.append(case.model_copy(update={"flows": tuple(flows)}))
    return explanation.model_copy(update={"cases": tuple(cases)}), called


def _explain(
    index: int, trial: Trial, study_file: StudyFile, case: str, labels: StudyLabels
) -> _ExplainedTrial:
    with making_sense(trial.folder):
        unrestricted = unrestricted_paths_of_case(study_file.scenario, case, trial.plan, labels)
        plan, tables = labelled(trial.plan, trial.tables, labels)
        return _ExplainedTrial(index, trial, explain_trial(plan, tables, unrestricted))


def _trials(folder: Path, case: str, wanted_trial: int | None) -> tuple[list[tuple[int, Trial]], list[str]]:
    """Return the completed trials to examine, evenly spaced, and a line for each failed trial."""
    completed, failures = [], []
    for number in trial_numbers(folder, case):
        if wanted_trial is not None and number != wanted_trial:
            continue
        try:
            trial = read_trial(trial_folder(folder, case, number))
        except DataError as error:
            failures.append(f"{case} #{number}: {error}")
            continue
        if trial.provenance.status == "failed":
            failures.append(
                f"{case} #{number}: {in_one_line(trial.provenance.error or 'no reason was recorded')}"
            )
        else:
            completed.append((number, trial))
    step = max(1, -(-len(completed) // MAX_TRIALS))
    return completed[::step], failures


def _main_cause(flows: tuple[FlowExplanation, ...]) -> str | None:
    """Return the first cause of the first flow that is not in the background."""
    return next((flow.first for flow in sorted(flows, key=lambda flow: flow.background)), None)


def _representative(case: str, trials: list[_ExplainedTrial], flow: str | None) -> TrialExplanation:
    """Return the first of the trials that have the most frequent main cause."""
    causes = Counter(_main_cause(trial.flows) for trial in trials)
    usual, agree = causes.most_common(1)[0]
    chosen = next(trial for trial in trials if _main_cause(trial.flows) == usual)
    known, count = chosen.trial.plan.sampled_flows
    return TrialExplanation(
        case=case,
        trial=chosen.index,
        seed=chosen.trial.provenance.seed,
        flows=tuple(
            trial
            for trial in sorted(chosen.flows, key=lambda trial: trial.background)
            if flow is None or trial.flow == flow
        ),
        agree=agree,
        trials=len(trials),
        sampled_flows=None if known == count else (known, count),
    )
