"""Checks a bundle on this machine: runs drawn trials or those of claims again, and compares bytes and values."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import ValidationError

from plait.artefact.claims import FILE, MOST_BYTES, Artefact, Claim
from plait.benchmark.results_file import MOST_BYTES as MOST_RESULTS_BYTES
from plait.benchmark.results_file import Results, parse_results
from plait.dataset.provenance import explain
from plait.dataset.study_file import read_study_file
from plait.dataset.trial import read_trial, trial_folder
from plait.errors import DataError, RequestError, shell_command
from plait.results.read import read_study
from plait.scenario import Scenario
from plait.scenario.vary.cases import expand
from plait.study.bundle.record import STUDY, BundledTrial, BundleRecord
from plait.study.bundle.repeat import members, read_member
from plait.study.shard import TrialSelection

MINUTES = 5.0
SHARE_USED = 1 / 3
"""The share of the minutes that the drawn trials took when they were measured: other machines are slower."""
UNKNOWN_TRIAL_S = 10.0
"""The time of a trial in the bundle of an earlier plait, which has no times."""
RESULTS = "results.json"
_MOST_BATCHES = 10
_BATCH_S = 5.0


def read_artefact(path: Path) -> Artefact:
    """Return the claims of the bundle at `path` (DataError, RequestError)."""
    with members(path) as member:
        try:
            content = read_member(path, member, FILE, MOST_BYTES)
        except KeyError as error:
            if (path / "study.json").is_file():
                bundle = shell_command("plait", "bundle", path)
                raise RequestError(f"{path} is a result folder, no bundle; `{bundle}` writes one") from error
            raise DataError(
                f"{path} has no {FILE}: an earlier plait wrote it; `plait run BUNDLE --verify` repeats its trials"
            ) from error
        try:
            return Artefact.model_validate_json(content)
        except ValidationError as error:
            raise DataError(
                f"reading {path}/{FILE}: not the claims of a bundle: {explain(error, content)}"
            ) from error


def read_benchmark(path: Path, claims: Sequence[Claim]) -> Results | None:
    """Return the results of the benchmark that the claims of a bundle are about; None for those of a study."""
    if not any(claim.kind == "score" for claim in claims):
        return None
    with members(path) as member:
        content = read_member(path, member, f"{STUDY}/{RESULTS}", MOST_RESULTS_BYTES)
    return parse_results(content, path / STUDY / RESULTS)


def drawn(record: BundleRecord, draw: int, minutes: float) -> list[BundledTrial]:
    """Return trials in an order that `draw` decides, as many as fit into the minutes, and at least one."""
    order = list(record.trials)
    random.Random(draw).shuffle(order)  # noqa: S311
    chosen: list[BundledTrial] = []
    for trial in order:
        if chosen and recorded_s([*chosen, trial]) > minutes * 60 * SHARE_USED:
            break
        chosen.append(trial)
    return chosen


def batches(chosen: Sequence[BundledTrial]) -> list[Sequence[BundledTrial]]:
    """Return drawn trials in batches of about equal time: after each one it can be time to stop."""
    count = max(1, min(_MOST_BATCHES, int(recorded_s(chosen) / _BATCH_S)))
    length = -(-len(chosen) // count)
    return [chosen[start : start + length] for start in range(0, len(chosen), length)]


def recorded_s(trials: Iterable[BundledTrial]) -> float:
    """Return how long trials took one after the other, in seconds."""
    return sum(UNKNOWN_TRIAL_S if trial.wall_s is None else trial.wall_s for trial in trials)


def claimed(artefact: Artefact, numbers: Sequence[int]) -> list[Claim]:
    """Return the claims with these numbers (RequestError if there is no such claim)."""
    by_number = {claim.number: claim for claim in artefact.claims}
    for number in numbers:
        if number not in by_number:
            raise RequestError(
                f"--claim {number}: the bundle has {len(by_number)} claims; CLAIMS.md lists them with their numbers"
            )
    return [by_number[number] for number in numbers]


def trials_of(record: BundleRecord, claims: Sequence[Claim]) -> list[BundledTrial]:
    """Return the trials that measure claims."""
    names = {name for claim in claims for name in claim.cases}
    return [trial for trial in record.trials if trial.case in names]


def selection(
    scenario: Scenario, chosen: Sequence[BundledTrial], done: Sequence[BundledTrial] = ()
) -> TrialSelection:
    """Return which trials to run, and which ran before (DataError if the scenario lacks a case of them)."""
    positions = {case.name: position for position, case in enumerate(expand(scenario))}
    unknown = [trial.case for trial in chosen if trial.case not in positions]
    if unknown:
        raise DataError(
            f"the scenario of the bundle has no case {unknown[0]!r}; get a new copy of the bundle"
        )
    selected, before = (
        frozenset(trial.number * len(positions) + positions[trial.case] for trial in trials)
        for trials in (chosen, done)
    )
    return TrialSelection(selected, before)


class TrialCheck(NamedTuple):
    """How the repeat of a trial compares with the bundle."""

    trial: BundledTrial
    result: Literal["same bytes", "within tolerance", "failed in both", "differs"]
    reason: str
    """Why it differs."""


def check_trials(artefact: Artefact, chosen: Sequence[BundledTrial], folder: Path) -> list[TrialCheck]:
    """Return how the trials of the repeat in `folder` compare with those of the bundle (DataError).

    Trials of one identity (plan, kernel and agent) on a repeatable engine have the same bytes. Others, of another
    kernel or in real time, have values within the range of the bundle.
    """
    about = read_study_file(folder)
    seeded = {case.name: about.repeats_seeds(case.settings) for case in about.cases}
    checks = [_checked(trial, folder, seeded=seeded.get(trial.case, True)) for trial in chosen]
    if all(check is not None for check in checks):
        return [check for check in checks if check is not None]
    rows = {
        (case.name, row.index): dict(row.metrics) for case in read_study(folder).cases for row in case.rows
    }
    for number, trial in enumerate(chosen):
        if checks[number] is None:
            ranges = artefact.values.get(trial.case, {})
            reason = _beyond(ranges, rows.get((trial.case, trial.number), {}))
            checks[number] = TrialCheck(trial, "differs" if reason else "within tolerance", reason)
    return [check for check in checks if check is not None]


def _checked(trial: BundledTrial, folder: Path, *, seeded: bool) -> TrialCheck | None:
    """Return how a trial compares by its digest; None if its values decide."""
    try:
        provenance = read_trial(trial_folder(folder, trial.case, trial.number)).provenance
    except DataError:
        return TrialCheck(trial, "differs", "it did not run here")
    digest = provenance.digest if provenance.status == "ok" else None
    if provenance.seed != trial.seed:
        return TrialCheck(trial, "differs", f"its seed is {provenance.seed}, not {trial.seed}")
    if digest == trial.digest:
        return TrialCheck(trial, "failed in both" if digest is None else "same bytes", "")
    if digest is None or trial.digest is None:
        side = "here" if digest is None else "in the bundle"
        return TrialCheck(trial, "differs", f"it failed only {side}")
    if provenance.identity == trial.identity and seeded:
        reason = f"plan, kernel and agent are the same, and the data are {digest}, not {trial.digest}"
        return TrialCheck(trial, "differs", reason)
    return None


def _beyond(ranges: dict[str, tuple[float, float]], measured: dict[str, float | None]) -> str:
    """Return which value of another kernel or engine is out of its range; empty if none is."""
    if not ranges:
        return "other bytes, and the bundle has no range of its values"
    for metric, (low, high) in ranges.items():
        value = measured.get(metric)
        if value is None or not low <= value <= high:
            return f"other bytes, and {metric} is {value}, not from {low:g} to {high:g}"
    return ""
