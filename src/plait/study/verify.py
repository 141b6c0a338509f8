"""Run a case again with changed fields and measure the effect, for `--verify` and `--what-if`."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from plait.analysis.metrics.programs import with_connections
from plait.dataset.study_file import read_study_file
from plait.dataset.trial import read_trial, trial_folder
from plait.engine.engine import Engine
from plait.engine.workspace import working_folder
from plait.errors import RequestError, ScenarioError
from plait.explain import explain_trial
from plait.explain.causes import remedy
from plait.explain.changes import Suspect
from plait.explain.effect import effect, with_effects
from plait.explain.model import Effect, FlowExplanation, StudyExplanation, TrialExplanation
from plait.explain.unrestricted_paths import unrestricted_paths
from plait.results.explain import recorded_folder, recorded_scenario
from plait.scenario import Scenario, parse
from plait.scenario.read.inputs import input_files
from plait.scenario.vary.cases import expand
from plait.scenario.vary.overrides import assign
from plait.study.perform import Options, perform

SEEDS = 5
"""The number of seeds; their spread shows whether an effect is significant."""
MAX_CAUSES = 3
"""The number of causes of a flow to test, the most expensive first."""

Fields = tuple[tuple[str, Any], ...]
Advised = Callable[[Scenario, str], Sequence[tuple[str, Fields]]]
"""Returns what may help a scenario against a cause: each change in words, and the fields that it sets."""


class _CaseRunner:
    """Runs variants of one case of a recorded study, each with the same seeds and at most once."""

    def __init__(
        self,
        folder: Path,
        case: str,
        make_engine: Callable[[str], Engine],
        *,
        seeds: int = SEEDS,
        jobs: int | None = None,
    ) -> None:
        """Raise RequestError if plait cannot read the recorded scenario, or if it has no such case."""
        self._about = read_study_file(folder)
        self._make_engine, self._seeds, self._jobs = make_engine, seeds, jobs
        recorded = {form.name: form for form in expand(recorded_scenario(self._about))}
        if case not in recorded:
            raise RequestError(f"{case}: the scenario in study.json has no such case")
        self.raw = recorded[case].scenario.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude={"vary", "baseline", "across", "pause"}
        )
        self.scenario = self.changed(())
        self._seen: dict[str, tuple[dict[int, float], str | None]] = {}

    def changed(self, fields: Fields) -> Scenario:
        """Return the case's scenario with these fields set. Raise ScenarioError or RequestError."""
        raw = json.loads(json.dumps(self.raw))
        for path, value in fields:
            try:
                _set(raw, path, value)
            except ValueError as wrong:
                raise RequestError(f"--what-if {path}: {wrong}") from wrong
        raw["repeat"] = self._seeds
        try:
            scenario = parse(json.dumps(raw), "the recorded scenario", ())
        except ScenarioError as wrong:
            if not fields:
                raise
            # Its places are those of a text that nobody wrote.
            changes = "; ".join(f"{path}={value}" for path, value in fields)
            raise RequestError(
                "\n".join(
                    f"--what-if {changes}: {mistake.path}: {mistake.message}" for mistake in wrong.mistakes
                )
            ) from wrong
        return scenario.attached(files=input_files(scenario, recorded_folder(self._about)))

    def values(self, fields: Fields, flow: str, metric: str) -> tuple[dict[int, float], str | None]:
        """Return the metric of a flow by seed, and its primary cause, in the case with these fields set."""
        key = json.dumps([fields, flow, metric])
        if key not in self._seen:
            with working_folder() as work:
                self._seen[key] = self._run(self.changed(fields), flow, metric, work.job())
        return self._seen[key]

    def _run(
        self, scenario: Scenario, flow: str, metric: str, target: Path
    ) -> tuple[dict[int, float], str | None]:
        options = Options(seed=self._about.seed, repeat=self._seeds, jobs=self._jobs)
        perform(scenario, "verify", self._make_engine, options, folder=target)
        case = expand(scenario)[0]
        values: dict[int, float] = {}
        causes: list[str | None] = []
        for number in range(self._seeds):
            trial = read_trial(trial_folder(target, case.name, number))
            if trial.provenance.status == "failed":
                continue
            # The explanation also covers flows that the end of the trial cut off; the metrics do not.
            flows = explain_trial(trial.plan, trial.tables, unrestricted_paths(case.scenario, trial.plan))
            for explained in flows:
                primary, value = explained.primary_metric
                if metric == "goodput_bps":
                    value = explained.goodput_bps
                elif primary != metric:
                    value = None
                if explained.flow == flow and value is not None:
                    values[trial.provenance.seed] = value
                    causes.append(explained.first)
        return values, causes[0] if causes else None


def try_out(
    folder: Path,
    explanation: StudyExplanation,
    make_engine: Callable[[str], Engine],
    *,
    what_ifs: Sequence[Sequence[str]] = (),
    verify: bool = False,
    advised: Advised = lambda *_: (),
    seeds: int = SEEDS,
    jobs: int | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> StudyExplanation:
    """Return the explanation with the measured effects of changes on each flow of each case.

    `verify` tries to remove each cause, and then the first change that `advised` has against it.
    Each item of `what_ifs` is a list of fields to set together. Raises RequestError, MachineError.
    """
    changes = [_changes(texts) for texts in what_ifs]
    runners = [
        _CaseRunner(folder, case.case, make_engine, seeds=seeds, jobs=jobs) for case in explanation.cases
    ]
    for runner in runners:
        for change in changes:
            runner.changed(change)  # refuses what is wrong before anything runs
    cases = []
    for case, runner in zip(explanation.cases, runners, strict=True):
        flows = []
        for flow in case.flows:
            if flow.named or what_ifs:
                notify(
                    f"measuring the effect of changes on {flow.flow} of case {case.case}, with {seeds} seeds each"
                )
            tried = list(try_remedies(runner, folder, case, flow, advised)) if verify else []
            for texts, change in zip(what_ifs, changes, strict=True):
                tried.append(_effect(runner, ", ".join(texts), change, None, flow))
            untried = not_tried(flow, {effect.cause for effect in tried}) if verify else ()
            flows.append(with_effects(flow, tried, tuple(untried)))
        cases.append(case.model_copy(update={"flows": tuple(flows)}))
    return explanation.model_copy(update={"cases": tuple(cases)})


def try_remedies(
    runner: _CaseRunner,
    folder: Path,
    explained: TrialExplanation,
    flow: FlowExplanation,
    advised: Advised = lambda *_: (),
) -> Iterator[Effect]:
    """Yield the effect of removing each of a flow's main causes that has a remedy, and of the change advised."""
    tried = set[str]()
    trial = read_trial(trial_folder(folder, explained.case, explained.trial))
    shares = {share.cause: share for share in flow.shares}
    plan = with_connections(trial.plan, trial.tables)
    for cause in flow.named[:MAX_CAUSES]:
        change = remedy(Suspect(runner.scenario, plan, flow, shares[cause]))
        if change is not None:
            yield _effect(runner, change.description, change.fields, cause, flow)
        # A person cannot remove a loss, but may choose how a host answers it. This removes and refutes no cause.
        for description, fields in advised(runner.scenario, cause)[:1]:
            if description not in tried:
                tried.add(description)
                yield _effect(runner, description, fields, None, flow)


def not_tried(flow: FlowExplanation, removed: Collection[str | None]) -> Iterator[str]:
    """Yield which causes of a flow `--verify` did not try to remove, and why."""
    if not flow.named:
        yield "Nothing was tried, because no cause is named."
    for cause in flow.named[:MAX_CAUSES]:
        if cause not in removed:
            yield f"Not tried: {cause}, because plait knows no change of this scenario that removes it."
    if beyond := flow.named[MAX_CAUSES:]:
        yield f"Not tried: {', '.join(beyond)}, because --verify tries the first {MAX_CAUSES} causes."


def _changes(texts: Sequence[str]) -> Fields:
    """Return the fields that `PATH=VALUE` texts set, with their values in YAML. Raise RequestError."""
    fields: list[tuple[str, Any]] = []
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals:
            raise RequestError(
                f"--what-if {text}: write PATH=VALUE, for example network.links.h1-h2.rate=20mbit"
            )
        fields.append((path.strip(), _value(text, value)))
    return tuple(fields)


def _value(text: str, value: str) -> Any:
    """Return the value of a YAML text."""
    from plait.scenario.read.document import Refused, read

    try:
        return read(value).value
    except Refused as refused:
        raise RequestError(f"--what-if {text}: {refused.reason}") from refused


def _effect(
    runner: _CaseRunner, description: str, fields: Fields, cause: str | None, flow: FlowExplanation
) -> Effect:
    metric, _ = flow.primary_metric
    reference, _ = runner.values((), flow.flow, metric)
    changed, plans = runner.values(fields, flow.flow, metric)
    texts = [f"{path}={json.dumps(value)}" for path, value in fields]
    return effect(description, texts, cause, reference, changed, metric=metric).model_copy(
        update={"then": plans}
    )


def _set(raw: dict[str, Any], path: str, value: Any) -> None:
    """Set a field; a complete mapping may also add a link, host, router or switch."""
    parts = path.split(".")
    hosts = raw.get("network", {}).get("hosts")
    if parts[:2] == ["network", "hosts"] and isinstance(hosts, list):
        raw["network"]["hosts"] = {name: {} for name in hosts}
    if len(parts) == 3 and parts[0] == "network" and parts[1] in ("links", "hosts", "routers", "switches"):
        elements = raw.get("network", {}).get(parts[1])
        if isinstance(elements, dict) and isinstance(value, dict):
            elements[parts[2]] = value
            return
    assign(raw, path, value)
