"""Unpacks what a machine sent through its port of results (`agent/src/machine.rs`), and treats it as hostile."""

from __future__ import annotations

import os
import re
import struct
from typing import TYPE_CHECKING

from plait.engine.machine.qemu import RESULTS
from plait.engine.virtual.containment import MAX_ENTRIES
from plait.engine.virtual.guest_folder import GuestFolder
from plait.errors import TrialError
from plait.files import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HEADER = struct.Struct("<II")
_MAX_PATH = 512
_NAME = re.compile(r"^[A-Za-z0-9_.@:+,=-]{1,200}(/[A-Za-z0-9_.@:+,=-]{1,200}){0,5}$")


def unpack(guest: Path, target: Path, max_bytes: int) -> None:
    """Write the files that the guest sent to the new folder `target`; `guest` is the folder that it wrote to.

    The guest must have ended. Raises TrialError for anything that no intact agent sends.
    """
    target.mkdir()
    content = GuestFolder(guest).read(RESULTS, max_bytes) or b""
    files: dict[str, list[memoryview]] = {}
    for name, part in _frames(memoryview(content)):
        if not _NAME.match(name) or ".." in name.split("/"):
            raise TrialError(f"reading the machine's results: it sent a file with an invalid name: {name!r}")
        files.setdefault(name, []).append(part)
        if len(files) > MAX_ENTRIES:
            raise TrialError(f"reading the machine's results: it sent more than {MAX_ENTRIES} files")
    for name, parts in files.items():
        *folders, last = name.split("/")
        try:
            with os.fdopen(Folder(target, tuple(folders)).new(last), "wb") as file:
                file.writelines(parts)
        except OSError as error:
            raise TrialError(f"reading the machine's results: {name}: {error.strerror}") from error


def _frames(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    """Yield the path and the content of each frame; a machine that ended early has an incomplete last one."""
    position = 0
    while position + _HEADER.size <= len(content):
        path_bytes, part_bytes = _HEADER.unpack_from(content, position)
        start = position + _HEADER.size + path_bytes
        position = start + part_bytes
        if path_bytes == 0 or position > len(content):
            return
        if path_bytes > _MAX_PATH:
            raise TrialError("reading the machine's results: it sent a path that is too long")
        yield str(content[start - path_bytes : start], "utf-8", "replace"), content[start:position]
