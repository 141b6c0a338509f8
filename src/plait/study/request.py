"""From a scenario to a planned study, and to the study.json that describes it."""

from __future__ import annotations

from plait.dataset.study_file import CaseEntry, StudyFile
from plait.errors import RequestError
from plait.kernel.additions import modules_by_name
from plait.plan.case_plan import resolve_case
from plait.plan.lint.lint import lint_cases
from plait.scenario import Scenario
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed
from plait.study.engines import StudyEngines
from plait.study.shard import Shard
from plait.study.study import PlannedStudy
from plait.version import __version__


def plan_study(
    scenario: Scenario,
    name: str,
    *,
    seed: int | None = None,
    repeat: int | None = None,
    shard: Shard | None = None,
) -> PlannedStudy:
    """Return the study of `scenario`; `seed` and `repeat` replace the scenario's own.

    With `shard`, it has only these trials. Resolves every case once, so that nothing runs if one case is impossible.
    Raises RequestError.
    """
    additions = modules_by_name()
    cases = []
    for case in expand(scenario):
        try:
            cases.append(resolve_case(case, additions))
        except RequestError as error:
            raise RequestError(f"case {case.name}: {error}") from error
    study = PlannedStudy(
        name=name,
        cases=cases,
        seed=scenario.seed if seed is None else seed,
        repeat=scenario.repeat if repeat is None else repeat,
        inputs=scenario.input_files(),
        until=float(scenario.repeat.until) if repeat is None and scenario.repeat.until else None,
        paused=bool(scenario.pause),
        shard=shard,
    )
    if shard is not None and study.until is not None:
        raise RequestError(
            "--shard: the scenario repeats until its means are precise, which needs all results; state the number of "
            "repeats (--repeat N)"
        )
    cases[0].plan(trial_seed(study.seed, 0))  # raises RequestError for a seed out of range
    return study


def describe(scenario: Scenario, study: PlannedStudy, engines: StudyEngines, command: str) -> StudyFile:
    """Return the content of study.json: the resolved study, and what a user needs to run it again."""
    first = next(iter(engines.identities.values()))
    return StudyFile(
        name=study.name,
        title=scenario.title,
        description=scenario.description,
        command=command,
        seed=study.seed,
        repeat=study.repeat,
        until=study.until,
        plait_version=__version__,
        engine=engines.title(),
        kernel=engines.kernel(),
        agent_sha256=first.agent_sha256,
        engines=tuple(engines.facts()),
        shard=None if study.shard is None else str(study.shard),
        baseline=study.cases[0].name,
        cases=tuple(CaseEntry(name=case.name, settings=case.settings) for case in study.cases),
        cautions=tuple(lint_cases(study.cases, study.seed)),
        scenario=scenario.model_dump(mode="json", exclude_none=True),
    )
