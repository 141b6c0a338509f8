"""Merges several studies into one folder: more repeats of the same cases, or further cases.

plait reads and checks everything before it writes anything; the studies themselves do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from plait.cautions import Caution
from plait.dataset.finished import FinishedTrials
from plait.dataset.provenance import read_provenance
from plait.dataset.study_file import CaseEntry, KernelFacts, MergedFrom, StudyFile, read_study_file
from plait.dataset.trial import checked_digest, read_trial, trial_folder, trial_numbers
from plait.engine.workspace import Workspace
from plait.errors import MachineError, RequestError, shell_command
from plait.files import Folder
from plait.limits import remedy
from plait.results.shards import Source, refuse_other_studies, shard_trials

_SAME_FIELDS = ("engine", "kernel", "agent_sha256", "plait_version")


def merge(target: Path, folders: Sequence[Path], *, mixed: bool = False) -> int:
    """Copy the trials of the studies in `folders` to the new folder `target`, and return their number.

    If several studies have a case, `target` has one copy of each seed. Shards of a study become the whole study. Unless
    `mixed`, all must come from the same engine, kernel, agent and version of plait. Raises RequestError if plait cannot
    merge them or `target` exists, DataError if one of their files is damaged, MachineError if plait cannot write
    `target`; no file stays then.
    """
    if target.exists():
        raise RequestError(f"merging into {target}: it exists; give the name of a new folder")
    sources = [(folder, read_study_file(folder)) for folder in folders]
    cases = _cases(sources)
    if not mixed:
        _refuse_different(sources)
    refuse_other_studies(sources)
    first = sources[0][1]
    if first.shard is not None:
        chosen = {name: shard_trials(name, sources) for name in cases}
        text = first.model_copy(update={"shard": None, "cautions": _cautions(sources)}).text()
    else:
        trials = {name: _trials(name, sources) for name in cases}
        chosen = {name: dict(enumerate(folders)) for name, folders in trials.items()}
        text = _merged_file(sources, cases, trials).text()
    try:
        with Workspace(target.parent, ".merge-") as work:
            folder = work.job()
            index = FinishedTrials(folder)
            for name, numbered in chosen.items():
                for number, trial in numbered.items():
                    trial.copy(trial_folder(folder, name, number))
                    record = read_provenance(trial)
                    if record.status == "ok" and first.shard is not None:
                        index.add(name, number, record.identity)  # `plait run` goes on from here
            Folder(folder).write("study.json", text.encode())
            Folder(target.absolute().parent).take(folder, target.name)
    except OSError as error:
        raise MachineError(
            f"merging into {target}: {error.filename}: {error.strerror}; {remedy(error, 'check space and permissions')}"
        ) from error
    return sum(map(len, chosen.values()))


def _refuse_different(sources: Sequence[Source]) -> None:
    (first_folder, first), *later = sources
    for folder, about in later:
        for field in _SAME_FIELDS:
            expected, actual = getattr(first, field), getattr(about, field)
            if expected != actual:
                raise RequestError(
                    f"merging {first_folder} and {folder}: each has another {field.partition('_')[0]} "
                    f"({_short(expected)}, {_short(actual)}), which can change the results; compare them with "
                    "`plait compare`, run both again, or allow it with --mixed"
                )


def _short(value: KernelFacts | str | None) -> str:
    text = str(value.identity if isinstance(value, KernelFacts) else value)
    return text if len(text) <= 16 else f"{text[:16]}.."


def _cases(sources: Sequence[Source]) -> dict[str, dict[str, Any]]:
    """Return the settings of every case by name; RequestError if one name has different settings."""
    settings: dict[str, dict[str, Any]] = {}
    for folder, about in sources:
        for case in about.cases:
            if settings.setdefault(case.name, case.settings) != case.settings:
                raise RequestError(
                    f"merging {folder}: its case {case.name} has other settings than the same case in an "
                    "earlier folder; merge only studies of the same scenario"
                )
    return settings


def _trials(case: str, sources: Sequence[Source]) -> list[Folder]:
    """Return the folders of a case's completed trials, one for each seed, in the order of the sources.

    RequestError if a seed has different data in two of them, DataError if data are damaged.
    """
    by_seed: dict[int, tuple[Folder, str]] = {}
    for source, _ in sources:
        for number in trial_numbers(source, case):
            path = trial_folder(source, case, number)
            trial = read_trial(path)
            if trial.provenance.status == "failed":
                continue
            if trial.plan.pause:
                raise RequestError(
                    f"merging: {path} was halted for a prompt, and plait does not know what the user did there; "
                    "run it without pause"
                )
            digest = checked_digest(trial)
            seed = trial.provenance.seed
            if by_seed.setdefault(seed, (path, digest))[1] != digest:
                raise RequestError(
                    f"merging: {by_seed[seed][0]} and {path} have the same case and seed and different data, so "
                    "the scenarios differ in more than their cases; compare them with `plait compare`"
                )
    return [path for path, _ in by_seed.values()]


def _cautions(sources: Sequence[Source]) -> tuple[Caution, ...]:
    return tuple({str(caution): caution for _, about in sources for caution in about.cautions}.values())


def _merged_file(
    sources: Sequence[Source], cases: dict[str, dict[str, Any]], chosen: dict[str, list[Folder]]
) -> StudyFile:
    """Return study.json: that of the first study, with all cases and a list of the merged studies."""
    studies = [about for _, about in sources]
    first = studies[0]
    shared = {
        name: getattr(first, name) if len({str(getattr(study, name)) for study in studies}) == 1 else unknown
        for name, unknown in (("engine", None), ("agent_sha256", None), ("kernel", KernelFacts()))
    }
    return first.model_copy(
        update={
            **shared,
            "command": shell_command(
                "plait", "merge", "OUT", *(folder.resolve().name for folder, _ in sources)
            ),
            "repeat": min((len(trials) for trials in chosen.values() if trials), default=0),
            "until": None,
            "cases": tuple(CaseEntry(name=name, settings=settings) for name, settings in cases.items()),
            "cautions": _cautions(sources),
            "merged": tuple(
                MergedFrom(name=study.name, command=study.command, seed=study.seed) for study in studies
            ),
        }
    )
