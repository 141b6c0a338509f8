"""A bundle repeats its study to the same digests, names every difference, and takes nothing else from a stranger."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import plait
from fake_engine import FakeEngine
from plait.cache import cache_root, unless_used
from plait.cli.shared.bundles import requested_study, show_repeat
from plait.dataset.trial import trial_numbers
from plait.errors import DataError, MachineError, PlaitError, RequestError, ScenarioError
from plait.plan.case_plan import resolve_case
from plait.plan.identity import plan_bytes
from plait.scenario import load, parse
from plait.scenario.read import library
from plait.scenario.vary.cases import expand
from plait.study.bundle.pack import scenario_text, write_bundle
from plait.study.bundle.repeat import is_bundle, open_bundle, repeated_digest
from plait.study.perform import Options, perform
from plait.study.progress import silent
from plait.study.shard import TrialSelection
from plait.version import __version__
from result_folders import fresh_cache

if TYPE_CHECKING:
    from collections.abc import Callable

SCENARIO = """
title: A file over one link
network: {hosts: [a, b], links: {a-b: {trace: {file: data/rate.csv}}}}
traffic: [{transfer: {from: a, to: b, file: data/input.bin}}]
vary: {transport: [tcp, mptcp]}
repeat: 2
seed: 5
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a scenario, its files, and the study `results`; tests change copies of it."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "data").mkdir()
    (folder / "data/input.bin").write_bytes(b"abc" * 1000)
    (folder / "data/rate.csv").write_text("time [s],rate [mbit]\n0,5\n1,10\n")
    (folder / "file.yaml").write_text(SCENARIO)
    with pytest.MonkeyPatch.context() as patch:
        fresh_cache(patch, folder / "cache")
        patch.chdir(folder)
        plait.run("file.yaml", out="results", engine=FakeEngine(), progress=False)
    about = json.loads((folder / "results/study.json").read_text())
    (folder / "results/study.json").write_text(json.dumps(about | {"command": "plait run file.yaml"}))
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of `made`, which is the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    fresh_cache(monkeypatch, tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def repeat(bundle: Path, folder: Path, engine: FakeEngine | None = None) -> list[str]:
    files = folder.with_name(f"{folder.name}-files")
    files.mkdir()
    opened = open_bundle(bundle, files)
    record = opened.record
    plait.run(
        opened.scenario,
        out=folder,
        seed=record.seed,
        repeat=record.repeat,
        engine=engine or FakeEngine(),
        progress=False,
        fresh=True,
    )
    digests = [(trial.digest, repeated_digest(folder, trial)) for trial in record.trials]
    return ["different" if old != new else "same" if new else "failed in both" for old, new in digests]


def changed(bundle: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """Return a copy of a bundle whose members are what `change` returns; None leaves a member out."""
    copy = bundle.with_name("changed.plait.zip")
    with zipfile.ZipFile(bundle) as old, zipfile.ZipFile(copy, "w") as new:
        for name in old.namelist():
            content = change(name, old.read(name))
            if content is not None:
                new.writestr(name, content)
    return copy


def test_a_bundle_repeats_elsewhere_without_the_folders_it_came_from(place: Path) -> None:
    bundle = write_bundle(Path("results"))
    assert bundle.name == "results.plait.zip"
    shutil.rmtree("results")
    shutil.rmtree("data")
    Path("file.yaml").unlink()
    assert repeat(bundle, place / "again") == ["same"] * 4


def test_an_unpacked_bundle_repeats_like_the_archive(place: Path) -> None:
    with zipfile.ZipFile(write_bundle(Path("results"))) as archive:
        archive.extractall(place / "unpacked")
    shutil.rmtree("data")
    assert is_bundle(str(place / "unpacked"))
    assert not is_bundle(str(place))
    assert repeat(place / "unpacked", place / "again") == ["same"] * 4


@pytest.mark.parametrize("change", ["none", "link", "bytes"])
def test_an_unpacked_bundle_without_one_of_its_files_is_refused(place: Path, change: str) -> None:
    unpacked = place / "unpacked"
    with zipfile.ZipFile(write_bundle(Path("results"))) as archive:
        archive.extractall(unpacked)
    member = unpacked / "inputs/0/input.bin"
    content = member.read_bytes()
    member.unlink()
    if change == "link":
        (place / "outside").write_bytes(content)
        member.symlink_to(place / "outside")
    elif change == "bytes":
        member.write_bytes(b"abd" * 1000)
    (place / "files").mkdir()
    problem = {"none": "damaged", "link": "symbolic link", "bytes": "not the file that"}[change]
    with pytest.raises(PlaitError, match=problem):
        open_bundle(unpacked, place / "files")


def test_a_selection_runs_only_its_trials(place: Path) -> None:
    options = Options(seed=5, repeat=2, jobs=1, shard=TrialSelection(frozenset({1, 2})))
    perform(
        load("file.yaml"), "file", lambda _: FakeEngine(), options, folder=place / "part", watch=silent,
        notify=lambda _: None,
    )  # fmt: skip
    assert trial_numbers(place / "part", "transport=mptcp") == [0]
    assert trial_numbers(place / "part", "transport=tcp") == [1]


def test_an_unfinished_study_is_refused_with_the_command_that_finishes_it(place: Path) -> None:
    shutil.rmtree("results/trials/transport=mptcp/001")
    with pytest.raises(RequestError, match=r"1 of its 4 trials have not run.*`plait run file\.yaml`"):
        write_bundle(Path("results"))


def test_equal_folders_give_equal_bytes(place: Path) -> None:
    first = write_bundle(Path("results"), place / "first.plait.zip").read_bytes()
    assert write_bundle(Path("results"), place / "second.plait.zip").read_bytes() == first


def test_the_archive_holds_the_tables_and_the_packages(place: Path) -> None:
    with zipfile.ZipFile(write_bundle(Path("results"))) as archive:
        names = archive.namelist()
        assert "study/trials/transport=tcp/001/flows.parquet" in names
        assert "polars==" in archive.read("packages.txt").decode()
        assert archive.read("inputs/0/input.bin") == b"abc" * 1000


def test_each_trial_with_other_data_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def other(name: str, content: bytes) -> bytes:
        if name != "bundle.json":
            return content
        record = json.loads(content)
        record["trials"][3]["digest"] = "sha256:" + "0" * 64
        return json.dumps(record).encode()

    bundle = changed(write_bundle(Path("results")), other)
    assert repeat(bundle, place / "again") == ["same", "same", "same", "different"]
    with requested_study(str(bundle), (), None, None, verify=True) as requested:
        assert requested.bundle is not None
        assert not show_repeat(str(bundle), requested.bundle, place / "again")
    error = capsys.readouterr().err
    assert "transport=mptcp #1 differs: sha256:0000" in error
    assert "1 of 4 trials differ" in error


def test_what_a_bundle_holds_is_unpacked_where_the_next_plait_removes_what_a_killed_one_left(
    place: Path,
) -> None:
    bundle, present = write_bundle(Path("results")), {path.name for path in cache_root().iterdir()}
    with requested_study(str(bundle), (), None, None, verify=True):
        with unless_used(cache_root()) as unused:
            assert not unused, "`plait store prune` leaves kernels alone"
        assert {path.name for path in cache_root().iterdir()} - present <= {"exec", "used.lock"}


def test_a_bundle_takes_along_no_file_that_only_the_scenario_of_a_stranger_names(place: Path) -> None:
    """Both directions have traces of their own, so no trial depends on the secret."""
    (place / "secret.csv").write_text("time [s],rate [mbit]\n0,7\n1,8\n")
    record = json.loads(Path("results/study.json").read_text())
    link = record["scenario"]["network"]["links"]["a-b"]
    link |= {way: {"trace": link["trace"]} for way in ("forward", "backward")}
    Path("results/study.json").write_text(json.dumps(record))
    assert write_bundle(Path("results"), place / "same.plait.zip").exists()
    record["scenario"]["network"]["links"]["a-b"] |= {"trace": {"file": str(place / "secret.csv")}}
    Path("results/study.json").write_text(json.dumps(record))
    with pytest.raises(RequestError, match=r"no trial used '.*secret\.csv'"):
        write_bundle(Path("results"))
    assert not Path("results.plait.zip").exists()


def test_a_plan_changes_with_the_content_of_each_file_that_a_program_gets(place: Path) -> None:
    """Else plait would keep a trial of the former content, and a stranger need not know what a bundle takes along."""
    text = SCENARIO.replace("vary", "programs: [{node: a, run: 'true', files: {x: {input: x.txt}}}]\nvary")
    Path("with.yaml").write_text(text)
    plans = []
    for content in ("one", "two", "one"):
        Path("x.txt").write_text(content)
        scenario = load("with.yaml")
        plans.append(resolve_case(expand(scenario)[0]).plan(1))
        (wanted,) = plans[-1].programs[0].files
        assert scenario.input_files()[str(wanted.input)] == Path("x.txt").resolve()
    assert plan_bytes(plans[0]) == plan_bytes(plans[2]) != plan_bytes(plans[1])


def test_a_changed_input_file_is_refused_when_the_bundle_is_written(place: Path) -> None:
    Path("data/input.bin").write_bytes(b"abd" * 1000)
    with pytest.raises(RequestError, match="does not give the plan that this trial ran"):
        write_bundle(Path("results"))
    assert not list(place.glob("*.zip"))
    assert not list(place.glob(".bundle-*"))


def test_changed_data_are_refused_when_the_bundle_is_written(place: Path) -> None:
    source = Path("results/trials/transport=mptcp/001/flows.parquet")
    shutil.copy(source, "results/trials/transport=tcp/001/flows.parquet")
    with pytest.raises(DataError, match="data have changed"):
        write_bundle(Path("results"))


def test_nothing_is_overwritten(place: Path) -> None:
    write_bundle(Path("results"))
    with pytest.raises(RequestError, match="it exists"):
        write_bundle(Path("results"))


@pytest.mark.parametrize(
    ("member", "content", "message"),
    [
        ("inputs/0/input.bin", b"abd" * 1000, "not the file that bundle.json describes"),
        ("inputs/0/input.bin", b"abc" * 1001, "not the file that bundle.json describes"),
        ("inputs/0/input.bin", b"abc", "not the file that bundle.json describes"),
        ("inputs/0/input.bin", None, "damaged"),
        ("bundle.json", b"{}", "not the record of a bundle"),
        ("bundle.json", None, "damaged"),
        ("scenario.yaml", b"\xff", "damaged"),
        ("scenario.yaml", b"a" * 3_000_000, "more than"),
    ],
)
def test_a_damaged_bundle_is_refused(place: Path, member: str, content: bytes | None, message: str) -> None:
    bundle = changed(write_bundle(Path("results")), lambda name, old: content if name == member else old)
    (place / "files").mkdir()
    with pytest.raises(DataError, match=message):
        open_bundle(bundle, place / "files")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_bundle_whose_compressed_bytes_are_damaged_is_refused(place: Path, method: int) -> None:
    with zipfile.ZipFile("bad.plait.zip", "w", method) as archive:
        archive.writestr("bundle.json", "{}" * 1000)
    content = bytearray(Path("bad.plait.zip").read_bytes())
    content[30 + len("bundle.json")] = 0xFF
    Path("bad.plait.zip").write_bytes(content)
    with pytest.raises(DataError, match="not a bundle, or a damaged one"):
        open_bundle(Path("bad.plait.zip"), place)


def test_a_bundle_of_a_later_schema_names_the_version_that_reads_it(place: Path) -> None:
    def later(member: str, content: bytes) -> bytes:
        if member != "bundle.json":
            return content
        return json.dumps(json.loads(content) | {"schema": 2, "plait_version": "9.0.0"}).encode()

    (place / "files").mkdir()
    remedy = rf"bundle.json: made by plait 9\.0\.0; this is {re.escape(__version__)}: install that version"
    with pytest.raises(DataError, match=remedy):
        open_bundle(changed(write_bundle(Path("results")), later), place / "files")


def test_a_bundle_reads_no_file_of_the_machine_that_runs_it(place: Path) -> None:
    secret = place / "secret"
    secret.write_bytes(b"secret")
    bundle = changed(
        write_bundle(Path("results")),
        lambda name, old: (
            old.replace(b"data/input.bin", str(secret).encode()) if name == "scenario.yaml" else old
        ),
    )
    (place / "files").mkdir()
    with pytest.raises(ScenarioError, match="the bundle lacks this file"):
        open_bundle(bundle, place / "files")


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "", "a\n"])
def test_a_name_that_leaves_the_folder_is_refused(place: Path, name: str) -> None:
    def hostile(member: str, content: bytes) -> bytes:
        if member != "bundle.json":
            return content
        record = json.loads(content)
        record["inputs"][0]["name"] = name
        return json.dumps(record).encode()

    bundle = changed(write_bundle(Path("results")), hostile)
    (place / "files").mkdir()
    with pytest.raises(DataError, match="cannot be the name of a file"):
        open_bundle(bundle, place / "files")


def test_a_missing_algorithm_is_named_with_the_command_that_adds_it(place: Path) -> None:
    def needs(member: str, content: bytes) -> bytes:
        return (
            json.dumps(json.loads(content) | {"algorithms": ["mine.c"]}).encode()
            if member == "bundle.json"
            else content
        )

    bundle = changed(write_bundle(Path("results")), needs)
    with zipfile.ZipFile(bundle, "a") as archive:
        archive.writestr("algorithms/mine.c", "int x;")
    (place / "files").mkdir()
    with pytest.raises(RequestError, match=r"plait kernel add algorithms/mine\.c"):
        open_bundle(bundle, place / "files")


@pytest.mark.parametrize("name", ["two\nlines.zip", "latin-\udce9.zip"])
def test_a_bundle_whose_name_cannot_be_used_says_so(place: Path, name: str) -> None:
    with pytest.raises(MachineError) as refused:
        write_bundle(Path("results"), place / name)
    assert str(refused.value) == (
        f"writing the bundle {place / name}: {place}: the name {name!r} cannot be used: it contains control "
        "characters, or is not UTF-8; choose another name"
    )


def test_what_is_no_bundle_is_refused(place: Path) -> None:
    with (
        pytest.raises(RequestError, match="only a bundle can be verified"),
        requested_study("two-paths", (), None, None, verify=True),
    ):
        pass
    Path("x.plait.zip").write_text("no archive")
    with (
        pytest.raises(DataError, match="not a bundle"),
        requested_study("x.plait.zip", (), None, None, verify=True),
    ):
        pass
    with (
        pytest.raises(RequestError, match="check the path"),
        requested_study("y.plait.zip", (), None, None, verify=True),
    ):
        pass
    with (
        pytest.raises(RequestError, match="repeats a study as it was"),
        requested_study("x.plait.zip", ("repeat=2",), None, None, verify=True),
    ):
        pass


@pytest.mark.parametrize("name", library.names())
def test_the_scenario_in_a_bundle_gives_the_plans_of_the_file(name: str) -> None:
    scenario = load(name)
    again = parse(scenario_text(scenario), "again").attached(files=scenario.files)
    first, second = expand(scenario), expand(again)
    assert [case.name for case in first] == [case.name for case in second]
    for number in {0, len(first) - 1}:
        plans = [plan_bytes(resolve_case(cases[number]).plan(7)) for cases in (first, second)]
        assert plans[0] == plans[1]
