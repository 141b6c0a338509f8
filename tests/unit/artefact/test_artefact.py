"""A bundle has documents and claims for an evaluation; a check of it finds every forged value."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fake_engine import FakeEngine
from plait.artefact import check
from plait.artefact.claims import Artefact, artefact_of, repeated_value
from plait.artefact.write import title_of, write_artefact
from plait.cli.results import verify
from plait.dataset.study_file import StudyFile
from plait.engine import factory
from plait.errors import DataError, RequestError
from plait.results.read import read_study
from plait.scenario import load
from plait.study.bundle.record import BundleRecord
from plait.study.perform import Options, perform
from plait.study.progress import silent
from result_folders import benchmark_results, fresh_cache

if TYPE_CHECKING:
    from collections.abc import Callable

SCENARIO = """
title: "One link: # <b>a</b> | `b`"
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 5ms}}}
traffic: [{bulk: {from: a, to: b, duration: 1s}}]
vary: {transport: [tcp, mptcp]}
repeat: 3
seed: 5
"""
DOCUMENTS = {"README.md", "CLAIMS.md", "REPLICABILITY.md", "ENVIRONMENT.md", "LICENCES.md", "artefact.json"}
AUTHOR = ["Doe, Jane; 0000-0002-1825-0097"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the study `results`, without a report."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "one.yaml").write_text(SCENARIO)
    with pytest.MonkeyPatch.context() as patch:
        fresh_cache(patch, folder / "cache")
        options = Options(jobs=1, command="plait run one.yaml", repeat=3)
        perform(
            load(str(folder / "one.yaml")), "one", lambda _: FakeEngine(), options, folder=folder / "results",
            watch=silent, notify=lambda _: None,
        )  # fmt: skip
        read_study(folder / "results")
    return folder


@pytest.fixture
def place(study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, which `plait verify` repeats on the fake engine."""
    copy = tmp_path / "place"
    shutil.copytree(study, copy)
    monkeypatch.setenv("PLAIT_CACHE", str(copy / "cache"))
    monkeypatch.chdir(copy)
    monkeypatch.setattr(factory, "make_engine", lambda _name, request: FakeEngine())  # noqa: ARG005
    return copy


def unpacked(
    place: Path, forge: Callable[[dict[str, Any]], object] = lambda _: None, file: str = "bundle.json"
) -> Path:
    """Return the folder of the unpacked bundle, with one record forged."""
    folder = place / "elsewhere"
    with zipfile.ZipFile(write_artefact(Path("results"))) as archive:
        archive.extractall(folder)
    record = json.loads((folder / file).read_text())
    forge(record)
    (folder / file).write_text(json.dumps(record))
    return folder


def bundled(path: Path) -> BundleRecord:
    with zipfile.ZipFile(path) as archive:
        return BundleRecord.model_validate_json(archive.read("bundle.json"))


def forge_digest(record: dict[str, Any]) -> None:
    record["trials"][1]["digest"] = "sha256:" + "0" * 64


def of_another_kernel(record: dict[str, Any]) -> None:
    forge_digest(record)
    record["trials"][1]["identity"] = "1" * 64


def forge_claims(record: dict[str, Any], factor: float = 1.5) -> None:
    for claim in record["claims"]:
        claim.update({name: claim[name] * factor for name in ("value", "low", "high")})


def forge_ranges(record: dict[str, Any]) -> None:
    record["values"] = {case: {"goodput_bps": [1.0, 2.0]} for case in record["values"]}


def test_a_bundle_has_its_documents_and_invents_no_author(place: Path) -> None:
    with zipfile.ZipFile(write_artefact(Path("results"), place / "plain.plait.zip")) as archive:
        names = set(archive.namelist())
        assert names >= DOCUMENTS
        assert not names & {"CITATION.cff", ".zenodo.json"}
        assert archive.read("README.md").decode().startswith("# Artefact: One link: \\# \\<b\\>a")
    cited = write_artefact(Path("results"), place / "cited.plait.zip", authors=AUTHOR, licence="CC0-1.0")
    with zipfile.ZipFile(cited) as archive:
        assert set(archive.namelist()) >= {"CITATION.cff", ".zenodo.json"}
        assert "CC0-1.0" in archive.read("LICENCES.md").decode()


def test_equal_folders_give_equal_artefacts(place: Path) -> None:
    write = partial(write_artefact, Path("results"), authors=AUTHOR, licence="MIT")
    assert write(place / "1.plait.zip").read_bytes() == write(place / "2.plait.zip").read_bytes()


@pytest.mark.parametrize(
    ("forge", "file", "options", "code"),
    [
        (lambda _: None, "bundle.json", {}, 0),
        (lambda _: None, "bundle.json", {"claims": True}, 0),
        (forge_digest, "bundle.json", {}, 1),
        (of_another_kernel, "bundle.json", {}, 0),
        (forge_claims, "artefact.json", {}, 0),
        (forge_claims, "artefact.json", {"claims": True}, 1),
        (forge_claims, "artefact.json", {"claim": [1]}, 1),
    ],
)
def test_the_exit_code_says_whether_a_repeat_agrees(
    place: Path, forge: Callable[[dict[str, Any]], object], file: str, options: dict[str, Any], code: int
) -> None:
    assert verify.command(unpacked(place, forge, file), jobs=1, out=place / "again", **options) == code


def test_values_of_another_kernel_outside_their_range_differ(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(place, of_another_kernel)
    record = json.loads((folder / "artefact.json").read_text())
    forge_ranges(record)
    (folder / "artefact.json").write_text(json.dumps(record))
    assert verify.command(folder, jobs=1, out=place / "again") == 1
    assert "other bytes, and goodput_bps is" in capsys.readouterr().out


def test_a_claim_holds_in_the_study_that_it_comes_from(place: Path) -> None:
    study = read_study(place / "results")
    artefact, further = artefact_of(study, None)
    assert (artefact.claims[0].number, further) == (1, 0)
    assert {claim.kind for claim in artefact.claims} >= {"mean"}
    for claim in artefact.claims:
        assert repeated_value(claim, study, None) == pytest.approx(claim.value)
        assert claim.holds(claim.value)
        assert not claim.holds(None)


@pytest.mark.parametrize(
    ("claim", "problem"),
    [
        ({"value": 3}, "not within its tolerance"),
        ({"low": float("inf")}, "finite number"),
        ({"cases": []}, "at least 1 item"),
        ({"kind": "shell"}, "'mean', 'ratio'"),
    ],
)
def test_a_damaged_claim_is_refused(place: Path, claim: dict[str, Any], problem: str) -> None:
    folder = unpacked(place, lambda record: record["claims"][0].update(claim), "artefact.json")
    with pytest.raises(DataError, match=problem):
        check.read_artefact(folder)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"claim": [99]}, "CLAIMS.md lists them"),
        ({"claim": [1], "draw": 3}, "use one or the other"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(place: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        verify.command(unpacked(place), **options)


def test_a_bundle_without_claims_says_who_wrote_it(place: Path) -> None:
    folder = unpacked(place)
    (folder / "artefact.json").unlink()
    with pytest.raises(DataError, match="an earlier plait wrote it"):
        check.read_artefact(folder)


def test_a_result_folder_and_a_pipe_are_no_bundles(place: Path) -> None:
    (place / "folder").mkdir()
    (place / "folder" / "study.json").touch()
    os.mkfifo(place / "pipe")
    with pytest.raises(RequestError, match=r"is a result folder, no bundle; `plait bundle .* writes one"):
        check.read_artefact(place / "folder")
    with pytest.raises(DataError, match="a pipe is no bundle"):
        check.read_artefact(place / "pipe")


def test_a_case_that_the_scenario_lacks_is_refused(place: Path) -> None:
    folder = unpacked(place, lambda record: record["trials"][0].update(case="../../x"))
    with pytest.raises(DataError, match="has no case"):
        verify.command(folder, jobs=1, out=place / "again")
    assert not (place / "again").exists()


def test_a_draw_fits_into_its_minutes_and_repeats(place: Path) -> None:
    trials = bundled(write_artefact(Path("results"))).trials
    slow = [trial.model_copy(update={"wall_s": 20.0}) for trial in trials]
    record = bundled(Path("results.plait.zip")).model_copy(update={"trials": tuple(slow)})
    assert len(check.drawn(record, 7, 5)) == 5
    assert check.drawn(record, 7, 5) == check.drawn(record, 7, 5)
    assert check.drawn(record, 7, 0.1) == check.drawn(record, 7, 5)[:1]
    assert [len(batch) for batch in check.batches(slow)] == [1] * 6


def test_a_batch_leaves_the_trials_of_those_before_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A check in several batches once compared the trials of the last batch alone, and called the others missing."""
    monkeypatch.setattr(check, "batches", lambda chosen: [[trial] for trial in chosen])
    assert verify.command(unpacked(place), jobs=1, draw=1, out=place / "again") == 0
    assert "6 same bytes (6 trials)" in capsys.readouterr().out
    assert sum(1 for _ in (place / "again" / "trials").glob("*/*/provenance.json")) == 6


def test_the_title_of_a_benchmark_names_its_entry(tmp_path: Path) -> None:
    about = {
        "title": "The benchmark plait-mptcp-1",
        "seed": 1,
        "repeat": 6,
        "plait_version": "0.1.0",
        "cases": (),
    }
    study = StudyFile(command="plait benchmark --scheduler blest", **about)
    assert title_of(tmp_path, study) == "The benchmark plait-mptcp-1"
    (tmp_path / "results.json").write_bytes(benchmark_results("blest, cubic", 1.0).as_bytes())
    assert title_of(tmp_path, study) == "blest, cubic in the benchmark plait-mptcp-1, quick"
    mine = study.model_copy(update={"command": "plait run mine.yaml"})
    assert title_of(tmp_path, mine) == "The benchmark plait-mptcp-1"


def test_a_benchmark_is_bundled_with_its_results_only(place: Path) -> None:
    about = json.loads(Path("results/study.json").read_text())
    Path("results/study.json").write_text(json.dumps(about | {"command": "plait benchmark --subset quick"}))
    with pytest.raises(RequestError, match=r"no results\.json.*plait benchmark --subset quick"):
        write_artefact(Path("results"), scenario_folder=place)
    for path in ("client-one", "client-two"):
        (place / "tcp" / path).mkdir(parents=True)
    with pytest.raises(RequestError, match="plait bundle tcp/client-one"):
        write_artefact(Path("tcp"))


def test_claims_survive_their_file(place: Path) -> None:
    artefact, _ = artefact_of(read_study(place / "results"), None)
    assert Artefact.model_validate_json(artefact.model_dump_json(by_alias=True)) == artefact
