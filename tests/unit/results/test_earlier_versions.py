"""plait reads the results of its last two MINOR versions: those in tests/data keep their digest and numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import plait
from plait.errors import DataError
from plait.version import __version__

FOLDERS = sorted((Path(__file__).parents[2] / "data").glob("results-*"))


def test_this_version_has_a_folder() -> None:
    """Before a new MINOR version, add its results (two-paths, one seed, one second) and drop the third."""
    names = [folder.name.removeprefix("results-") for folder in FOLDERS]
    assert __version__.rpartition(".")[0] in names
    assert len(names) <= 2


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_results_have_the_digest_and_the_numbers_of_then(folder: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(folder, tmp_path / "results"))
    written = json.loads((copied / "summary.json").read_text())
    study = plait.open(copied)
    assert study.digest == written["digest"]
    for case in written["cases"]:
        then = case["metrics"]["goodput_bps"]["mean"]
        rows = study.trials.filter(study.trials["transport"] == case["settings"]["transport"])
        assert rows["goodput_bps"].mean() == pytest.approx(then, rel=1e-9)
    assert study.table("subflows").height >= 30  # a sample each 100 ms of one subflow, and of two


@pytest.mark.parametrize("file", ["study.json", "trials/transport=mptcp/000/provenance.json"])
def test_an_unknown_schema_is_refused(file: str, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(FOLDERS[-1], tmp_path / "results"))
    content = json.loads((copied / file).read_text())
    (copied / file).write_text(json.dumps({**content, "schema": 99, "plait_version": "9.0.0"}))
    with pytest.raises(DataError, match=r"99|9\.0\.0"):
        plait.open(copied)
