"""A study as a dataset: polars, DuckDB and pandas open it with one line, and see what plait's tables have."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pandas as pd
import polars as pl
import pytest

import plait
from fake_engine import FakeEngine
from plait.dataset.trial import read_trial, trial_folder
from plait.errors import RequestError, TrialError
from plait.results import dataset
from plait.results.dataset import export_dataset
from plait.seeds import trial_seed
from plait.study.perform import Options, perform
from plait.study.progress import silent

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.engine import Job

REPEAT = 5


def fail_one(job: Job) -> None:
    if len(job.plan.flows[0].paths) > 1 and job.plan.seed == trial_seed(1, 2):
        raise TrialError("the guest's kernel panicked")


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    folder, _ = perform(
        plait.load("two-paths"),
        "two-paths",
        lambda _: FakeEngine(fail_one),
        Options(repeat=REPEAT),
        folder=tmp_path / "study",
        watch=silent,
        notify=lambda _: None,
    )
    return folder


def bytes_by_trial(study: Path) -> dict[tuple[str, int], int]:
    """Return what the flow of each completed trial received, from plait's own tables."""
    received = {}
    for case in ("transport=tcp", "transport=mptcp"):
        for number in range(REPEAT):
            trial = read_trial(trial_folder(study, case, number))
            if trial.provenance.status == "ok":
                received[case, number] = int(trial.tables["flows"]["received_bytes"].sum())
    return received


@pytest.mark.parametrize("by_trial", [False, True])
def test_polars_duckdb_and_pandas_see_all_trials_with_one_line(
    by_trial: bool, study: Path, tmp_path: Path
) -> None:
    out = tmp_path / "dataset"
    assert export_dataset(study, out, by_trial=by_trial) == 2 * REPEAT - 1
    files = sorted(path.relative_to(out / "flows").as_posix() for path in out.glob("flows/**/*.parquet"))
    if by_trial:
        assert len(files) == 2 * REPEAT - 1
        assert files[:2] == [f"case=transport%3Dmptcp/trial={number}/rows.parquet" for number in (0, 1)]
    else:
        assert files == [f"case=transport%3D{name}/trials-000000.parquet" for name in ("mptcp", "tcp")]
    expected = bytes_by_trial(study)
    lazy = pl.scan_parquet(out / "flows", hive_partitioning=True)
    assert isinstance(lazy, pl.LazyFrame)
    seen = lazy.group_by("case", "trial").agg(pl.col("received_bytes").sum()).collect()
    assert {(case, trial): total for case, trial, total in seen.rows()} == expected
    table = duckdb.read_parquet(f"{out}/flows/**/*.parquet", hive_partitioning=True)
    rows = table.aggregate('"case", trial, sum(received_bytes)').fetchall()
    assert {(case, trial): int(total) for case, trial, total in rows} == expected
    frame = pd.read_parquet(out / "flows")
    sums = frame.groupby(["case", "trial"], observed=True)["received_bytes"].sum()
    assert {(str(case), int(trial)): int(total) for (case, trial), total in sums.items()} == expected


@pytest.mark.parametrize("by_trial", [False, True])
def test_a_query_of_one_trial_equals_the_trial_s_own_table(
    by_trial: bool, study: Path, tmp_path: Path
) -> None:
    export_dataset(study, tmp_path / "dataset", by_trial=by_trial)
    trial = read_trial(trial_folder(study, "transport=mptcp", 3))
    for table in trial.tables:
        lazy = pl.scan_parquet(tmp_path / "dataset" / table, hive_partitioning=True)
        chosen = lazy.filter(pl.col("case") == "transport=mptcp", pl.col("trial") == 3).drop("case", "trial")
        assert chosen.collect().equals(trial.tables[table]), table


def test_factors_join_to_every_table(study: Path, tmp_path: Path) -> None:
    export_dataset(study, tmp_path / "dataset")
    trials = pl.read_parquet(tmp_path / "dataset" / "trials", hive_partitioning=True)
    assert set(trials.columns) == {"case", "trial", "seed", "factor_transport"}
    assert sorted(set(trials["factor_transport"])) == ["mptcp", "tcp"]
    assert trials.height == 2 * REPEAT - 1


def test_memory_is_bounded_by_the_rows_of_a_file(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "MOST_ROWS", 1)
    export_dataset(study, tmp_path / "many")
    assert len(list((tmp_path / "many/flows").rglob("*.parquet"))) == 2 * REPEAT - 1
    assert pl.scan_parquet(tmp_path / "many/flows", hive_partitioning=True).collect().height > 0


def test_an_existing_folder_stays(study: Path, tmp_path: Path) -> None:
    (tmp_path / "dataset").mkdir()
    with pytest.raises(RequestError, match="it exists"):
        export_dataset(study, tmp_path / "dataset")
    assert not list(tmp_path.glob(".export-*"))
