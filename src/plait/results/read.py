"""Reads a result folder: study.json, and every trial reduced to its row of metrics (`plait.results.reduce`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from plait.analysis.cautions.mptcp import Observation
from plait.analysis.cautions.observations import REMEDIES, cautions
from plait.analysis.compare.factors import Design
from plait.analysis.judge import judged_in, margins_in
from plait.analysis.labels.cases import labels as case_labels
from plait.analysis.labels.study_labels import StudyLabels, labels_in
from plait.analysis.model import Exclusion
from plait.analysis.published import Published, published_in
from plait.analysis.rows import CaseRows, FailedTrial, TrialRow
from plait.analysis.statistics.precision import wide
from plait.analysis.wording import percent
from plait.cautions import TRIALS_DISTURBED, Caution, ranked
from plait.dataset.digest import study_digest
from plait.dataset.study_file import StudyFile, read_study_file
from plait.dataset.trial import trial_folder, trial_numbers
from plait.results.reduce import reduced
from plait.scenario.vary.text import strata, zipped

_MOST_REASONS = 3
"""How many excluded trials a caution explains; each trial's provenance.json has its own reason."""


@dataclass(frozen=True)
class StudyData:
    """A whole study in reduced form: its study.json, and the rows of all its trials."""

    folder: Path
    about: StudyFile
    cases: tuple[CaseRows, ...]
    digest: str
    cautions: tuple[Caution, ...]

    @property
    def labels(self) -> StudyLabels:
        """The labels of the parts of the study."""
        return labels_in(self.about.scenario)

    @property
    def design(self) -> Design:
        """How its cases may be compared."""
        scenario = self.about.scenario
        return Design(strata(scenario), zipped(scenario), margins_in(scenario))

    @property
    def published(self) -> Published:
        """Published results of the same experiment."""
        return published_in(self.about.scenario)


def read_study(folder: Path, progress: Callable[[int, int], None] = lambda _, __: None) -> StudyData:
    """Return the study in `folder`; memory holds one trial's tables at a time.

    Args:
        folder: the result folder.
        progress: called with the number of trials read so far, and the number of all.

    Raises:
        DataError: the folder is no result folder, or a file in it is damaged.
    """
    study_file = read_study_file(folder)
    called = labels_in(study_file.scenario).cases
    words = case_labels(study_file.cases, called)
    cases: list[CaseRows] = []
    study_cautions = list(study_file.cautions)
    numbers = {entry.name: trial_numbers(folder, entry.name) for entry in study_file.cases}
    places = [trial_folder(folder, name, number) for name, known in numbers.items() for number in known]
    all_trials = iter(reduced(places, progress))
    for entry in study_file.cases:
        trials_of_case = list(islice(all_trials, len(numbers[entry.name])))
        case = CaseRows(
            entry.name,
            dict(entry.settings),
            tuple(trial for trial in trials_of_case if isinstance(trial, TrialRow)),
            tuple(trial for trial in trials_of_case if isinstance(trial, FailedTrial)),
            tuple(trial for trial in trials_of_case if isinstance(trial, Exclusion)),
            seeded=study_file.repeats_seeds(entry.settings),
            label=called.get(entry.name),
        )
        cases.append(case)
        trials = case.trials
        if trials < study_file.repeat and study_file.shard is None:
            study_cautions.append(
                Caution(
                    code="TRIALS_MISSING",
                    message=f"{words[entry.name]}: {trials} of {study_file.repeat} trials exist",
                    remedy=REMEDIES["TRIALS_MISSING"],
                )
            )
        study_cautions += cautions(words[entry.name], trials, _observed_in(case.rows))
        study_cautions += [_disturbed(case, words[entry.name])] if case.excluded else []
    study_cautions += _wide(study_file, cases, words)
    digest = study_digest((case.name, row.index, row.digest) for case in cases for row in case.rows)
    return StudyData(folder, study_file, tuple(cases), digest, ranked(study_cautions))


def _disturbed(case: CaseRows, called: str) -> Caution:
    """Return the caution about the trials that the means leave out."""
    trials = len(case.excluded)
    reasons = "; ".join(f"trial {trial.trial:03d}: {trial.reason}" for trial in case.excluded[:_MOST_REASONS])
    remark = f"; and {trials - _MOST_REASONS} more" if trials > _MOST_REASONS else ""
    return Caution(
        code=TRIALS_DISTURBED,
        message=f"{called}: the machine disturbed {trials} of {case.trials} trials, so no figure counts them "
        f"({reasons}{remark})",
        remedy=REMEDIES[TRIALS_DISTURBED],
        figures={"trials": trials},
    )


def _wide(study_file: StudyFile, cases: list[CaseRows], words: Mapping[str, str]) -> list[Caution]:
    """Return a caution for each mean with a wider interval than requested."""
    if study_file.until is None:
        return []
    return [
        Caution(
            code="INTERVAL_WIDE",
            message=f"{words[interval.case]}: after {interval.n} trials {interval.metric} is known to "
            f"{percent(interval.share, 2)}, not to {percent(study_file.until, 2)}",
            remedy=REMEDIES["INTERVAL_WIDE"],
        )
        for interval in wide(cases, study_file.until, judged_in(study_file.scenario))
    ]


def _observed_in(rows: Sequence[TrialRow]) -> dict[Observation, list[tuple[int, int | None]]]:
    """Return the trials with each observation, and its times."""
    observed_in: dict[Observation, list[tuple[int, int | None]]] = {}
    for row in rows:
        for observation in row.observed:
            observed_in.setdefault(observation, []).append((row.index, observation.t_us))
    return observed_in
