"""Whatever a guest leaves in its job folder, the trial is sound or fails with plait's message."""

from __future__ import annotations

import contextlib
import json
import os
import random
from typing import TYPE_CHECKING

import pytest

from fake_engine import write_arrow
from fake_plans import fake_plan
from fake_tables import fake_tables
from plait.dataset.convert import convert
from plait.engine.virtual.containment import GUEST
from plait.engine.virtual.guest_folder import GuestFolder
from plait.engine.virtual.outcome import folder_is_full, judge
from plait.engine.virtual.trial import RESULT_NAMES
from plait.engine.virtual.watch import virtual_us
from plait.errors import DataError, TrialError
from plait.plan.identity import plan_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SLICES, EACH = 8, 40
STATUS = {"ok": True, "phase": "done", "error": None, "virtual_us": 1, "boot_us": 1, "brought": {}}


def job(folder: Path) -> Path:
    """Return a job folder as a sound guest leaves it."""
    guest = folder / GUEST
    for name in ("data", "pcap", "programs"):
        (guest / name).mkdir(parents=True)
    plan = fake_plan()
    (folder / "plan.json").write_bytes(plan_bytes(plan))
    (folder / "console.log").write_text("booted\n")
    (guest / "status.json").write_text(json.dumps(STATUS))
    (guest / "progress").write_text("0 run\n1000000 run\n")
    (guest / "pcap" / "h1-eth0.pcapng").write_bytes(b"\x0a\x0d\x0d\x0a")
    (guest / "programs" / "it.log").write_text("words\n")
    write_arrow(guest / "data", fake_tables(plan))
    return guest


def damage(guest: Path, draw: random.Random) -> None:
    """Do one hostile thing to the folder."""
    files = [path for path in guest.rglob("*") if path.is_file() and not path.is_symlink()]
    path = draw.choice(files)
    kind = draw.choice(
        ["flip", "cut", "grow", "empty", "link", "fifo", "folder", "loop", "name", "value", "gone"]
    )
    content = bytearray(path.read_bytes())
    if kind == "flip" and content:
        for _ in range(draw.randint(1, 20)):
            content[draw.randrange(len(content))] = draw.randrange(256)
        path.write_bytes(content)
    elif kind == "cut":
        path.write_bytes(content[: draw.randrange(len(content) + 1)])
    elif kind == "grow":
        path.write_bytes(content + draw.randbytes(draw.randrange(4000)))
    elif kind == "value":
        words = draw.choice(["null", "[]", "{}", "1e999", '"\\u0000"', "[" * 2000, '{"ok": 3, "phase": []}'])
        with contextlib.suppress(IsADirectoryError):  # another damage was there before
            (guest / draw.choice(["status.json", "progress"])).write_text(words)
    elif kind == "name":
        (path.parent / draw.choice(["\x1b[2J", "a\nb", "-rf", ".hidden", "x" * 255])).write_bytes(content)
    elif kind in {"link", "fifo", "folder", "loop", "gone", "empty"}:
        path.unlink()
        if kind == "link":
            path.symlink_to(draw.choice(["/etc/passwd", "/dev/zero", "../../plan.json", "/"]))
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "loop":
            path.symlink_to(path.name)
        elif kind == "empty":
            path.write_bytes(b"")


def steps(folder: Path, code: int) -> list[Callable[[], object]]:
    """Return all that plait does with a job folder, from its first look to the end."""
    guest = GuestFolder(folder / GUEST)
    return [
        lambda: virtual_us(folder),
        lambda: folder_is_full(folder),
        lambda: judge(folder, code, None),
        lambda: guest.collect(RESULT_NAMES, folder),
        lambda: convert(folder / "data", folder / "result"),
        guest.remove,
    ]


@pytest.mark.parametrize("number", range(SLICES))
def test_a_hostile_job_folder_fails_its_trial_alone(number: int, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    for index in range(EACH):
        draw = random.Random(number * 10_000 + index)
        folder = tmp_path / f"{index}"
        folder.mkdir()
        guest = job(folder)
        for _ in range(draw.randint(1, 4)):
            damage(guest, draw)
        for step in steps(folder, draw.choice([0, 1, 137])):
            with contextlib.suppress(TrialError, DataError):
                step()
        assert not guest.exists()
        kept = [path for name in RESULT_NAMES for path in [folder / name, *(folder / name).rglob("*")]]
        assert not any(path.is_symlink() for path in kept)
    assert list(outside.iterdir()) == []


def test_a_sound_job_folder_is_handed_over_whole(tmp_path: Path) -> None:
    guest = job(tmp_path)
    assert virtual_us(tmp_path) == 1_000_000
    judge(tmp_path, 0, None)
    GuestFolder(guest).collect(RESULT_NAMES, tmp_path)
    assert convert(tmp_path / "data", tmp_path / "result")
    assert (tmp_path / "pcap" / "h1-eth0.pcapng").is_file()
