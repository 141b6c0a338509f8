"""One trial in a result folder: its plan, its tables and its provenance.

Only this module knows the layout `OUT/trials/CASE/NNN`. Result folders may come from a stranger: reads never leave the
folder (`plait.files`), and inconsistent content raises DataError with its location.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import polars as pl
from polars.exceptions import PanicException
from pydantic import Field, ValidationError

from plait.dataset.digest import trial_digest
from plait.dataset.files import first_line, read_table, read_tables
from plait.dataset.model import MONITOR_TABLES, TABLES
from plait.dataset.provenance import Provenance, explain, read_provenance
from plait.errors import DataError, PlaitError
from plait.files import Folder
from plait.parts import Record
from plait.plan.model.plan import Plan

TRIALS = "trials"
RUNNING_TRIAL = "trial.json"
"""The file in the job folder of a running trial that has its `TrialName`, for views of the running study."""
_NUMBER = re.compile(r"[0-9]{3}|[1-9][0-9]{3,8}")


class TrialName(Record):
    """The case and the number of a trial."""

    case: str
    number: Annotated[int, Field(ge=0, lt=10**9)]


class StoredTables(Mapping[str, "pl.DataFrame"]):
    """The tables of one trial by name; each is read from its file on first use and then cached.

    A table of `MONITOR_TABLES` may be missing: use `tables.get(name)`.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._frames: dict[str, pl.DataFrame] = {}

    def __getitem__(self, table: str) -> pl.DataFrame:
        if table not in self._names():
            raise KeyError(table)
        if table not in self._frames:
            self._frames[table] = read_table(self._folder, table)
        return self._frames[table]

    def read_all(self) -> None:
        """Read all tables now, which takes less time than one after the other (DataError)."""
        self._frames |= read_tables(
            self._folder, [name for name in self._names() if name not in self._frames]
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @cached_property
    def _monitors(self) -> tuple[str, ...]:
        files = set(self._folder.names())
        return tuple(name for name in MONITOR_TABLES if f"{name}.parquet" in files)

    def _names(self) -> tuple[str, ...]:
        return (*TABLES, *self._monitors)


@dataclass(frozen=True)
class Trial:
    """One trial. `plan` and `tables` raise DataError on use if their files are missing or damaged."""

    folder: Folder
    provenance: Provenance
    tables: StoredTables

    @property
    def path(self) -> Path:
        """The path of its folder, for messages."""
        return self.folder.path

    @cached_property
    def plan(self) -> Plan:
        """The plan that ran."""
        path = self.path / "plan.json"
        try:
            return Plan.model_validate_json(self.folder.read("plan.json"))
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); run the study again") from error
        except ValidationError as error:
            raise DataError(f"{path}: not a plan of this version of plait: {explain(error)}") from error


def trial_folder(out: Path, case: str, number: int) -> Folder:
    """Return the folder of trial `number` of `case` in the result folder `out`."""
    return Folder(out) / TRIALS / case / f"{number:03d}"


def trial_number(folder: Folder) -> int:
    """Return the number of the trial in `folder`, which `trial_folder` returned."""
    return int(folder.inside[-1])


def trial_numbers(out: Path, case: str) -> list[int]:
    """Return the numbers of the existing trials of `case` in ascending order; DataError if a link is in the way."""
    folder = Folder(out) / TRIALS / case
    try:
        return sorted(int(name) for name in folder.folders() if _NUMBER.fullmatch(name))
    except OSError as error:
        raise DataError(
            f"{error.filename}: cannot be read ({error.strerror}); run the study again"
        ) from error


def read_trial(folder: Folder | Path) -> Trial:
    """Return the trial in `folder` (`OUT/trials/CASE/NNN`); a failed one may have no tables.

    Raises:
        DataError: the provenance is missing or invalid.
    """
    place = Folder.of(folder)
    return Trial(folder=place, provenance=read_provenance(place), tables=StoredTables(place))


def checked_digest(trial: Trial) -> str:
    """Return the digest of a trial's data (DataError if they are not those that the trial made)."""
    with making_sense(trial.folder):
        digest = trial_digest(trial.tables)
    if trial.provenance.digest not in (None, digest):
        raise DataError(
            f"{trial.folder}: the data have changed since the trial (another digest); run the trial again"
        )
    return digest


@contextmanager
def making_sense(place: Folder | Path) -> Iterator[None]:
    """Convert any error of a computation with the data in `place` to a DataError that names the place.

    plait checks each file alone when it reads it. If files contradict one another, such as a plan without a flow that a
    table has, only the computation fails.
    """
    try:
        yield
    except (PlaitError, MemoryError, OSError, ImportError):  # errors of the machine, not of the data
        raise
    except (Exception, PanicException) as error:
        reason = f"{type(error).__name__}: {first_line(error)[:200]}"
        raise DataError(
            f"{place}: its files contradict one another ({reason}); delete the folder and run the study again. "
            "If plait wrote them like that, this is a defect of plait: please report it with the folder"
        ) from error
