"""The side of the worker: prepare once for a shipment, then carry out batches of trials.

Files that came with a shipment stay below `shipped/` in the worker's cache, by the SHA-256 of their content. A worker
verifies a file each time before it prepares itself. It also uses a file that is at its original path with the same
content, for instance on a shared file system.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import threading
import time
import zlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

from plait.cache import used_folder
from plait.engine.engine import Engine
from plait.engine.recipe import ShippedFile
from plait.engine.workspace import Workspace, working_folder
from plait.errors import PlaitError
from plait.files import Folder
from plait.plan.model.plan import Plan
from plait.study.executors.execution import execute
from plait.study.executors.packed_folder import pack
from plait.study.executors.sentinel import sentinel_digest
from plait.study.executors.shipment import Shipment, difference, facts
from plait.study.executors.task import TrialResult, TrialTask


@dataclass(frozen=True)
class Reply:
    """A worker's answer for a batch: results, or why there are none."""

    worker: str
    missing: tuple[str, ...] = ()
    """The files to send first, by SHA-256."""
    refusal: str | None = None
    """Why the worker must not be used."""
    results: tuple[TrialResult, ...] = ()


@dataclass(frozen=True)
class _Ready:
    """A process that is ready for a shipment."""

    engines: Mapping[str, Engine]
    inputs: Mapping[str, Path]
    work: Workspace


_ready: dict[str, _Ready | Reply] = {}
_MOST_READY = 8
"""How many shipments a process remembers; a cluster's workers serve many studies."""
_works: list[Workspace] = []
"""The folder in which this process runs trials; it ends with the process."""
_lock = threading.Lock()
_never = threading.Event()


def worker_name() -> str:
    """Return the host and the process number of this worker."""
    return f"{platform.node()}:{os.getpid()}"


def prepare(shipment: Shipment, supplied: Mapping[str, bytes]) -> Reply:
    """Prepare this process for a shipment, with the content of files by SHA-256. Run the sentinel."""
    with _lock:
        known = _ready.get(shipment.name)
        if isinstance(known, Reply):
            return known
        if known is not None:
            return Reply(worker_name())
        differs = difference(shipment.facts, facts())
        if differs is not None:
            return Reply(worker_name(), refusal=differs)
        try:
            return _prepare(shipment, supplied)
        except (PlaitError, OSError, ValueError) as error:
            return Reply(worker_name(), refusal=f"preparing it failed: {error}")


def _prepare(shipment: Shipment, supplied: Mapping[str, bytes]) -> Reply:
    for sha256, content in supplied.items():
        keep(shipment.file(sha256), content)
    paths = {file.sha256: path for file in shipment.files if (path := path_of(file)) is not None}
    missing = tuple(file.sha256 for file in shipment.files if file.sha256 not in paths)
    if missing:
        return Reply(worker_name(), missing)
    prune({file.sha256 for file in shipment.files})
    if not _works:
        _works.append(working_folder().__enter__())
    (work,) = _works
    while len(_ready) >= _MOST_READY:
        del _ready[next(iter(_ready))]
    engines = {name: recipe.create(paths) for name, recipe in shipment.recipes.items()}
    plan = Plan.model_validate_json(zlib.decompress(shipment.sentinel))
    for name, engine in engines.items():
        digest = sentinel_digest(engine, plan, work)
        expected = shipment.sentinel_digests[name]
        if digest != expected:
            refused = Reply(
                worker_name(),
                refusal=f"the same trial gave other data there ({digest[:19]}.., and here {expected[:19]}..); "
                "compare its processor and libraries with those of this machine",
            )
            _ready[shipment.name] = refused
            return refused
    _ready[shipment.name] = _Ready(engines, {sha256: paths[sha256] for sha256 in shipment.inputs}, work)
    return Reply(worker_name())


def lacking(shipment: Shipment) -> tuple[str, ...]:
    """Return the files that this machine lacks, by SHA-256."""
    return tuple(file.sha256 for file in shipment.files if path_of(file) is None)


def supply(shipment: Shipment, sha256: str, content: bytes) -> str | None:
    """Keep a file on this machine; return why that failed."""
    try:
        keep(shipment.file(sha256), content)
    except (OSError, ValueError) as error:
        return f"preparing it failed: {error}"
    return None


def carry_out(
    shipment: Shipment, tasks: tuple[TrialTask, ...], supplied: Mapping[str, bytes] | None = None
) -> Reply:
    """Carry out `tasks` one after the other."""
    reply = prepare(shipment, supplied or {})
    if reply.missing or reply.refusal is not None:
        return reply
    with _lock:
        ready = _ready[shipment.name]
    assert isinstance(ready, _Ready)
    results = []
    for task in tasks:
        begun = time.monotonic()
        engine = ready.engines[task.engine]
        result = execute(engine, task, ready.inputs, ready.work, stop=_never)
        folder = result.content
        assert folder is not None
        assert not isinstance(folder, bytes)
        packed = pack(folder)
        shutil.rmtree(folder)
        results.append(replace(result, content=packed, wall_s=time.monotonic() - begun))
    return replace(reply, results=tuple(results))


SHIPPED = "shipped"
MOST_BYTES = 2 << 30
"""How much `prune` keeps beside the files of the running study."""
_IN_USE_S = 86400.0
"""A file that a study used within this time may be in use by another process."""


def path_of(file: ShippedFile) -> Path | None:
    """Return the path of a file with the right content on this machine; None if there is none."""
    kept = used_folder(SHIPPED) / file.sha256[:2] / file.sha256
    for path in (file.origin, kept):
        with contextlib.suppress(OSError):
            if path.stat().st_size == file.size:
                with path.open("rb") as content:
                    if hashlib.file_digest(content, "sha256").hexdigest() == file.sha256:
                        if path is kept:
                            os.utime(path)  # `prune` removes first what nobody has used for long
                        return path
    return None


def keep(file: ShippedFile, content: bytes) -> None:
    """Keep a file in the cache. Raise ValueError if it has another content than it should, and OSError."""
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise ValueError(f"the file {file.origin.name} was damaged on the way to the worker")
    Folder(used_folder(SHIPPED), (file.sha256[:2],)).write(file.sha256, content)
    (used_folder(SHIPPED) / file.sha256[:2] / file.sha256).chmod(0o755)


def prune(in_use: AbstractSet[str], limit: int = MOST_BYTES, now: float | None = None) -> None:
    """Remove the least recently used files, until the unused ones have at most `limit` bytes.

    Keeps the files `in_use`, by SHA-256, and what was used within a day before `now`. Ignores a cache that plait cannot
    read or write.
    """
    last_use = (time.time() if now is None else now) - _IN_USE_S
    root = Folder(used_folder(SHIPPED))
    with contextlib.suppress(OSError):
        files = [(root.path.joinpath(*names), names[-1]) for names in root.files()]
        entries = [(path.stat(), path) for path, name in files if name not in in_use]
        kept_bytes = sum(status.st_size for status, _ in entries)
        for status, path in sorted(entries, key=lambda entry: entry[0].st_mtime):
            if kept_bytes <= limit or status.st_mtime > last_use:
                return
            path.unlink(missing_ok=True)
            kept_bytes -= status.st_size
