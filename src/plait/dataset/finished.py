"""The index of a result folder: which trials it has, so that a study that continues opens no file of them.

`finished.jsonl` has a line for each trial: its case, number and identity, and a mark of its files (their names, sizes
and times of change). A trial without a line, with another identity or with another mark counts as missing. A kill
between a trial and its line costs only the use of the index for this trial.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from plait.dataset.trial import trial_folder
from plait.files import Folder, json_of

INDEX = "finished.jsonl"
_SPARE_LINES = 1000


class FinishedTrials:
    """The completed trials of the result folder `out`."""

    def __init__(self, out: Path) -> None:
        """Read the index; a missing or damaged one is empty. Raise OSError if it cannot be written."""
        self._out = out
        self._known: dict[tuple[str, int], tuple[str, str]] = {}
        lines: list[bytes] = []
        with contextlib.suppress(OSError):
            lines = Folder(out).read(INDEX).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, LookupError, TypeError):
                record = json_of(line)
                self._known[str(record["case"]), int(record["trial"])] = (
                    str(record["identity"]),
                    str(record["mark"]),
                )
        if len(lines) > 4 * len(self._known) + _SPARE_LINES:
            Folder(out).write(INDEX, b"".join(_line(*key, *value) for key, value in self._known.items()))

    def has(self, case: str, number: int, identity: str) -> bool:
        """Return whether the folder has this trial as it was when it was added."""
        known = self._known.get((case, number))
        return known is not None and known == (identity, self._mark(case, number))

    def add(self, case: str, number: int, identity: str) -> None:
        """Record that the folder has a trial now. Raise OSError."""
        mark = self._mark(case, number)
        self._known[case, number] = identity, mark
        Folder(self._out).append(INDEX, _line(case, number, identity, mark))

    def _mark(self, case: str, number: int) -> str:
        """Return a hash of what the file system says of the trial's files; empty without a folder."""
        folder = trial_folder(self._out, case, number)
        files: list[Any] = []
        try:
            with os.scandir(folder.path) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        files.append([entry.name, status.st_size, status.st_mtime_ns])
        except OSError:
            return ""
        return hashlib.sha256(json.dumps(sorted(files)).encode()).hexdigest()[:32]


def _line(case: str, number: int, identity: str, mark: str) -> bytes:
    """Return a line; it begins with a line feed, because a kill may have cut the last one."""
    record = {"case": case, "trial": number, "identity": identity, "mark": mark}
    return b"\n" + json.dumps(record).encode()
