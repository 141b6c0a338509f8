"""One trial as it lies in a result folder: its plan, its tables (read when asked for) and its provenance.

Only this module knows the layout `OUT/trials/CASE/NNN`. Result folders may come from a stranger: reading never leaves
them (`plait.files`), and what makes no sense becomes a DataError with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from polars.exceptions import PanicException
from pydantic import ValidationError

from plait.dataset.files import first_line, read_table
from plait.dataset.model import MONITOR_TABLES, TABLES
from plait.dataset.provenance import Provenance, explain, read_provenance
from plait.errors import DataError, PlaitError
from plait.files import Folder
from plait.plan.model.plan import Plan

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

TRIALS = "trials"
_NUMBER = re.compile(r"[0-9]{3}|[1-9][0-9]{3,8}")


class Tables(Mapping[str, "pl.DataFrame"]):
    """The tables of one trial by name; each is read from its file at the first use and then kept.

    Those of monitors are there when the plan asked for them: `tables.get(name)`.
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
    """One trial. `plan` and `tables` raise DataError when used, should their files be missing or damaged."""

    folder: Folder
    provenance: Provenance
    tables: Tables

    @property
    def path(self) -> Path:
        """Where it lies, for messages."""
        return self.folder.path

    @cached_property
    def plan(self) -> Plan:
        """The plan that was run."""
        path = self.path / "plan.json"
        try:
            return Plan.model_validate_json(self.folder.read("plan.json"))
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); run the study again") from error
        except ValidationError as error:
            raise DataError(f"{path}: not a plan of this version of plait: {explain(error)}") from error


def trial_folder(out: Path, case: str, number: int) -> Folder:
    """Return where trial `number` of `case` lies in the result folder `out`."""
    return Folder(out) / TRIALS / case / f"{number:03d}"


def trial_numbers(out: Path, case: str) -> list[int]:
    """Return the numbers of the trials of `case` that are there, ascending (DataError where a link is in the way)."""
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
        DataError: there is no provenance, or it is not what it should be.
    """
    place = Folder.of(folder)
    return Trial(folder=place, provenance=read_provenance(place), tables=Tables(place))


@contextmanager
def making_sense(place: Folder | Path) -> Iterator[None]:
    """Turn whatever computing with the data in `place` raises into a DataError that names the place.

    Each file in it is checked by itself when it is read. Files that contradict one another, such as a plan without the
    flow that a table has, are noticed only by the computation that stumbles over them.
    """
    try:
        yield
    except (PlaitError, MemoryError, OSError, ImportError):  # of the machine, not of the data
        raise
    except (Exception, PanicException) as error:
        reason = f"{type(error).__name__}: {first_line(error)[:200]}"
        raise DataError(
            f"{place}: its files contradict one another ({reason}); delete the folder and run the study again. "
            "If plait wrote them like that, this is a defect of plait: please report it with the folder"
        ) from error
