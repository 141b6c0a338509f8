"""plait writes, removes and reads nothing outside a stranger's result folder or store."""

from __future__ import annotations

import io
import json
import os
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hostile import go_on, study, use_everywhere

from plait.errors import DataError, PlaitError, RequestError
from plait.files import Folder, UnfitError
from plait.report import build
from plait.report.terminal.summary import show
from plait.results.merge import merge
from plait.study.store import MANIFEST, Store

if TYPE_CHECKING:
    from collections.abc import Iterator

IDENTITY = "ab" * 32
ESCAPES = ("../../../X", "/X", "..", ".", "", "a/b", "a\0b", "a\x1b[2J", "a\nb", "x" * 256)


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder outside, which must stay as it is."""
    folder = tmp_path / "precious"
    (folder / "000").mkdir(parents=True)
    (folder / "file").write_text("mine")
    (folder / "000" / "file").write_text("mine")
    before = sorted((str(path), path.is_file() and path.read_bytes()) for path in folder.rglob("*"))
    yield folder
    assert sorted((str(path), path.is_file() and path.read_bytes()) for path in folder.rglob("*")) == before


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study(tmp_path_factory.mktemp("good") / "study")


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "inside" / "study"))


def changed(folder: Path, **fields: Any) -> None:
    path = folder / "study.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def refused_everywhere(folder: Path, good: Path, tmp_path: Path, but: tuple[str, ...] = ()) -> str:
    """Assert that every verb refuses the folder with plait's error, and return all messages."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    raised = use_everywhere(folder, good, scratch)
    assert {name for name, error in raised.items() if not isinstance(error, PlaitError)} == set(), raised
    expected = {"report", "explain", "export", "compare", "merge", "continue"} - set(but)
    assert expected <= set(raised)
    return "\n".join(map(str, raised.values()))


@pytest.mark.parametrize("name", ESCAPES)
def test_a_case_whose_name_leads_elsewhere_is_refused_before_anything_is_read_or_written(
    name: str, folder: Path, good: Path, tmp_path: Path
) -> None:
    changed(folder, cases=[{"name": name, "settings": {"transport": "tcp"}}])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match=r"study\.json: .*cases\.0\.name.*cannot be the name of a folder"):
        merge(tmp_path / "out", [folder, good])
    with pytest.raises(DataError, match="cannot be the name of a folder"):
        build(folder)
    assert sorted(tmp_path.rglob("*")) == before


def test_two_cases_of_one_name_are_refused(folder: Path) -> None:
    changed(folder, cases=[{"name": "a", "settings": {}}, {"name": "a", "settings": {}}])
    with pytest.raises(DataError, match="two cases have one name"):
        build(folder)


@pytest.mark.parametrize("depth", ["trials", "trials/transport=tcp", "trials/transport=tcp/000"])
def test_links_to_folders_are_neither_read_nor_written_through(
    depth: str, folder: Path, good: Path, tmp_path: Path, precious: Path
) -> None:
    place = folder / depth
    shutil.rmtree(place)
    place.symlink_to(good / depth)  # what it leads to would be a sound study
    before = sorted(good.rglob("*"))
    words = refused_everywhere(folder, good, tmp_path)
    assert "it is a symbolic link, which plait does not follow" in words
    assert sorted(good.rglob("*")) == before


def test_going_on_does_not_remove_what_a_link_leads_to(folder: Path, tmp_path: Path, precious: Path) -> None:
    (folder / "trials" / "zzz").symlink_to(precious)
    with pytest.raises(RequestError, match=r"zzz: it is a symbolic link.*give another --out"):
        go_on(folder, tmp_path)


def test_going_on_removes_trials_of_before_and_nothing_that_is_no_trial(folder: Path, tmp_path: Path) -> None:
    (folder / "trials" / "old" / "007").mkdir(parents=True)
    (folder / "trials" / "mine").mkdir()
    (folder / "trials" / "mine" / "notes.txt").write_text("keep")
    go_on(folder, tmp_path)
    assert not (folder / "trials" / "old").exists()
    assert not (folder / "trials" / "transport=tcp" / "001").exists()  # one repeat was asked for
    assert (folder / "trials" / "mine" / "notes.txt").read_text() == "keep"


def test_a_link_in_place_of_figures_is_not_written_through(folder: Path, precious: Path) -> None:
    shutil.rmtree(folder / "figures")
    (folder / "figures").symlink_to(precious)
    with pytest.raises(DataError, match=r"figures.*symbolic link"):
        build(folder)


@pytest.mark.parametrize("name", ["summary.json", "report.html", "figures/goodput.svg"])
def test_a_link_in_place_of_a_written_file_is_replaced_and_not_followed(
    name: str, folder: Path, precious: Path
) -> None:
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(precious / "file")
    build(folder)
    assert not (folder / name).is_symlink()


def test_study_json_is_not_written_through_a_link(folder: Path, tmp_path: Path, precious: Path) -> None:
    (folder / "study.json").unlink()
    (folder / "study.json").symlink_to(precious / "file")
    with pytest.raises(RequestError, match=r"study\.json: it is a symbolic link"):
        go_on(folder, tmp_path)


def test_a_figure_whose_name_leads_elsewhere_is_refused(folder: Path, tmp_path: Path) -> None:
    asked = [{"name": "../../escaped", "kind": "cases", "metric": "goodput_bps"}]
    changed(folder, scenario={"figures": asked})
    with pytest.raises(DataError, match="leads to another folder"):
        build(folder)
    assert not list(tmp_path.rglob("*escaped*"))


def test_merging_copies_no_file_that_a_link_leads_to(folder: Path, tmp_path: Path, precious: Path) -> None:
    (folder / "trials" / "transport=tcp" / "000" / "logs" / "console.log").symlink_to(precious / "file")
    with pytest.raises(PlaitError, match=r"console\.log: it is a symbolic link"):
        merge(tmp_path / "out", [folder])
    assert not (tmp_path / "out").exists()


def test_control_characters_of_a_stranger_do_not_reach_the_terminal(folder: Path) -> None:
    words = "\x1b]0;owned\x07\x1b[2J\x9b2J"
    changed(
        folder,
        title=words,
        name=words,
        cautions=[{"code": "QUEUE", "message": words, "remedy": words}],
    )
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        show(folder, build(folder))
    shown = out.getvalue() + err.getvalue()
    assert "owned" in shown
    assert not set(shown) & {"\x1b", "\x07", "\x9b"}


@pytest.mark.parametrize(
    "manifest",
    [
        [1, 2],
        None,
        7,
        {"a": 1},
        {"../../precious/file": "00"},
        {"/etc/hostname": "00"},
        {"": "00"},
        {"logs": "00"},
    ],
)
def test_a_store_entry_whose_manifest_is_damaged_or_leads_elsewhere_is_removed(
    manifest: object, tmp_path: Path, precious: Path
) -> None:
    entry = tmp_path / "store" / "ab" / IDENTITY
    (entry / "logs").mkdir(parents=True)
    (entry / MANIFEST).write_text(json.dumps(manifest))
    target = tmp_path / "target"
    target.mkdir()
    assert not Store(tmp_path / "store").fetch(IDENTITY, target)
    assert list(target.iterdir()) == []
    assert not entry.exists()


def test_links_in_the_store_are_removed_and_never_followed(tmp_path: Path, precious: Path) -> None:
    for place in (f"ab/{IDENTITY}", "ab"):
        link = tmp_path / "store" / place
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(precious)
        store = Store(tmp_path / "store")
        assert not store.fetch(IDENTITY, tmp_path)
        source, staging = tmp_path / "source", tmp_path / "staging"
        source.mkdir()
        staging.mkdir()
        (source / "plan.json").write_text("{}")
        store.keep(IDENTITY, source, staging)
        assert not link.is_symlink()
        shutil.rmtree(tmp_path / "store")
        shutil.rmtree(source)


def test_a_folder_gives_no_way_out(tmp_path: Path, precious: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(precious)
    here = Folder(inside)
    for name in ESCAPES:
        with pytest.raises(UnfitError):
            here.read(name)
        with pytest.raises(UnfitError):
            here.write(name, b"x")
        with pytest.raises(UnfitError):
            (here / name).write("file", b"x")
    with pytest.raises(UnfitError, match="symbolic link"):
        (here / "link").write("file", b"x")
    with pytest.raises(UnfitError, match="symbolic link"):
        here.copy(Folder(tmp_path / "copy"))
    here.remove("link")
    os.mkfifo(inside / "fifo")
    with pytest.raises(UnfitError, match="neither a file nor a folder"):
        here.read("fifo")
    (inside / "long").write_bytes(b"12345")
    with pytest.raises(UnfitError, match="more than 4 bytes"):
        here.read("long", most=4)
