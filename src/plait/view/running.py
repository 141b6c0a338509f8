"""The running study, if any, and the goodput of its running trials so far.

A running trial's guest writes below `.work-*/NNNNN/guest/`, which is untrusted. It is read only through
`plait.engine.virtual.guest_folder`, a bounded number of bytes, and only as plain, uncompressed Arrow streams.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from plait.dataset.arrow_stream import complete_part
from plait.dataset.files import READ_ERRORS, check_columns
from plait.dataset.trial import RUNNING_TRIAL, TrialName
from plait.engine.virtual.containment import GUEST
from plait.engine.virtual.guest_folder import GuestFolder
from plait.errors import PlaitError
from plait.files import Folder, UnfitError
from plait.view.encode import rounded

MOST_RUNNING = 8
"""Running trials that are shown."""
MOST_BYTES = 8 << 20
"""The largest table of a running trial that plait reads; beyond it, the goodput appears when the trial ends."""
POINTS = 80
_IN_MEMORY = re.compile(r"/proc/[0-9]+/fd/[0-9]+")
"""The target of the link that `GuestFolder.mount` makes."""


def is_running(folder: Path) -> bool:
    """Return whether a plait process is running trials into this result folder."""
    return any(True for _ in _work_folders(folder))


def running_trials(folder: Path, cases: Sequence[str]) -> list[dict[str, Any]]:
    """Return the trials that run now: case and number, virtual time, and goodput over time as far as it is known."""
    views: list[dict[str, Any]] = []
    for work in _work_folders(folder):
        for name in Folder(work).names():
            job = Folder(work) / name
            if (
                len(views) < MOST_RUNNING
                and name.isdigit()
                and (view := _running_trial(job, cases)) is not None
            ):
                views.append(view)
    return views


def _work_folders(folder: Path) -> list[Path]:
    """Return the working folders in use: their processes hold a lock on them."""
    used = []
    for name in Folder(folder).names():
        if not name.startswith(".work-"):
            continue
        try:
            descriptor = os.open(folder / name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # a link, removed meanwhile, or of another user
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            used.append(folder / name)
        finally:
            os.close(descriptor)
    return used


def _running_trial(job: Folder, cases: Sequence[str]) -> dict[str, Any] | None:
    """Return one running trial; None if the folder is of none, or of none that can be shown."""
    try:
        if not _is_of_guest(job.path / GUEST):
            return None
        trial = TrialName.model_validate_json(job.read(RUNNING_TRIAL, 1 << 16))
        case = cases.index(trial.case)
        guest = GuestFolder(job.path / GUEST)
        advanced = guest.tail("progress", 4096).splitlines()
        stream = guest.read("data/connections.arrow", MOST_BYTES)
    except (OSError, ValueError, PlaitError):
        return None
    return {
        "case": case,
        "number": trial.number,
        "seconds": _seconds(advanced[-1]) if advanced else None,
        "goodput": _goodput(stream, job.path) if stream else [],
    }


def _is_of_guest(folder: Path) -> bool:
    """Return whether `folder` is a folder, or a link to the file system in memory of a guest and nowhere else."""
    return not folder.is_symlink() or _IN_MEMORY.fullmatch(str(folder.readlink())) is not None


def _seconds(line: bytes) -> float | int | None:
    """Return the virtual time in a line of the agent's progress, in seconds."""
    number = line.split()[:1]
    return rounded(int(number[0]) / 1e6) if number and number[0].isdigit() and len(number[0]) < 19 else None


def _goodput(stream: bytes, path: Path) -> list[list[list[float | int | None]]]:
    """Return the goodput of each flow as columns of seconds and bit/s; empty while nothing can be read."""
    try:
        frame = pl.read_ipc_stream(complete_part(stream))
        check_columns(frame.schema, "connections", path)
    except (*READ_ERRORS, PlaitError, UnfitError):
        return []
    rows = frame.select("t_us", "flow", "side", "received_bytes").drop_nulls()
    lines = []
    for _, part in sorted(rows.partition_by("flow", as_dict=True).items())[:8]:
        received = part.group_by("side").agg(pl.col("received_bytes").max()).sort("received_bytes")
        side = received["side"][-1]
        levels = part.filter(pl.col("side") == side).sort("t_us")
        step = max(1, len(levels) // POINTS)
        thin = levels.gather_every(step)
        rates = thin.with_columns(
            (pl.col("received_bytes").diff() * 8e6 / pl.col("t_us").diff()).alias("bps")
        ).drop_nulls()
        lines.append(
            [
                [rounded(t / 1e6) for t in rates["t_us"].to_list()],
                [rounded(value) for value in rates["bps"].to_list()],
            ]
        )
    return lines
