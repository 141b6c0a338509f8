"""The fuzzer damages result folders and store entries; each verb must then end, and write nowhere else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl

from plait.cli import app
from plait.study.store import Store
from result_folders import two_paths, write_study

from . import words
from .scenarios import flipped, places, value_at
from .verdict import Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

CASE = "transport=tcp"
REPORT_EVERY = 8
"""A report draws figures, which takes a second: it is tried for one input of so many."""
MOST_S = 10.0
MOST_MB = 1500
"""What a verb may take; the renderer of figures takes most of it."""
IDENTITY = "ab" * 32
CONTENTS = [b"", b"[]", b"null", b"{", b"PAR1" * 3, b"[" * 9000, b"1e999", b'"\\ud800"']
NAMES = ["../../beside/victim", "../../../outside", "/nowhere/x", "..", "a/b", "\x00", "x" * 300]
TYPES = [pl.Int8, pl.Int64, pl.UInt64, pl.Float32, pl.Float64, pl.String, pl.Boolean, pl.Binary, pl.Null]


class Box:
    """A folder with a result folder, a sound one to compare with, a store, and what must never change."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._template = root / "template"
        write_study(self._template, two_paths(), repeat=2)
        self.sound = root / "sound"
        shutil.copytree(self._template, self.sound)
        self.outside = root / "outside"
        (self.outside / "inner").mkdir(parents=True)
        for name in ("victim", "inner/victim"):
            (self.outside / name).write_bytes(b"must stay as it is")
        self._entry = root / "entry"
        store = Store(root / "made")
        (root / "staging").mkdir()
        store.keep(IDENTITY, self._template / "trials" / CASE / "000", root / "staging")

    def judge_study(self, seed: int, number: int) -> Verdict:
        """Damage a result folder, and let every verb read it."""
        random = Random(f"folder {seed} {number}")
        box = self._fresh()
        study, merged = box / "study", box / "merged"
        shutil.copytree(self._template, study)
        for _ in range(random.choice([1, 1, 2, 3])):
            self._damage(random, study)
        verbs: list[Sequence[str]] = [
            ("explain", str(study)),
            ("compare", str(self.sound), str(study)),
            ("compare", str(study), str(self.sound)),
            ("merge", str(merged), str(self.sound), str(study)),
            ("export", str(study), "--case", random.choice([CASE, str(random.choice(words.TEXTS)), "../.."])),
        ]
        if number % REPORT_EVERY == 0:
            verbs.append(("report", str(study)))
        return self._worst([self._judge_verb(box, verb, {study, merged}) for verb in verbs])

    def judge_store(self, seed: int, number: int) -> Verdict:
        """Damage an entry of the store, and fetch it."""
        random = Random(f"store {seed} {number}")
        box = self._fresh()
        shutil.copytree(self._root / "made", box / "store")
        (box / "target").mkdir()
        entry = box / "store" / IDENTITY[:2] / IDENTITY
        for _ in range(random.choice([1, 1, 2])):
            self._damage(random, entry)
        before = self._outside(box, {box / "store", box / "target"})
        verdict = judge(lambda: _fetched(box))
        return self._unchanged(verdict, before, self._outside(box, {box / "store", box / "target"}))

    def _fresh(self) -> Path:
        box = self._root / "box"
        shutil.rmtree(box, ignore_errors=True)
        (box / "beside").mkdir(parents=True)
        (box / "beside" / "victim").write_bytes(b"must stay as it is")
        return box

    def _judge_verb(self, box: Path, verb: Sequence[str], allowed: set[Path]) -> Verdict:
        before = self._outside(box, allowed)
        verdict = judge(lambda: _run(verb), most_s=MOST_S, most_mb=MOST_MB)
        verdict = self._unchanged(verdict, before, self._outside(box, allowed))
        wrong = None if verdict.wrong is None else f"plait {verb[0]}: {verdict.wrong}"
        return Verdict(verdict.refused, wrong, verdict.seconds)

    def _outside(self, box: Path, allowed: set[Path]) -> dict[str, tuple[int, int]]:
        """Return every file that no verb may write: its size, and when it was changed."""
        roots = [self.outside, self.sound, *(path for path in box.iterdir() if path not in allowed)]
        states = {}
        for root in roots:
            for folder, _, files in os.walk(root):
                for name in files:
                    seen = (Path(folder) / name).lstat()
                    states[f"{folder}/{name}"] = (seen.st_size, seen.st_mtime_ns)
        return states

    def _unchanged(self, verdict: Verdict, before: dict[str, Any], after: dict[str, Any]) -> Verdict:
        changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        if not changed:
            return verdict
        return Verdict(verdict.refused, f"it changed {', '.join(changed[:3])}", verdict.seconds)

    @staticmethod
    def _worst(verdicts: list[Verdict]) -> Verdict:
        wrong = next((verdict.wrong for verdict in verdicts if verdict.wrong), None)
        return Verdict(
            any(verdict.refused for verdict in verdicts), wrong, max(verdict.seconds for verdict in verdicts)
        )

    def _damage(self, random: Random, folder: Path) -> None:
        """Damage one file or folder of the result folder once."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        if not paths:
            return
        light = [path for path in paths if path.suffix == ".json"]
        path = random.choice(light if light and random.random() < 0.6 else paths)
        if random.random() < 0.25 and (folder / "study.json").is_file():
            path = folder / "study.json"
        kind = random.randrange(10)
        if kind < 4 and path.suffix == ".json":
            _damage_json(random, path)
        elif kind < 4 and path.suffix == ".parquet":
            _damage_table(random, path)
        elif kind < 6:
            path.write_bytes(flipped(random, path.read_bytes()))
        elif kind < 7:
            path.write_bytes(random.choice(CONTENTS))
        else:
            self._misplace(random, path)

    def _misplace(self, random: Random, path: Path) -> None:
        """Put something else in the place of a file, or of the folder around it."""
        if random.random() < 0.4 and path.parent.name not in ("study", "store"):
            path = path.parent
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        kind = random.randrange(6)
        if kind == 0:
            path.symlink_to(random.choice([self.outside, self.outside / "victim", self.outside / "inner"]))
        elif kind == 1:
            path.mkdir()
        elif kind == 2:
            os.mkfifo(path)
        elif kind == 3:
            path.symlink_to(path)
        elif kind == 4:
            path.symlink_to("/dev/zero")
        if random.random() < 0.3:
            for name in ("summary.json", "report.html", "figures", "trials/zzz"):
                with contextlib.suppress(OSError):
                    (self._root / "box" / "study" / name).symlink_to(self.outside)


def _damage_json(random: Random, path: Path) -> None:
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return
    there = places(tree)
    if not there:
        return
    spot = random.choice(there)
    holder, key = value_at(tree, spot[:-1]), spot[-1]
    kind = random.randrange(5)
    hostile = random.choice(NAMES)
    if kind == 0:
        holder[key] = words.value(random)
    elif kind == 1:
        holder[key] = hostile
    elif kind == 2:
        del holder[key]
    elif kind == 3 and isinstance(holder, dict):
        holder[hostile] = holder.pop(key)
    else:
        holder[key] = value_at(tree, random.choice(there))
    path.write_text(json.dumps(tree), encoding="utf-8")


def _damage_table(random: Random, path: Path) -> None:
    """Damage a table: wrong columns, wrong types, no rows, too many rows, or impossible values."""
    try:
        frame = pl.read_parquet(path)
    except Exception:  # noqa: BLE001 - it is damaged already
        return
    if not frame.columns:
        return
    column = random.choice(frame.columns)
    kind = random.randrange(8)
    if kind == 0:
        frame = frame.drop(column)
    elif kind == 1:
        frame = frame.rename({column: random.choice(["x", "../x", ""])})
    elif kind == 2:
        frame = frame.with_columns(pl.col(column).cast(random.choice(TYPES), strict=False))
    elif kind == 3:
        frame = frame.clear()
    elif kind == 4:
        frame = pl.concat([frame, frame])
    elif kind == 5:
        frame = frame.sample(fraction=1, shuffle=True, seed=random.randrange(99))
    elif frame.schema[column].is_numeric():
        extreme = random.choice([-1, 0, 2**62, -(2**62), None])
        frame = frame.with_columns(pl.lit(extreme).cast(frame.schema[column], strict=False).alias(column))
    else:
        frame = frame.with_columns(pl.lit(random.choice([None, "", "../x", "\x1b[2J"])).alias(column))
    frame.write_parquet(path)


def _run(verb: Sequence[str]) -> int:
    # A verb may write bytes too: the captured output has a buffer below it, as a terminal has.
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        app(list(verb), standalone_mode=False)
    return 1


def _fetched(box: Path) -> int:
    return int(Store(box / "store").fetch(IDENTITY, box / "target"))
