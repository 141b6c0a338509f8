"""Reads a result folder: study.json, and every trial reduced to its row of metrics as soon as it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from plait.analysis.cautions.observations import REMEDIES, Observation, cautions, observe
from plait.analysis.metrics.programs import with_connections
from plait.analysis.metrics.trial import trial_metrics
from plait.analysis.published import Published, published_in
from plait.analysis.rows import CaseRows, FailedTrial, TrialRow
from plait.analysis.statistics.precision import wide
from plait.analysis.wording import percent
from plait.cautions import LOUD, Caution
from plait.dataset.digest import study_digest, trial_digest
from plait.dataset.provenance import explain
from plait.dataset.trial import Trial, making_sense, read_trial, trial_folder, trial_numbers
from plait.errors import DataError
from plait.files import Folder, wrong_name

if TYPE_CHECKING:
    from pathlib import Path


class _Part(BaseModel):
    # What a later version adds to study.json does not stop this one from reporting.
    model_config = ConfigDict(extra="ignore", frozen=True)


class KernelFacts(_Part):
    """The kernel that ran the study."""

    identity: str | None = None
    version: str | None = None


class CaseEntry(_Part):
    """One case as study.json lists it."""

    name: str
    """Also that of its folder."""
    settings: dict[str, Any]

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        why = wrong_name(name)
        if why is not None:
            raise ValueError(f"{name[:80]!r} cannot be the name of a folder: {why}")
        return name


class StudyFile(_Part):
    """study.json, as far as a report needs it."""

    schema_version: Literal[1] = Field(alias="schema")
    name: str | None = None
    title: str | None = None
    description: str | None = None
    scenario: Any = None
    """As resolved."""
    scenario_source: str | None = None
    """As written, when it is known."""
    command: str
    seed: int
    repeat: int
    until: float | None = None
    """To how narrow an interval it was to be repeated."""
    plait_version: str
    engine: str | None = None
    kernel: KernelFacts = KernelFacts()
    agent_sha256: str | None = None
    baseline: str | None = None
    cases: tuple[CaseEntry, ...]
    cautions: tuple[Caution, ...] = ()

    @field_validator("cases")
    @classmethod
    def _cases_differ(cls, cases: tuple[CaseEntry, ...]) -> tuple[CaseEntry, ...]:
        if len({case.name for case in cases}) < len(cases):
            raise ValueError("two cases have one name")
        return cases

    @property
    def heading(self) -> str:
        """What to call the study."""
        return self.title or self.name or "Study"

    @property
    def published(self) -> Published:
        """What others have published of the same."""
        return published_in(self.scenario)


@dataclass(frozen=True)
class StudyData:
    """A whole study, reduced: what was asked, and the rows of all its trials."""

    folder: Path
    about: StudyFile
    cases: tuple[CaseRows, ...]
    digest: str
    cautions: tuple[Caution, ...]


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


def read_study_file(folder: Path) -> StudyFile:
    """Return study.json of a result folder (DataError when it is missing or is not what it should be)."""
    path = folder / "study.json"
    try:
        return StudyFile.model_validate_json(Folder(folder).read(path.name))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); give the folder that `plait run` wrote"
        ) from error
    except ValidationError as error:
        raise DataError(f"{path}: not the description of a study: {explain(error)}") from error
