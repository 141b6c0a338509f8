"""Reads a bundle to run its study again, and compares the digests of the repeat with those of the bundle.

A bundle is an archive, or the folder with its files. It may come from a stranger. plait takes from it only the record,
the scenario, and the files that the record lists, each with its size and hash. It never takes the study's own folder.
"""

from __future__ import annotations

import hashlib
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from plait.dataset.provenance import explain
from plait.dataset.trial import read_trial, trial_folder
from plait.errors import DataError, MachineError, Mistake, RequestError, ScenarioError, shell_command
from plait.files import Folder, json_of
from plait.kernel import additions
from plait.scenario import Scenario, parse
from plait.scenario.read.document import MAX_CHARACTERS
from plait.scenario.read.inputs import input_files
from plait.study.bundle.record import ALGORITHMS, INPUTS, RECORD, SCENARIO, SUFFIX, BundledTrial, BundleRecord
from plait.version import other_version

Member = Callable[[str], AbstractContextManager[IO[bytes]]]
"""Opens a member of a bundle by its name."""
MOST_INPUT_BYTES = 16 << 30
"""The size limit for all files that a scenario in a bundle names."""
_MOST_RECORD_BYTES = 64 << 20
_MOST_SOURCE_BYTES = 1 << 20


@dataclass(frozen=True)
class _Bundle:
    """A bundle whose inputs are in a folder of this machine."""

    record: BundleRecord
    scenario: Scenario


def is_bundle(reference: str) -> bool:
    """Return whether a reference to a scenario names a bundle."""
    return reference.endswith(SUFFIX) or (Path(reference) / RECORD).is_file()


@contextmanager
def members(path: Path) -> Iterator[Member]:
    """Yield the function that opens a member of the bundle at `path` by its name.

    Raises DataError if the bundle is damaged, RequestError if there is none.
    """
    try:
        if path.is_dir():
            yield partial(_file_of, path)
        else:
            if path.is_fifo():
                raise DataError(f"{path}: a pipe is no bundle; name the archive itself")
            with zipfile.ZipFile(path) as archive:
                yield partial(_member_of, archive)
    except (
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        EOFError,
        NotImplementedError,
        UnicodeDecodeError,
        RuntimeError,
    ) as error:
        raise DataError(f"{path}: not a bundle, or a damaged one ({error}); get a new copy of it") from error
    except OSError as error:
        raise RequestError(f"reading the bundle {path}: {error.strerror or error}; check the path") from error


def _member_of(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """Open a member of an archive. Refuse compression that plait does not write, and whose errors it does not know."""
    member = archive.getinfo(name)
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile(f"{name} is compressed by another method than deflate")
    return archive.open(member)


@contextmanager
def _file_of(path: Path, name: str) -> Iterator[IO[bytes]]:
    *folders, file = name.split("/")
    try:
        with Folder(path, tuple(folders)).stream(file) as stream:
            yield stream
    except FileNotFoundError as error:
        raise KeyError(f"there is no file {name}") from error


def _scenario(text: str, name: str, record: BundleRecord) -> Scenario:
    """Return the scenario of a bundle (ScenarioError, which names the version of plait that accepts it)."""
    try:
        return parse(text, name)
    except ScenarioError as error:
        remedy = other_version(record.plait_version)
        if not remedy:
            raise
        raise ScenarioError([*error.mistakes, Mistake(name, None, None, "", remedy)]) from error


def open_bundle(path: Path, folder: Path) -> _Bundle:
    """Return the bundle at `path`, with the files of its scenario in the empty folder `folder`.

    Raises RequestError if plait cannot read the bundle or needs an algorithm that it lacks, ScenarioError if this
    version of plait does not accept the scenario, DataError if the bundle is damaged.
    """
    with members(path) as member:
        record = _record(path, member)
        text = read_member(path, member, SCENARIO, 4 * MAX_CHARACTERS).decode("utf-8")
        _require_algorithms(path, member, record)
        scenario = _scenario(text, f"{path.name}/{SCENARIO}", record)
        places = _extract(path, member, record, folder)
    return _Bundle(record, scenario.attached(files=input_files(scenario, folder, places)))


def repeated_digest(folder: Path, trial: BundledTrial) -> str | None:
    """Return the digest of a trial's repeat in the result folder `folder`; None if it failed or did not run."""
    try:
        provenance = read_trial(trial_folder(folder, trial.case, trial.number)).provenance
    except DataError:
        return None  # it was interrupted
    return provenance.digest if provenance.status == "ok" and provenance.seed == trial.seed else None


def _record(path: Path, member: Member) -> BundleRecord:
    """Return the record of a bundle. Raise DataError, which names the version of plait that made it if it differs."""
    content = read_member(path, member, RECORD, _MOST_RECORD_BYTES)
    try:
        return BundleRecord.model_validate_json(content)
    except ValidationError as error:
        remedy = other_version(_made_by(content))
        problem = remedy or f"not the record of a bundle: {explain(error)}"
        raise DataError(f"reading {path}/{RECORD}: {problem}") from error


def _made_by(content: bytes) -> object:
    """Return the version of plait that a record names; ignore its other fields."""
    try:
        record = json_of(content)
    except ValueError:
        return None
    return record.get("plait_version") if isinstance(record, dict) else None


def read_member(path: Path, member: Member, name: str, limit: int) -> bytes:
    """Return the content of a member of at most `limit` bytes. Raise DataError if it is longer."""
    with member(name) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"{path}/{name}: it has more than {limit} bytes; plait refuses it")
    return content


def _require_algorithms(path: Path, member: Member, record: BundleRecord) -> None:
    """Raise RequestError if an algorithm of the bundle has not been added here: building it is the user's decision."""
    known = {module.sha256 for module in additions.modules_by_name().values()}
    missing = []
    for name in record.algorithms:
        content = read_member(path, member, f"{ALGORITHMS}/{name}", _MOST_SOURCE_BYTES)
        if hashlib.sha256(content).hexdigest() not in known:
            missing.append(name)
    if missing:
        added = (shell_command("plait", "kernel", "add", f"{ALGORITHMS}/{name}") for name in missing)
        commands = " and ".join(f"`{command}`" for command in added)
        unzip = f"`{shell_command('unzip', path, f'{ALGORITHMS}/*')}` and " if path.is_file() else ""
        raise RequestError(
            f"running {path}: it needs algorithms that this machine has not added; read their source, then run "
            f"{unzip}{commands}"
        )


def _extract(path: Path, member: Member, record: BundleRecord, folder: Path) -> dict[str, Path]:
    """Write the files of the scenario to `folder` and return them by reference."""
    total = sum(file.bytes for file in record.inputs)
    if total > MOST_INPUT_BYTES:
        raise DataError(f"{path}: its files have {total} bytes, and plait takes at most {MOST_INPUT_BYTES}")
    free = shutil.disk_usage(folder).free
    if total > free:
        raise MachineError(
            f"unpacking {path}: its files have {total} bytes, and {folder} has {free} free; make space"
        )
    places = {}
    for number, file in enumerate(record.inputs):
        name = f"{INPUTS}/{number}/{file.name}"
        target = folder / str(number) / file.name
        digest, rest = hashlib.sha256(), file.bytes
        with member(name) as source, (Folder(folder) / str(number)).create(file.name) as copy:
            while content := source.read(min(1 << 20, rest + 1)):
                rest -= len(content)
                if rest < 0:
                    break
                digest.update(content)
                copy.write(content)
            if rest or digest.hexdigest() != file.sha256:
                raise DataError(f"{path}/{name}: it is not the file that {RECORD} describes; get a new copy")
        places[file.reference] = target
    return places
