"""Open the result folder of a study: refuse foreign folders, and remove trials that the study no longer has."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from plait.cache import locked
from plait.cautions import Caution
from plait.dataset.study_file import SCHEMA, StudyFile
from plait.dataset.trial import TRIALS, trial_numbers
from plait.errors import DataError, MachineError, RequestError
from plait.files import Folder, UnfitError, json_of
from plait.limits import remedy
from plait.study.study import TrialKey

_WORKING = ".work-"
"""How the names of what a running study has in its result folder begin."""


@contextlib.contextmanager
def open_result_folder(target: Path, study_file: StudyFile, keep: set[TrialKey]) -> Iterator[None]:
    """Make `target` the result folder of the study that `study_file` describes, which no other plait is meanwhile.

    Removes trials that are not in `keep`: they belong to an earlier version of the study. Other files stay.

    Raises RequestError if `target` holds links or anything but a study of the same name, or if another plait runs
    trials into it, and MachineError if plait cannot write to it.
    """
    try:
        _refuse_foreign(target, study_file.name)
        target.mkdir(parents=True, exist_ok=True)
        lock = _lock(target)
    except (UnfitError, DataError) as error:
        raise RequestError(f"writing results to {target}: {_describe(error)}; give another --out") from error
    except OSError as error:
        raise MachineError(cannot_write(target, error)) from error
    try:
        _fill(target, study_file, keep)
        yield
    finally:
        os.close(lock)


def _lock(target: Path) -> int:
    """Return a descriptor that locks the folder. Raise OSError, and RequestError if another plait has it."""

    def refuse(_: object) -> NoReturn:
        raise RequestError(
            f"writing results to {target}: another plait runs trials into it; wait for its end, or give another --out"
        )

    descriptor = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        refuse(error)
    except OSError:  # NFS locks no folder, only a file
        with contextlib.suppress(MachineError):  # other file systems lock nothing (docs/limitations.md)
            held = locked(_WORKING, refuse, place=target)
            os.close(descriptor)
            return held
    return descriptor


def _fill(target: Path, study_file: StudyFile, keep: set[TrialKey]) -> None:
    """Write study.json, and remove the trials that are not in `keep`."""
    folder = Folder(target)
    try:
        for case in (folder / TRIALS).folders():
            trials = folder / TRIALS / case
            for index in trial_numbers(target, case):
                if TrialKey(case, index) not in keep:
                    trials.remove(f"{index:03d}")
            if not trials.names():
                (folder / TRIALS).remove(case)
        folder.write("study.json", study_file.text().encode())
    except (UnfitError, DataError) as error:
        raise RequestError(f"writing results to {target}: {_describe(error)}; give another --out") from error
    except OSError as error:
        raise MachineError(cannot_write(target, error)) from error


def refuse_unusable(target: Path, name: str) -> None:
    """Raise RequestError if `target` cannot become the result folder of the study `name`; change nothing."""
    try:
        _refuse_foreign(target, name)
        place = target.absolute()
        while not place.exists():
            place = place.parent
    except (UnfitError, DataError) as error:
        raise RequestError(f"writing results to {target}: {_describe(error)}; give another --out") from error
    except OSError as error:
        raise RequestError(f"writing results to {target}: {error.strerror}; give another --out") from error
    if not place.is_dir():
        raise RequestError(f"writing results to {target}: {place} is a file; give another --out")
    if not os.access(place, os.W_OK | os.X_OK):
        raise RequestError(
            f"writing results to {target}: you may not write to {place}; change its permissions or give another --out"
        )


def add_cautions(target: Path, study_file: StudyFile, cautions: tuple[Caution, ...]) -> None:
    """Add cautions about the run to study.json. Raise MachineError if plait cannot write it."""
    if not cautions:
        return
    text = study_file.model_copy(update={"cautions": (*study_file.cautions, *cautions)}).text()
    try:
        Folder(target).write("study.json", text.encode())
    except OSError as error:
        raise MachineError(cannot_write(target, error)) from error


def _refuse_foreign(target: Path, name: str | None) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise RequestError(f"writing results to {target}: it is a file; give another --out")
    if Folder(target).has("study.json"):
        try:
            record = json_of(Folder(target).read("study.json"))
            previous, schema = record["name"], record["schema"]
        except (ValueError, KeyError, TypeError) as error:
            raise RequestError(
                f"writing results to {target}: its study.json is damaged; give another --out"
            ) from error
        if schema != SCHEMA:
            raise RequestError(
                f"writing results to {target}: another version of plait wrote these results (schema {schema}, here "
                f"{SCHEMA}); give another --out"
            )
        if "merged" in record:
            raise RequestError(
                f"writing results to {target}: it holds merged studies; give another --out, and merge again"
            )
        if previous != name:
            raise RequestError(
                f"writing results to {target}: it holds the study `{previous}`, not `{name}`; give another --out"
            )
    elif any(not name.startswith(_WORKING) for name in Folder(target).names()):
        raise RequestError(
            f"writing results to {target}: it holds files that are not a study; give another --out"
        )


def _describe(error: UnfitError | DataError) -> str:
    return f"{error.filename}: {error.strerror}" if isinstance(error, UnfitError) else str(error)


def cannot_write(target: Path, error: OSError) -> str:
    """Return why plait cannot write results, and the remedy."""
    gone = isinstance(error, FileNotFoundError)
    advice = remedy(error, "leave the folder in its place" if gone else "check the folder's permissions")
    path = error.filename or target
    return f"writing results to {path}: {error.strerror}; {advice} and run again; plait keeps finished trials"
