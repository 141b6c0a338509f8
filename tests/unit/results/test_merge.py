"""Merging studies counts no trial twice, mixes nothing that differs, and loses nothing."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import plait
from fake_engine import FakeEngine
from plait.errors import DataError, RequestError
from plait.results.merge import merge
from result_folders import fresh_cache

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return studies: `one` and `two` of other seeds, `delay` of another field, `whole` as one and more repeats."""
    folder = tmp_path_factory.mktemp("studies")
    with pytest.MonkeyPatch.context() as patch:
        fresh_cache(patch, folder / "cache")

        def run(name: str, **options: Any) -> None:
            asked = plait.load("two-paths", **options.pop("fields", {}))
            plait.run(asked, out=folder / name, engine=FakeEngine(), progress=False, **options)

        run("one", repeat=2, seed=1)
        run("two", repeat=2, seed=7)
        run("more", repeat=3, seed=1)
        run("faster", repeat=2, seed=1, fields={"set": {"network.links.*.rate": "6mbit"}})
    return folder


def trials(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.glob("trials/*/*"))


def test_other_seeds_are_further_repeats_and_the_same_ones_are_kept_once(base: Path, tmp_path: Path) -> None:
    assert merge(tmp_path / "out", [base / "one", base / "two", base / "more"]) == 2 * (2 + 2 + 1)
    assert trials(tmp_path / "out") == [
        f"trials/transport={t}/{n:03d}" for t in ("mptcp", "tcp") for n in range(5)
    ]
    merged = plait.open(tmp_path / "out")
    assert merged.trials["seed"].n_unique() == 5
    assert [case.metrics["goodput_bps"].n for case in merged.summary.cases] == [5, 5]
    assert merged.comparisons[0].pairs == 5
    whole = {
        (t["seed"], t["case"], t["goodput_bps"])
        for t in plait.open(base / "two").trials.iter_rows(named=True)
    }
    assert whole <= {(t["seed"], t["case"], t["goodput_bps"]) for t in merged.trials.iter_rows(named=True)}


def test_what_was_to_be_checked_of_any_is_to_be_checked_of_all(base: Path, tmp_path: Path) -> None:
    copy = tmp_path / "two"
    shutil.copytree(base / "two", copy)
    about = json.loads((copy / "study.json").read_text())
    about["cautions"] = [{"code": "queue", "message": "it is short"}]
    (copy / "study.json").write_text(json.dumps(about))
    merge(tmp_path / "out", [base / "one", copy])
    assert "it is short" in [caution.message for caution in plait.open(tmp_path / "out").cautions]


def test_a_halted_trial_is_not_put_to_others(base: Path, tmp_path: Path) -> None:
    copy = tmp_path / "two"
    shutil.copytree(base / "two", copy)
    path = copy / "trials/transport=mptcp/001/plan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pause": ["before"]}))
    with pytest.raises(RequestError, match="transport=mptcp/001 was halted for a prompt"):
        merge(tmp_path / "out", [base / "one", copy])
    assert not (tmp_path / "out").exists()


def test_the_same_case_and_seed_with_other_data_is_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="same case and seed and different data"):
        merge(tmp_path / "out", [base / "one", base / "faster"])
    assert list(tmp_path.iterdir()) == []


def test_another_kernel_or_version_is_refused_unless_allowed(base: Path, tmp_path: Path) -> None:
    import shutil

    for field, value in (("kernel", {"identity": "f" * 64, "version": "6.12"}), ("plait_version", "0.0.1")):
        other = tmp_path / field
        shutil.copytree(base / "two", other)
        about = json.loads((other / "study.json").read_text())
        (other / "study.json").write_text(json.dumps(about | {field: value}))
        with pytest.raises(RequestError, match=f"another {field.partition('_')[0]}.*--mixed"):
            merge(tmp_path / "out", [base / "one", other])
        assert not (tmp_path / "out").exists()
    assert merge(tmp_path / "out", [base / "one", tmp_path / "kernel"], mixed=True) == 8
    assert json.loads((tmp_path / "out/study.json").read_text())["kernel"] == {
        "identity": None,
        "version": None,
    }


def test_a_truncated_table_is_named_and_nothing_is_lost_or_left(base: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(base / "two", tmp_path / "cut")
    table = tmp_path / "cut/trials/transport=tcp/001/subflows.parquet"
    table.write_bytes(table.read_bytes()[:-20])
    before = trials(tmp_path / "cut")
    with pytest.raises(
        DataError, match=r"cut/trials/transport=tcp/001/subflows.parquet.*not a readable Parquet"
    ):
        merge(tmp_path / "out", [base / "one", tmp_path / "cut"])
    assert trials(tmp_path / "cut") == before
    assert [path.name for path in tmp_path.iterdir()] == ["cut"]


def test_an_existing_folder_and_what_is_no_study_are_refused(base: Path, tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="it exists"):
        merge(tmp_path, [base / "one"])
    with pytest.raises(DataError, match=r"study\.json"):
        merge(tmp_path / "out", [base / "one", tmp_path])


def test_a_run_does_not_overwrite_what_was_merged(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIT_CACHE", str(base / "cache"))
    merge(tmp_path / "out", [base / "one", base / "two"])
    with pytest.raises(RequestError, match="holds merged studies"):
        plait.run("two-paths", out=tmp_path / "out", engine=FakeEngine(), progress=False)
    assert len(trials(tmp_path / "out")) == 8
