"""A trial's folder as bytes, for the way from a worker: a ZIP file, because a library checks and bounds it.

Tables and captures are compressed already. The receiver trusts no name and no size.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

from plait.errors import DataError
from plait.files import MOST_DEPTH, MOST_FILES, Folder

MOST_BYTES = 1 << 32
"""The size limit for all files of a trial."""
_DATE = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path) -> bytes:
    """Return all files in `folder`. Raise OSError, also for links and devices."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for *folders, name in Folder(folder).files():
            info = zipfile.ZipInfo("/".join((*folders, name)), _DATE)
            info.compress_type = (
                zipfile.ZIP_DEFLATED if name.endswith((".json", ".log")) else zipfile.ZIP_STORED
            )
            data = Folder(folder, tuple(folders)).read(name, MOST_BYTES)
            archive.writestr(info, data, compresslevel=1)
    return content.getvalue()


def unpack(content: bytes, target: Path) -> None:
    """Write the packed files into the empty folder `target`.

    Raises DataError for a damaged archive, or one with too much in it, and OSError.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            if len(entries) > MOST_FILES or size > MOST_BYTES:
                raise DataError(
                    f"the result of a worker: {len(entries)} files and {size} bytes are more than a trial may leave"
                )
            for entry in entries:
                *folders, name = entry.filename.split("/")
                if len(folders) > MOST_DEPTH:
                    raise DataError(f"the result of a worker: {entry.filename[:80]!r} is nested too deeply")
                Folder(target, tuple(folders)).write(name, archive.read(entry))
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError) as error:
        raise DataError(f"the result of a worker is damaged: {error}") from error
