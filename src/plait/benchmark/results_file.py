"""The file of a benchmark's results: what was measured in each cell, and what identifies its trials.

A file comes from anywhere; it is read with bounds, and its values are checked.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from plait.analysis.rows import CaseRows
from plait.benchmark.suite import NAME, PARTS, SHA256, STALLED_S, STALLS, Cell, Subset, cells
from plait.errors import DataError
from plait.files import Folder
from plait.parts import Part
from plait.results.read import StudyData

MOST_BYTES = 4 << 20
MOST_SEEDS = 100
_Word = Annotated[str, Field(max_length=200)]
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Short = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
_Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e18, le=1e18)]


ENTRY_NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._+=,-]{0,59}$"


class BenchmarkEntry(Part):
    """Who is measured: settings, and what carried the trials out."""

    name: Annotated[str, Field(pattern=ENTRY_NAME)]
    transport: Literal["mptcp", "tcp"] = "mptcp"
    scheduler: _Word
    congestion_control: _Word
    sysctls: dict[_Word, _Word] = Field(default_factory=dict)
    sources: dict[_Word, _Digest] = Field(default_factory=dict)
    """SHA-256 of the C files of added algorithms, by the names of the algorithms."""
    kernel_version: _Word
    kernel_identity: _Digest
    agent_sha256: _Digest
    plait_version: _Word


class CellResult(Part):
    """What was measured in one cell."""

    values: Annotated[tuple[_Number | None, ...], Field(min_length=1, max_length=MOST_SEEDS)]
    """The metric of the cell's class by seed; None where it could not be measured."""
    digest: _Short | None = None
    """The beginning of the SHA-256 of the digests of all its trials; None if one of them failed."""
    failed: Annotated[tuple[Annotated[str, Field(max_length=400)], ...], Field(max_length=3)] = ()
    """Why trials failed, or why one that ended does not count: the first reasons."""
    parts: dict[_Word, _Number] = Field(default_factory=dict)
    """Medians of further metrics."""

    @property
    def is_whole(self) -> bool:
        """Whether every seed has a value to judge by."""
        return all(value is not None and value > 0 for value in self.values)


class Results(Part):
    """The results of one entry."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    suite: _Word = NAME
    suite_sha256: _Digest
    subset: Subset
    seeds: Annotated[
        tuple[Annotated[int, Field(ge=0, lt=2**53)], ...], Field(min_length=1, max_length=MOST_SEEDS)
    ]
    entry: BenchmarkEntry
    cells: dict[_Word, CellResult]

    @model_validator(mode="after")
    def _are_whole(self) -> Results:
        if self.suite != NAME or self.suite_sha256 != SHA256:
            raise ValueError(
                f"they are of the suite {self.suite!r}, and this plait has {NAME}: nothing compares them"
            )
        wanted = {cell.name for cell in cells(self.subset)}
        if self.cells.keys() != wanted:
            missing = sorted(wanted ^ self.cells.keys())
            raise ValueError(
                f"their cells are not those of the subset {self.subset}: {', '.join(missing[:3])}"
            )
        if any(len(cell.values) != len(self.seeds) for cell in self.cells.values()):
            raise ValueError(f"a cell has not one value for each of the {len(self.seeds)} seeds")
        return self

    def as_bytes(self) -> bytes:
        """Return the content of the file: one line for each cell."""
        head = json.loads(self.model_dump_json(exclude={"cells"}, by_alias=True))
        lines = [f' "{name}": {json.dumps(value)}' for name, value in head.items()]
        rows = [
            f'  "{name}": {cell.model_dump_json(exclude_defaults=True)}'
            for name, cell in sorted(self.cells.items())
        ]
        return ("{\n" + ",\n".join(lines) + ',\n "cells": {\n' + ",\n".join(rows) + "\n }\n}\n").encode()


def read_results(path: Path) -> Results:
    """Return the results in a file (DataError if it has none, or none of this suite)."""
    try:
        content = Folder(path.parent).read(path.name, MOST_BYTES)
    except OSError as error:
        raise DataError(f"reading the results {path}: {error.strerror or error}; check the path") from error
    return parse_results(content, path)


def parse_results(content: bytes, path: Path) -> Results:
    """Return the results in the content of a file (DataError if it has none, or none of this suite)."""
    try:
        return Results.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        raise DataError(
            f"{path} has no results of {NAME}: {place + ': ' if place else ''}{reason}; "
            "give a file that `plait benchmark` wrote"
        ) from error


def published(pattern: str = "*.json") -> list[Results]:
    """Return the results that plait ships, sorted by name: those of `full`, or of `quick` with `quick/*.json`."""
    return [read_results(path) for path in sorted((Path(__file__).parent / "published").glob(pattern))]


def measured(study: StudyData, chosen: Iterable[Cell], seeds: Sequence[int]) -> dict[str, CellResult]:
    """Return what a study measured in each cell, by its name."""
    by_cell = {(case.settings["network"], case.settings["traffic"]): case for case in study.cases}
    return {cell.name: _cell(by_cell[cell.network, cell.traffic], cell, seeds) for cell in chosen}


def _cell(case: CaseRows, cell: Cell, seeds: Sequence[int]) -> CellResult:
    stalls = _stalls(case, cell)
    values = {
        seed: value for seed, value in case.by_seed(cell.cell_class.metric).items() if seed not in stalls
    }
    digests = [row.digest for row in sorted(case.rows, key=lambda row: row.index)]
    parts = {
        metric: _rounded(statistics.median(of_metric))
        for metric in PARTS
        if (of_metric := [value for _, value in case.measured(metric)])
    }
    reasons = list(dict.fromkeys([*(trial.error[:400] for trial in case.failed), *stalls.values()]))
    return CellResult(
        values=tuple(None if (value := values.get(seed)) is None else _rounded(value) for seed in seeds),
        digest=None
        if case.failed or not digests
        else hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16],
        failed=tuple(reasons[:3]),
        parts=parts,
    )


def _stalls(case: CaseRows, cell: Cell) -> dict[int, str]:
    """Return by seed why a trial does not count: its flow stalled, so what ran beside it had the links alone."""
    if (metric := STALLS.get(cell.traffic)) is None:
        return {}
    waits = {row.seed: row.metrics.get(metric) for row in case.rows}
    return {
        seed: "a flow delivered nothing" + ("" if wait_s is None else f" for more than {STALLED_S:g} s")
        for seed, wait_s in waits.items()
        if wait_s is None or wait_s > STALLED_S
    }


def _rounded(value: float) -> float:
    """Return a value with six digits, which a results file has."""
    return float(f"{value:.6g}")
