"""Writes a study as a bundle, after checking that its scenario still gives the plan of every trial."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from plait.dataset.provenance import Provenance
from plait.dataset.study_file import StudyFile, read_study_file
from plait.dataset.trial import checked_digest, read_trial, trial_folder, trial_numbers
from plait.errors import MachineError, RequestError, shell_command
from plait.files import Folder, Output
from plait.kernel import additions
from plait.limits import remedy
from plait.plan.case_plan import resolve_case
from plait.plan.identity import plan_bytes
from plait.results.explain import recorded_folder, recorded_scenario
from plait.scenario import Scenario, parse
from plait.scenario.fields.network import InputFile
from plait.scenario.read.document import written
from plait.scenario.read.inputs import input_files
from plait.scenario.vary.cases import expand
from plait.study.bundle.record import (
    ALGORITHMS,
    INPUTS,
    PACKAGES,
    RECORD,
    SCENARIO,
    STUDY,
    SUFFIX,
    BundledFile,
    BundledTrial,
    BundleRecord,
)

_DATE = (1980, 1, 1, 0, 0, 0)
"""The date of each file in an archive, so that equal content gives equal bytes."""
_CHUNK = 1 << 20
_MOST_FILE_BYTES = 1 << 32
"""The size limit for one file of a result folder (a capture may be long)."""


def write_bundle(
    folder: Path,
    target: Path | None = None,
    *,
    scenario_folder: Path | None = None,
    documents: Callable[[BundleRecord, Mapping[str, bytes]], Mapping[str, bytes]] = lambda _, __: {},
) -> Path:
    """Write the study in `folder` as a bundle and return its path (default: beside the folder, by its name).

    Relative file names in the scenario start at `scenario_folder` (default: the folder of the scenario that the
    study's command names). `documents` takes the record and the sources of algorithms by name, and returns further
    files of the bundle. Raises RequestError if plait cannot repeat the study from a bundle or `target` exists,
    DataError if the study is damaged, MachineError if plait cannot write.
    """
    study_file = read_study_file(folder)
    _refuse_parts(folder, study_file)
    path = target or folder.resolve().parent / f"{folder.resolve().name}{SUFFIX}"
    if path.exists():
        raise RequestError(
            f"writing the bundle {path}: it exists; remove it or choose another name with --out"
        )
    base = scenario_folder or recorded_folder(study_file)
    text = scenario_text(recorded_scenario(study_file))
    scenario = parse(text, "the scenario in study.json")
    files = _Files(input_files(scenario, base))
    scenario = scenario.attached(files=files)
    checked = _checked(folder, study_file, scenario)
    _refuse_files(folder, files)
    sources = {source.path: source.content for source in map(additions.source_of, checked.modules)}
    record = _record(folder, study_file, scenario, tuple(sources), checked)
    written = documents(record, sources)
    try:
        with (
            Output.at(path).create(keep=True) as archive,
            zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle,
        ):
            for name, content in written.items():
                _add(bundle, name, content)
            _add(bundle, RECORD, record.model_dump_json(by_alias=True, indent=1).encode() + b"\n")
            _add(bundle, SCENARIO, text.encode())
            _add(bundle, PACKAGES, packages().encode())
            for number, file in enumerate(scenario.files.values()):
                _add_file(bundle, f"{INPUTS}/{number}/{file.path.name}", file.path)
            for name, content in sources.items():
                _add(bundle, f"{ALGORITHMS}/{name}", content)
            _add_study(bundle, Folder(folder))
    except OSError as error:
        raise MachineError(
            f"writing the bundle {path}: {error.filename or path}: {error.strerror}; "
            f"{remedy(error, 'check space and permissions')}"
        ) from error
    return path


class _Files(dict[str, InputFile]):
    """The files that a scenario names, and which of them the plans of trials have used."""

    def __init__(self, files: Mapping[str, InputFile]) -> None:
        super().__init__(files)
        self.used: set[str] = set()

    def get(self, reference: str, default: Any = None) -> Any:
        self.used.add(reference)
        return super().get(reference, default)


def _refuse_files(folder: Path, files: _Files) -> None:
    """Raise RequestError for a file that no trial used.

    A plan depends on the content of each file that it uses, and is that of a trial. So a stranger who made the folder
    knew the content: no scenario makes plait put a secret of this machine into a bundle.
    """
    for reference in sorted(files.keys() - files.used):
        raise RequestError(
            f"bundling {folder}: no trial used {reference!r}, a file of this machine that the scenario names, so plait "
            "puts it into no bundle; remove it from the scenario, and run the study again"
        )


def _record(
    folder: Path,
    study_file: StudyFile,
    scenario: Scenario,
    algorithms: tuple[str, ...],
    checked: _CheckedTrials,
) -> BundleRecord:
    return BundleRecord(
        name=study_file.name or folder.resolve().name,
        plait_version=study_file.plait_version,
        engine=study_file.engine,
        kernel=study_file.kernel,
        agent_sha256=study_file.agent_sha256,
        seed=study_file.seed,
        repeat=max(trial.number for trial in checked.trials) + 1,
        inputs=tuple(
            BundledFile(reference=reference, name=file.path.name, bytes=file.bytes, sha256=file.sha256)
            for reference, file in scenario.files.items()
        ),
        algorithms=algorithms,
        trials=checked.trials,
        machines=checked.machines,
    )


def scenario_text(scenario: Scenario) -> str:
    """Return the scenario as YAML, with only the fields that its author set."""
    return written(scenario.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"pause"}))


def _refuse_parts(folder: Path, study_file: StudyFile) -> None:
    """Raise RequestError unless the folder has all trials of one study, so that one command can repeat it."""
    if study_file.merged is not None:
        raise RequestError(
            f"bundling {folder}: it merges several studies, and one command cannot repeat it; bundle each of them"
        )
    if study_file.shard is not None:
        raise RequestError(
            f"bundling {folder}: it is shard {study_file.shard} of a study; put all shards together first "
            "(`plait merge OUT DIR...`)"
        )
    numbers = [len(trial_numbers(folder, entry.name)) for entry in study_file.cases]
    if not sum(numbers):
        raise RequestError(f"bundling {folder}: it has no trial; run the study first")
    missing = sum(max(0, study_file.repeat - number) for number in numbers)
    if missing:
        command = f"`{study_file.command}`" if study_file.command else "the command that began it"
        into = shell_command("--out", folder)
        raise RequestError(
            f"bundling {folder}: {missing} of its {study_file.repeat * len(numbers)} trials have not run; finish the "
            f"study with {command} into the same folder ({into})"
        )


class _CheckedTrials(NamedTuple):
    """The trials of a folder, the hashes of the algorithms that they need, and the machines that ran them."""

    trials: tuple[BundledTrial, ...]
    modules: tuple[str, ...]
    machines: tuple[str, ...]


def _checked(folder: Path, study_file: StudyFile, scenario: Scenario) -> _CheckedTrials:
    """Return all trials.

    Raises RequestError if the scenario no longer gives the plan of a trial, DataError if its data have changed.
    """
    known = additions.modules_by_name()
    forms = {case.name: case for case in expand(scenario)}
    trials: list[BundledTrial] = []
    modules: set[str] = set()
    machines: set[str] = set()
    for entry in study_file.cases:
        numbers = trial_numbers(folder, entry.name)
        case = resolve_case(forms[entry.name], known) if numbers and entry.name in forms else None
        for number in numbers:
            place = trial_folder(folder, entry.name, number)
            trial = read_trial(place)
            seed = trial.provenance.seed
            if case is None or plan_bytes(case.plan(seed)) != plan_bytes(trial.plan):
                raise RequestError(
                    f"bundling {place}: the scenario does not give the plan that this trial ran; plait "
                    f"{study_file.plait_version} ran it, or a file that the scenario names has changed since. "
                    "Run the study again, then bundle it"
                )
            modules.update(module.sha256 for module in trial.plan.machine.modules)
            digest = None if trial.provenance.status == "failed" else checked_digest(trial)
            provenance = trial.provenance
            trials.append(
                BundledTrial(
                    case=entry.name,
                    number=number,
                    seed=seed,
                    digest=digest,
                    identity=provenance.identity,
                    wall_s=provenance.wall_s,
                )
            )
            machines.add(_machine(provenance))
    return _CheckedTrials(tuple(trials), tuple(sorted(modules)), tuple(sorted(machines)))


def _machine(provenance: Provenance) -> str:
    """Return the machine that ran a trial, in words."""
    processor, count = provenance.host.get("processor"), provenance.host.get("processors")
    if processor is None:
        return "a machine that the trials do not describe"
    return f"{processor}, {count} processors"


def _add_study(archive: zipfile.ZipFile, folder: Folder) -> None:
    for place in folder.files():
        if not any(part.startswith(".") for part in place):
            content = Folder(folder.root, place[:-1]).read(place[-1], _MOST_FILE_BYTES)
            _add(archive, "/".join((STUDY, *place)), content)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(_entry(name), content)


def _add_file(archive: zipfile.ZipFile, name: str, source: Path) -> None:
    with source.open("rb") as file, archive.open(_entry(name), "w", force_zip64=True) as member:
        shutil.copyfileobj(file, member, _CHUNK)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o100644 << 16
    return entry


def packages() -> str:
    """Return a line for each installed Python package, in the format that pip reads."""
    versions = {package.name.lower(): package.version for package in metadata.distributions()}
    return "".join(f"{name}=={version}\n" for name, version in sorted(versions.items()))
