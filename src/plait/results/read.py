"""Reads a result folder: study.json, and every trial reduced to its row of metrics as soon as it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plait.analysis.cautions.observations import REMEDIES, Observation, cautions, observe
from plait.analysis.metrics.programs import with_connections
from plait.analysis.metrics.trial import trial_metrics
from plait.analysis.published import Published, published_in
from plait.analysis.rows import CaseRows, FailedTrial, TrialRow
from plait.analysis.statistics.precision import wide
from plait.analysis.wording import percent
from plait.cautions import LOUD, Caution
from plait.dataset.digest import study_digest, trial_digest
from plait.dataset.study_file import CaseEntry, StudyFile, read_study_file
from plait.dataset.trial import Trial, making_sense, read_trial, trial_folder, trial_numbers

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class StudyData:
    """A whole study in reduced form: its study.json, and the rows of all its trials."""

    folder: Path
    about: StudyFile
    cases: tuple[CaseRows, ...]
    digest: str
    cautions: tuple[Caution, ...]

    @property
    def published(self) -> Published:
        """Published results of the same experiment."""
        return published_in(self.about.scenario)


def read_study(folder: Path) -> StudyData:
    """Return the study in `folder`; memory holds one trial's tables at a time.

    Raises:
        DataError: the folder is no result folder, or a file in it is damaged.
    """
    about = read_study_file(folder)
    cases: list[CaseRows] = []
    study_cautions = list(about.cautions)
    for entry in about.cases:
        case, observed_in = _read_case(folder, entry)
        cases.append(case)
        trials = len(case.rows) + len(case.failed)
        if trials < about.repeat:
            study_cautions.append(
                Caution(
                    code="TRIALS_MISSING",
                    message=f"{case.name}: {trials} of {about.repeat} trials exist",
                    remedy=REMEDIES["TRIALS_MISSING"],
                )
            )
        study_cautions += cautions(case.name, trials, observed_in)
    study_cautions += _wide(about, cases)
    digest = study_digest((case.name, row.index, row.digest) for case in cases for row in case.rows)
    return StudyData(folder, about, tuple(cases), digest, _loud_first(study_cautions))


def _loud_first(repeated: list[Caution]) -> tuple[Caution, ...]:
    """Return each caution once, the important ones first."""
    unique = {str(caution): caution for caution in repeated}.values()
    return tuple(
        sorted(unique, key=lambda caution: LOUD.index(caution.code) if caution.code in LOUD else len(LOUD))
    )


def _wide(about: StudyFile, cases: list[CaseRows]) -> list[Caution]:
    """Return a caution for each mean with a wider interval than requested."""
    if about.until is None:
        return []
    return [
        Caution(
            code="INTERVAL_WIDE",
            message=f"{interval.case}: after {interval.n} trials {interval.metric} is known to "
            f"{percent(interval.share, 2)}, not to {percent(about.until, 2)}",
            remedy=REMEDIES["INTERVAL_WIDE"],
        )
        for interval in wide(cases, about.until)
    ]


def _read_case(
    folder: Path, entry: CaseEntry
) -> tuple[CaseRows, dict[Observation, list[tuple[int, int | None]]]]:
    """Return one case, and the trials with each observation."""
    rows: list[TrialRow] = []
    failed: list[FailedTrial] = []
    observed_in: dict[Observation, list[tuple[int, int | None]]] = {}
    for index in trial_numbers(folder, entry.name):
        trial = read_trial(trial_folder(folder, entry.name, index))
        if trial.provenance.status == "failed":
            failed.append(FailedTrial(index, trial.provenance.error or "no reason was recorded"))
            continue
        row, observed = _reduce(index, trial)
        rows.append(row)
        for observation in observed:
            observed_in.setdefault(observation, []).append((index, observation.at_us))
    return CaseRows(entry.name, dict(entry.settings), tuple(rows), tuple(failed)), observed_in


def _reduce(index: int, trial: Trial) -> tuple[TrialRow, list[Observation]]:
    """Return a trial's row of metrics, and the data-quality warnings for it."""
    with making_sense(trial.folder):
        digest = trial_digest(trial.tables)
        plan = with_connections(trial.plan, trial.tables)
        observed = observe(plan, trial.tables)
        if trial.provenance.digest not in (None, digest):
            observed.append(
                Observation("DATA_CHANGED", "the data have another digest than when they were made")
            )
        metrics = trial_metrics(plan, trial.tables)
    return TrialRow(index, trial.provenance.seed, digest, metrics), observed
