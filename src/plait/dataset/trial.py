"""One trial as it lies in a result folder: its plan, its tables (read when asked for) and its provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import ValidationError

from plait.dataset.files import read_table
from plait.dataset.model import MONITOR_TABLES, TABLES
from plait.dataset.provenance import Provenance, explain, read_provenance
from plait.errors import DataError
from plait.plan.model import Plan

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl


class Tables(Mapping[str, "pl.DataFrame"]):
    """The tables of one trial by name; each is read from its file at the first use and then kept.

    Those of monitors are there when the plan asked for them: `tables.get(name)`.
    """

    def __init__(self, folder: Path) -> None:
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

    def _names(self) -> tuple[str, ...]:
        asked = [name for name in MONITOR_TABLES if (self._folder / f"{name}.parquet").exists()]
        return (*TABLES, *asked)


@dataclass(frozen=True)
class Trial:
    """One trial. `plan` and `tables` raise DataError when used, should their files be missing or damaged."""

    path: Path
    provenance: Provenance
    tables: Tables

    @cached_property
    def plan(self) -> Plan:
        """The plan that was run."""
        path = self.path / "plan.json"
        try:
            return Plan.model_validate_json(path.read_bytes())
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); run the study again") from error
        except ValidationError as error:
            raise DataError(f"{path}: not a plan of this version of plait: {explain(error)}") from error


def read_trial(folder: Path) -> Trial:
    """Return the trial in `folder` (`OUT/trials/CASE/NNN`); a failed one may have no tables.

    Raises:
        DataError: there is no provenance, or it is not what it should be.
    """
    return Trial(path=folder, provenance=read_provenance(folder), tables=Tables(folder))
