"""Processes that write a file at the same time leave one of them whole, and nothing else."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

from plait.files import Folder

if TYPE_CHECKING:
    from pathlib import Path

WRITERS, TIMES, BYTES = 4, 60, 200_000


def write(place: Path, letter: bytes) -> None:
    for _ in range(TIMES):
        Folder(place).write("shared", letter * BYTES)


def test_writers_at_once_leave_one_whole_file_and_no_other(tmp_path: Path) -> None:
    letters = [bytes([65 + number]) for number in range(WRITERS)]
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write, args=(tmp_path, letter)) for letter in letters]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        if (tmp_path / "shared").exists():
            content = (tmp_path / "shared").read_bytes()
            assert len(content) == BYTES
            seen.add(content[:1])
            assert content == content[:1] * BYTES
    for writer in writers:
        writer.join(300)
        assert writer.exitcode == 0
    assert seen <= set(letters)
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]
