"""Helpers damage a result folder as a stranger could, and use the folder with every verb."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from typing import TYPE_CHECKING

from fake_engine import FakeEngine
from plait.dataset.study_file import StudyFile
from plait.report import build
from plait.report.terminal.comparison import compare_folders
from plait.report.terminal.explanation import show_explanation
from plait.report.terminal.summary import show
from plait.results.explain import explain_study
from plait.results.export import export_flow
from plait.results.merge import merge
from plait.study.engines import StudyEngines
from plait.study.executors.local import LocalExecutor
from plait.study.runner import run_study
from plait.study.store import Store
from plait.study.study import PlannedStudy
from result_folders import two_paths, write_study

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path


def study(folder: Path, repeat: int = 2) -> Path:
    """Make a result folder with its report, and return it."""
    write_study(folder, two_paths(), repeat=repeat)
    build(folder)
    return folder


def _replaced(content: bytes) -> Callable[[Path, random.Random], None]:
    def damage(path: Path, _: random.Random) -> None:
        path.write_bytes(content)

    return damage


def _cut(path: Path, choose: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: choose.randrange(len(content))])


def _flipped(path: Path, choose: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(choose.choice((1, 1, 1, 8, 64))):
        content[choose.randrange(len(content))] ^= 1 << choose.randrange(8)
    path.write_bytes(content)


def _swapped(path: Path, choose: random.Random) -> None:
    """Put another value in the place of a number or a text, so that the file is still JSON."""
    text = path.read_text(encoding="latin-1")
    places = [i for i, c in enumerate(text) if c.isdigit() or c == '"']
    if places:
        at = choose.choice(places)
        new = choose.choice(("9" * 400, "-1", "1e999", "null", '"', '"x"', "{}", "\\u001b[2J", "..", "/"))
        path.write_text(text[:at] + new + text[at + 1 :], encoding="latin-1")


def _folder(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")


def _fifo(path: Path, _: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path, _: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _removed(path: Path, _: random.Random) -> None:
    path.unlink()


DAMAGES: dict[str, Callable[[Path, random.Random], None]] = {
    "cut": _cut,
    "flipped": _flipped,
    "swapped": _swapped,
    "empty": _replaced(b""),
    "null": _replaced(b"null"),
    "list": _replaced(b"[1, 2]"),
    "numbers": _replaced(b'{"a": 1, "schema": 1e999}'),
    "deep": _replaced(b"[" * 200_000),
    "long": _replaced(b"9" * 5000),
    "zeros": _replaced(bytes(4096)),
    "not text": _replaced(bytes(range(256))),
    "folder": _folder,
    "fifo": _fifo,
    "link": _link,
    "gone": _removed,
}


def use_everywhere(folder: Path, other: Path, scratch: Path) -> dict[str, Exception]:
    """Use a result folder with every verb of plait, and return the error that each raised."""
    raised: dict[str, Exception] = {}

    def attempt(verb: str, do: Callable[[], object]) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                do()
            except Exception as error:  # noqa: BLE001 - the tests look at each
                raised[verb] = error

    attempt("report", lambda: build(folder))
    attempt("show", lambda: show(folder))
    attempt("explain", lambda: show_explanation(explain_study(folder), {}))
    attempt("export", lambda: export_flow(folder, case="transport=tcp"))
    attempt("compare", lambda: compare_folders(other, folder, metrics=("goodput_bps",), tolerance=0.0))
    attempt("merge", lambda: merge(scratch / "merged", [folder, other]))
    attempt("continue", lambda: go_on(folder, scratch))
    shutil.rmtree(scratch / "merged", ignore_errors=True)
    return raised


def go_on(folder: Path, scratch: Path) -> object:
    """Run a study of the same name into the folder, as `plait run` does."""
    from plait.plan.case_plan import resolve_case
    from plait.scenario import load
    from plait.scenario.vary.cases import expand

    asked = PlannedStudy(
        name="two-paths",
        cases=[resolve_case(case) for case in expand(load("two-paths"))],
        seed=1,
        repeat=1,
    )
    about = StudyFile(name="two-paths", command="", seed=1, repeat=1, plait_version="0", cases=())
    return run_study(
        asked,
        folder,
        about,
        lambda _: None,
        engines=StudyEngines.named({"virtual": FakeEngine()}),
        store=Store(scratch / "trials"),
        executor=LocalExecutor(1),
    )
