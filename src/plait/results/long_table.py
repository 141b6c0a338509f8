"""The metrics of a study as one long table, for spreadsheets, R and pandas: one row per case, trial and metric."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from plait.analysis.labels.cases import labels as case_labels
from plait.errors import RequestError, shell_command
from plait.results.read import read_study
from plait.scenario.vary.choose import choose_case

COLUMNS = ("case", "trial", "seed", "metric", "value")


def long_table(folder: Path, case: str | None = None, trial: int | None = None) -> pl.DataFrame:
    """Return `case`, a column for each factor, `trial`, `seed`, `metric` and `value`, of all completed trials.

    `value` is in the unit that ends the metric's name; null: not measured. A factor whose name is already a column has
    the prefix `factor_`. `case` (name, part or number) and `trial` select one case and the trials of one number.

    Raises:
        DataError: a file of the folder is damaged.
        RequestError: no completed trial is selected.
    """
    cases = read_study(folder).cases
    if case is not None:
        case = choose_case(case, [entry.name for entry in cases], case_labels(cases))
    names = list(dict.fromkeys(name for entry in cases for name in entry.settings))
    factors = pl.DataFrame(
        {
            "case": [entry.name for entry in cases],
            **{_column(name): factor_column([entry.settings.get(name) for entry in cases]) for name in names},
        }
    )
    values = pl.DataFrame(
        [
            {"case": entry.name, "trial": row.index, "seed": row.seed, "metric": name, "value": value}
            for entry in cases
            for row in entry.rows
            for name, value in row.metrics.items()
            if case in (None, entry.name) and trial in (None, row.index)
        ],
        schema={
            "case": pl.String,
            "trial": pl.Int64,
            "seed": pl.Int64,
            "metric": pl.String,
            "value": pl.Float64,
        },
        orient="row",
    )
    if values.is_empty():
        raise RequestError(
            f"exporting from {folder}: no completed trial is selected; "
            f"`{shell_command('plait', 'report', folder)}` shows its cases"
        )
    joined = values.join(factors, on="case", how="left", maintain_order="left")
    return joined.select("case", *factors.columns[1:], *COLUMNS[1:])


def _column(factor: str) -> str:
    return f"factor_{factor}" if factor in COLUMNS else factor


def table_content(frame: pl.DataFrame, suffix: str) -> bytes:
    """Return a table as the content of a `csv` or `parquet` file."""
    target = io.BytesIO()
    if suffix == "csv":
        frame.write_csv(target)
    else:
        frame.write_parquet(target)
    return target.getvalue()


def factor_column(values: list[object]) -> pl.Series:
    """Return what a factor is in each case: numbers and truth values as such, all else as text."""
    kinds = {type(value) for value in values if value is not None}
    for accepted, dtype in (({bool}, pl.Boolean), ({int}, pl.Int64), ({int, float}, pl.Float64)):
        if kinds and kinds <= accepted:
            return pl.Series(values, dtype=dtype, strict=False)
    return pl.Series([None if value is None else str(value) for value in values], dtype=pl.String)
