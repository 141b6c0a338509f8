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
    """A whole study, reduced: what was asked, and the rows of all its trials."""

    folder: Path
    about: StudyFile
    cases: tuple[CaseRows, ...]
    digest: str
    cautions: tuple[Caution, ...]

    @property
    def published(self) -> Published:
        """What others have published of the same."""
        return published_in(self.about.scenario)


def read_study(folder: Path) -> StudyData:
    """Return the study in `folder`; memory holds one trial's tables at a time.

    Raises:
        DataError: the folder is no result folder, or a file in it is damaged.
    """
    about = read_study_file(folder)
    cases: list[CaseRows] = []
    found = list(about.cautions)
    for entry in about.cases:
        case, seen = _read_case(folder, entry)
        cases.append(case)
        trials = len(case.rows) + len(case.failed)
        if trials < about.repeat:
            found.append(
                Caution(
                    code="TRIALS_MISSING",
                    message=f"{case.name}: {trials} of {about.repeat} trials are there",
                    remedy=REMEDIES["TRIALS_MISSING"],
                )
            )
        found += cautions(case.name, trials, seen)
    found += _wide(about, cases)
    digest = study_digest((case.name, row.index, row.digest) for case in cases for row in case.rows)
    return StudyData(folder, about, tuple(cases), digest, _loud_first(found))


def _loud_first(found: list[Caution]) -> tuple[Caution, ...]:
    """Return each caution once, those first that no reader should miss."""
    once = {str(one): one for one in found}.values()
    return tuple(sorted(once, key=lambda one: LOUD.index(one.code) if one.code in LOUD else len(LOUD)))


def _wide(about: StudyFile, cases: list[CaseRows]) -> list[Caution]:
    """Return the means that are not known as well as was asked for."""
    if about.until is None:
        return []
    return [
        Caution(
            code="INTERVAL_WIDE",
            message=f"{one.case}: after {one.n} trials {one.metric} is known to {percent(one.share, 2)}, "
            f"not to {percent(about.until, 2)}",
            remedy=REMEDIES["INTERVAL_WIDE"],
        )
        for one in wide(cases, about.until)
    ]


def _read_case(
    folder: Path, entry: CaseEntry
) -> tuple[CaseRows, dict[Observation, list[tuple[int, int | None]]]]:
    """Return one case, and the trials in which each observation was made."""
    rows: list[TrialRow] = []
    failed: list[FailedTrial] = []
    seen: dict[Observation, list[tuple[int, int | None]]] = {}
    for index in trial_numbers(folder, entry.name):
        trial = read_trial(trial_folder(folder, entry.name, index))
        if trial.provenance.status == "failed":
            failed.append(FailedTrial(index, trial.provenance.error or "no reason was recorded"))
            continue
        row, observed = _reduce(index, trial)
        rows.append(row)
        for observation in observed:
            seen.setdefault(observation, []).append((index, observation.at_us))
    return CaseRows(entry.name, dict(entry.settings), tuple(rows), tuple(failed)), seen


def _reduce(index: int, trial: Trial) -> tuple[TrialRow, list[Observation]]:
    """Return a trial's row of metrics, and what its data say against trusting them."""
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
