"""plait reports a damaged file of a result folder with its place, and makes a damaged file of the cache again."""

from __future__ import annotations

import io
import random
import shutil
from pathlib import Path

import polars as pl
import pytest
from hostile import DAMAGES, study, use_everywhere

from plait.dataset import files
from plait.dataset.files import read_table
from plait.dataset.model import TABLES
from plait.engine import inventory
from plait.engine.virtual.initramfs import archive, ensure
from plait.errors import DataError, PlaitError
from plait.files import Folder
from plait.kernel import cache as kernels
from plait.report.render import render
from plait.study.estimate import Pace, keep_pace, read_pace

TRIAL = "trials/transport=tcp/000"
FILES = ("study.json", f"{TRIAL}/plan.json", f"{TRIAL}/provenance.json", f"{TRIAL}/flows.parquet")
SEED = 4


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study(tmp_path_factory.mktemp("good") / "study")


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_verb_refuses_a_damaged_folder_with_its_place_or_does_its_work(
    damage: str, good: Path, tmp_path: Path
) -> None:
    choose = random.Random(f"{SEED} {damage}")
    for name in FILES:
        folder = Path(shutil.copytree(good, tmp_path / "bad"))
        DAMAGES[damage](folder / name, choose)
        (tmp_path / "scratch").mkdir()
        for verb, error in use_everywhere(folder, good, tmp_path / "scratch").items():
            assert isinstance(error, PlaitError), (name, verb, error)
            assert str(folder) in str(error), (name, verb, error)
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / "scratch")


def test_files_that_contradict_one_another_are_an_error_with_their_place(good: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(good, tmp_path / "bad"))
    path = folder / TRIAL / "subflows.parquet"
    pl.read_parquet(path).with_columns(flow=pl.lit(None, dtype=pl.String)).write_parquet(path)
    (tmp_path / "scratch").mkdir()
    raised = use_everywhere(folder, good, tmp_path / "scratch")
    assert all(isinstance(error, PlaitError) and str(folder) in str(error) for error in raised.values()), (
        raised
    )


def test_a_table_of_more_rows_than_any_trial_makes_is_refused_without_reading_them(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 100_000
    row = pl.read_parquet(good / TRIAL / "counters.parquet").head(1)
    bomb = tmp_path / "counters.parquet"
    row.select(pl.all().repeat_by(rows).explode(empty_as_null=True)).write_parquet(bomb)
    assert bomb.stat().st_size * 20 < rows * len(row.columns), "a bomb is much smaller than what it claims"
    assert len(read_table(Folder(tmp_path), "counters")) == rows
    monkeypatch.setattr(files, "MOST_CELLS", len(row.columns) * 1000)
    asked: list[int] = []
    scan = pl.scan_parquet
    monkeypatch.setattr(
        pl, "scan_parquet", lambda *a, n_rows, **k: asked.append(n_rows) or scan(*a, n_rows=n_rows, **k)
    )
    with pytest.raises(DataError, match=r"counters\.parquet: .* more than 1000 rows"):
        read_table(Folder(tmp_path), "counters")
    assert asked == [1001]


def test_columns_are_checked_before_any_row_is_read(good: Path, tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1]})
    content = io.BytesIO()
    frame.write_parquet(content)
    (tmp_path / "counters.parquet").write_bytes(content.getvalue())
    with pytest.raises(DataError, match="column"):
        read_table(Folder(tmp_path), "counters")


def test_a_table_may_have_what_a_long_trial_of_many_subflows_needs() -> None:
    an_hour_at_10_ms = 360_000
    assert files.most_rows("subflows") > 32 * an_hour_at_10_ms
    assert min(files.most_rows(table) for table in TABLES) > 32 * an_hour_at_10_ms


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_inventory_is_taken_again(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    answer = inventory.Inventory(congestion_controls=("cubic",), schedulers=(), sysctls={}, shared_sysctls={})

    def boot(folder: Path) -> None:
        (folder / inventory.ANSWER).write_text(answer.model_dump_json())

    assert inventory.take("id", (), boot) == answer
    (kept,) = (tmp_path / "inventories").iterdir()
    DAMAGES[damage](kept, random.Random(SEED))
    again = inventory.take("id", (), boot)
    assert again == answer or damage in {"flipped", "swapped"}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_initramfs_is_made_again(damage: str, tmp_path: Path) -> None:
    path = ensure(b"agent", "00", tmp_path)
    DAMAGES[damage](path, random.Random(SEED))
    if damage == "folder":
        shutil.rmtree(path)  # a user who does that has to remove it: no rename replaces a folder
    assert ensure(b"agent", "00", tmp_path).read_bytes() == archive(b"agent")


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_pace_is_believed_only_where_it_can_be(damage: str, tmp_path: Path) -> None:
    keep_pace(tmp_path, "fake", Pace((0.5, -0.3), (0.1,)))
    DAMAGES[damage](tmp_path / "pace-fake.json", random.Random(SEED))
    pace = read_pace(tmp_path, "fake")
    assert 1e-6 <= pace.factor <= 1e6
    assert 1 <= pace.spread <= 1e6


@pytest.mark.parametrize("content", ['{"trials": [1e999], "errors": []}', '{"trials": -1}', "[1]"])
def test_a_pace_that_cannot_be_is_not_believed(content: str, tmp_path: Path) -> None:
    (tmp_path / "pace-fake.json").write_text(content)
    assert read_pace(tmp_path, "fake") == Pace()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_figure_is_drawn_again(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    assert render._cached("key", ".svg", lambda: b"<svg/>") == b"<svg/>"
    DAMAGES[damage](tmp_path / "figures" / "key.svg", random.Random(SEED))
    assert render._cached("key", ".svg", lambda: b"<svg/>") == b"<svg/>"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_of_a_kernel_is_no_kernel(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path))
    folder = tmp_path / "kernels" / ("ab" * 32)
    folder.mkdir(parents=True)
    (folder / "linux").write_bytes(b"linux")
    (folder / "build.json").write_text('{"schema": 1, "version": "6.12.\u00b2"}')
    DAMAGES[damage](folder / "build.json", random.Random(SEED))
    assert kernels.list_built() == []
