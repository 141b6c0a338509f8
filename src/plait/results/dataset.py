"""Exports a study as one dataset: a folder for each table, hive-partitioned by case, that other tools open lazily.

    OUT/TABLE/case=CASE/trials-000000.parquet      the rows of consecutive trials, with their number in `trial`
    OUT/TABLE/case=CASE/trial=N/rows.parquet       the rows of one trial, if the user asks for that

By default a file has many trials, because a reader spends more time on opening a small file than on its rows
(decision 26). Row groups are sorted by trial and have statistics, so that a query of a few trials reads little. plait
reads and checks each table as a report does, and holds one file's rows in memory at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import polars as pl

from plait.dataset.files import READ_ERRORS, first_line
from plait.dataset.study_file import read_study_file
from plait.dataset.trial import making_sense, read_trial, trial_folder, trial_numbers
from plait.engine.workspace import Workspace
from plait.errors import DataError, MachineError, RequestError
from plait.files import Folder
from plait.limits import remedy

MOST_ROWS = 1 << 20
"""Rows of a file, except for a single trial with more."""
TRIALS = "trials"


def export_dataset(
    folder: Path,
    out: Path,
    progress: Callable[[int, int], None] = lambda _, __: None,
    *,
    by_trial: bool = False,
) -> int:
    """Write the completed trials of the study in `folder` as the new folder `out`, and return their number.

    `out/trials` has a row for each trial: its number, its seed and a column for each factor. `progress` gets the number
    of trials read so far, and of all. With `by_trial`, each trial has a file of each table. Raises RequestError if
    `out` exists or no trial is complete, DataError if a table is damaged, MachineError if plait cannot write; no file
    stays then.
    """
    if out.exists():
        raise RequestError(f"writing {out}: it exists; remove it, or choose another --out")
    study_file = read_study_file(folder)
    numbers = {case.name: trial_numbers(folder, case.name) for case in study_file.cases}
    total, read, written = sum(map(len, numbers.values())), 0, 0
    try:
        with Workspace(out.absolute().parent, ".export-") as work:
            target = work.job()
            for case in study_file.cases:
                parts = _Parts(target, case.name, by_trial=by_trial)
                for number in numbers[case.name]:
                    if _add(parts, folder, case.name, number, case.settings):
                        written += 1
                    read += 1
                    progress(read, total)
                parts.flush()
            if not written:
                raise RequestError(f"exporting from {folder}: no trial is complete; run the study first")
            Folder(out.absolute().parent).take(target, out.name)
    except OSError as error:
        raise MachineError(
            f"writing {out}: {error.strerror or error}; {remedy(error, 'check space and permissions')}"
        ) from error
    return written


def _add(parts: _Parts, folder: Path, case: str, number: int, settings: dict[str, object]) -> bool:
    """Add the tables of a trial; return whether it is complete."""
    place = trial_folder(folder, case, number)
    trial = read_trial(place)
    if trial.provenance.status != "ok" or trial.provenance.excluded is not None:
        return False
    factors = {name: None if value is None else str(value) for name, value in settings.items()}
    with making_sense(place):
        row = {"seed": trial.provenance.seed, **{f"factor_{name}": text for name, text in factors.items()}}
        parts.add(TRIALS, number, pl.DataFrame([row]))
        for name in trial.tables:
            parts.add(name, number, trial.tables[name])
    return True


class _Parts:
    """The files of one case that are being filled, by table."""

    def __init__(self, target: Path, case: str, *, by_trial: bool) -> None:
        self._target = target
        self._by_trial = by_trial
        self._case = quote(case, safe=" ,.;!@()[]{}+-_")  # as hive does: `=` and `/` have a meaning in paths
        self._frames: defaultdict[str, list[pl.DataFrame]] = defaultdict(list)
        self._rows: defaultdict[str, int] = defaultdict(int)
        self._files: defaultdict[str, int] = defaultdict(int)

    def add(self, table: str, number: int, frame: pl.DataFrame) -> None:
        """Add the rows of a trial to a table."""
        if self._by_trial:
            self._save(table, f"trial={number}", "rows.parquet", frame)
            return
        self._frames[table].append(frame.select(pl.lit(number, pl.Int64).alias("trial"), pl.all()))
        self._rows[table] += frame.height
        if self._rows[table] >= MOST_ROWS:
            self._write(table)

    def flush(self) -> None:
        """Write what is left."""
        for table in tuple(self._frames):
            self._write(table)

    def _write(self, table: str) -> None:
        frames = self._frames.pop(table)
        self._save(table, "", f"trials-{self._files[table]:06d}.parquet", pl.concat(frames))
        self._rows[table] = 0
        self._files[table] += 1

    def _save(self, table: str, subfolder: str, name: str, frame: pl.DataFrame) -> None:
        """Write a file of a table; raise DataError or OSError."""
        place = Folder(self._target, (table, f"case={self._case}", *([subfolder] if subfolder else [])))
        try:
            with place.create(name) as file:
                frame.write_parquet(file, compression="zstd", row_group_size=1 << 16)
        except READ_ERRORS as error:
            raise DataError(f"writing {name} of {table}: {first_line(error)}; check the space") from error
