"""Writes files whole or not at all, removes folders, and judges names, for `plait.files`, which holds folders open."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from hashlib import blake2s
from typing import BinaryIO

NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that create a file and never open an entry that exists, be it a link."""
_WAIT_S = 0.001
_ATTEMPTS_OF_A_WRITER = 100
"""The number of waits after which plait takes the writer that holds the temporary name for a killed one."""
_MOST_ATTEMPTS = 10_000


@contextlib.contextmanager
def whole_file(folder: int, name: str, *, keep: bool) -> Iterator[BinaryIO]:
    """Yield a file to write, which gets its name in `folder` when the block ends (see `Folder.create`)."""
    with _nameless(folder) as (file, temporary):
        yield file
        file.flush()
        _give_name(folder, file, temporary, name, keep=keep)


@contextlib.contextmanager
def _nameless(folder: int) -> Iterator[tuple[BinaryIO, str | None]]:
    """Yield a new unnamed file, which disappears if the process is killed, and None.

    In a file system without unnamed files (O_TMPFILE) the file has a temporary name, which is the second value.
    """
    temporary = None
    try:
        descriptor = os.open(".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno not in {errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL}:
            raise
        temporary = f".{os.urandom(8).hex()}.new"
        descriptor = os.open(temporary, NEW, 0o666, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file, temporary
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):  # it has its name by now
                os.unlink(temporary, dir_fd=folder)


def _give_name(folder: int, file: BinaryIO, temporary: str | None, name: str, *, keep: bool) -> None:
    """Give the file its name. An entry of this name is replaced, or raises FileExistsError with `keep`."""
    if temporary is not None:
        if keep:
            os.close(os.open(name, NEW, 0o666, dir_fd=folder))  # claims the name
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    unnamed = f"/proc/self/fd/{file.fileno()}"
    try:
        os.link(unnamed, name, dst_dir_fd=folder)
    except FileExistsError:
        if keep:
            raise
    else:
        return
    # Only a rename replaces an entry atomically, and it needs a name. This one depends on `name` alone, so that the
    # next writer removes what a killed one left. A living writer holds the name for microseconds: so wait for it first,
    # and begin again if it was not so fast, and its name is gone.
    between = f".{blake2s(os.fsencode(name), digest_size=8).hexdigest()}.new"
    for attempt in range(1, _MOST_ATTEMPTS + 1):
        try:
            os.link(unnamed, between, dst_dir_fd=folder)
        except FileExistsError:
            time.sleep(_WAIT_S)
            if attempt % _ATTEMPTS_OF_A_WRITER == 0:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(between, dir_fd=folder)
            continue
        try:
            os.replace(between, name, src_dir_fd=folder, dst_dir_fd=folder)
        except FileNotFoundError:
            continue
        except OSError:
            os.unlink(between, dir_fd=folder)
            raise
        return
    raise OSError(errno.EBUSY, "other processes keep writing this file")


def remove_tree(folder: int, name: str) -> None:
    """Remove the folder `name` in `folder` with its content, following no link. Raise OSError."""
    try:
        shutil.rmtree(name, dir_fd=folder)
    except RecursionError as error:
        command = ["rm", "-rf", "--", name]  # at any depth
        place = f"/proc/self/fd/{folder}"
        if subprocess.run(command, cwd=place, stderr=subprocess.DEVNULL, check=False).returncode != 0:
            raise OSError(errno.ELOOP, "its folders are nested too deeply", name) from error


def wrong_name(name: str) -> str | None:
    """Return why `name` cannot name a file in a folder; None if it can."""
    if name in {"", ".", ".."}:
        return "it does not name a file"
    if "/" in name:
        return "it contains a slash, and so leads to another folder"
    if not name.isprintable():
        return "it contains control characters, or is not UTF-8"
    if len(name.encode(errors="replace")) > 255:
        return "it is longer than 255 bytes"
    return None
