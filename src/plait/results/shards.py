"""Which trials of the shards of a study make the whole study: each keeps its number, and failed ones belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plait.dataset.study_file import StudyFile
from plait.dataset.trial import checked_digest, read_trial, trial_folder, trial_numbers
from plait.errors import RequestError
from plait.files import Folder

Source = tuple[Path, StudyFile]

_SAME_FIELDS = ("name", "seed", "repeat", "baseline", "cases", "scenario", "plait_version")


def refuse_other_studies(sources: Sequence[Source]) -> None:
    """Raise RequestError unless all sources are shards of one study, divided in one way."""
    (first_folder, first), *later_sources = sources
    for folder, study_file in later_sources:
        if (study_file.shard is None) != (first.shard is None):
            raise RequestError(
                f"merging {first_folder} and {folder}: only one of them is a shard; merge the shards of a study first"
            )
        if study_file.shard is None or first.shard is None:
            continue
        if study_file.shard.partition("/")[2] != first.shard.partition("/")[2]:
            raise RequestError(
                f"merging {first_folder} and {folder}: they are shards {first.shard} and {study_file.shard}; "
                "merge shards of one division"
            )
        different = [field for field in _SAME_FIELDS if getattr(study_file, field) != getattr(first, field)]
        if different:
            raise RequestError(
                f"merging {first_folder} and {folder}: they are shards of different studies (their "
                f"{' and '.join(different)} differ); run all shards with the same command"
            )


def shard_trials(case: str, sources: Sequence[Source]) -> dict[int, Folder]:
    """Return the folders of a case's trials by number.

    RequestError if two shards have different data of a trial, DataError if data are damaged.
    """
    chosen: dict[int, tuple[Folder, str | None]] = {}
    for source, _ in sources:
        for number in trial_numbers(source, case):
            folder = trial_folder(source, case, number)
            trial = read_trial(folder)
            digest = checked_digest(trial) if trial.provenance.status == "ok" else None
            known = chosen.get(number)
            if known is None or known[1] is None:
                chosen[number] = folder, digest
            elif digest not in (None, known[1]):
                raise RequestError(
                    f"merging: {known[0]} and {folder} are the same trial with different data; find out which machine "
                    "is wrong before you merge"
                )
    return {number: folder for number, (folder, _) in sorted(chosen.items())}


def missing_shards(sources: Sequence[StudyFile]) -> list[int]:
    """Return the numbers of the shards that are missing; none if the sources are no shards."""
    divisions = [study_file.shard.partition("/") for study_file in sources if study_file.shard is not None]
    if not divisions:
        return []
    return sorted(set(range(1, int(divisions[0][2]) + 1)) - {int(number) for number, _, _ in divisions})
