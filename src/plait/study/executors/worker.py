"""The side of the worker: prepare once for a shipment, then carry out batches of trials.

`shipped` keeps the files that came with a shipment.
"""

from __future__ import annotations

import os
import platform
import shutil
import threading
import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plait.cache import cache_root
from plait.engine.workspace import Workspace
from plait.errors import PlaitError
from plait.plan.model.plan import Plan
from plait.study.executors.execution import execute
from plait.study.executors.parcel import pack
from plait.study.executors.sentinel import sentinel_digest
from plait.study.executors.shipment import facts
from plait.study.executors.shipped import keep, path_of, prune

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plait.engine.engine import Engine
    from plait.study.executors.shipment import Shipment
    from plait.study.executors.task import TrialResult, TrialTask


@dataclass(frozen=True)
class Readiness:
    """Whether a worker can run the trials of a shipment."""

    worker: str
    missing: tuple[str, ...] = ()
    """The files to send first, by SHA-256."""
    refusal: str | None = None
    """Why the worker must not be used."""


@dataclass(frozen=True)
class Reply:
    """What a worker returns for a batch: results, or why there are none."""

    readiness: Readiness
    results: tuple[TrialResult, ...] = ()


@dataclass(frozen=True)
class _Ready:
    """A process that is ready for a shipment."""

    engines: Mapping[str, Engine]
    inputs: Mapping[str, Path]
    work: Workspace


_ready: dict[str, _Ready | Readiness] = {}
_MOST_READY = 8
"""How many shipments a process remembers; a cluster's workers serve many studies."""
_works: list[Workspace] = []
"""The folder in which this process runs trials; it ends with the process."""
_lock = threading.Lock()
_never = threading.Event()


def worker_name() -> str:
    """Return the host and the process number of this worker."""
    return f"{platform.node()}:{os.getpid()}"


def prepare(shipment: Shipment, supplied: Mapping[str, bytes]) -> Readiness:
    """Prepare this process for a shipment, with the content of files by SHA-256. Run the sentinel."""
    with _lock:
        known = _ready.get(shipment.name)
        if isinstance(known, Readiness):
            return known
        if known is not None:
            return Readiness(worker_name())
        difference = shipment.facts.difference(facts())
        if difference is not None:
            return Readiness(worker_name(), refusal=difference)
        try:
            return _prepare(shipment, supplied)
        except (PlaitError, OSError, ValueError) as error:
            return Readiness(worker_name(), refusal=f"preparing it failed: {error}")


def _prepare(shipment: Shipment, supplied: Mapping[str, bytes]) -> Readiness:
    for sha256, content in supplied.items():
        keep(shipment.file(sha256), content)
    paths = {file.sha256: path for file in shipment.files if (path := path_of(file)) is not None}
    missing = tuple(file.sha256 for file in shipment.files if file.sha256 not in paths)
    if missing:
        return Readiness(worker_name(), missing)
    prune({file.sha256 for file in shipment.files})
    if not _works:
        _works.append(Workspace(cache_root() / "exec", ".work-").__enter__())
    (work,) = _works
    while len(_ready) >= _MOST_READY:
        del _ready[next(iter(_ready))]
    engines = {name: recipe.create(paths) for name, recipe in shipment.recipes.items()}
    plan = Plan.model_validate_json(zlib.decompress(shipment.sentinel))
    for name, engine in engines.items():
        digest = sentinel_digest(engine, plan, work)
        expected = shipment.sentinel_digests[name]
        if digest != expected:
            refused = Readiness(
                worker_name(),
                refusal=f"the same trial gave other data there ({digest[:19]}.., and here {expected[:19]}..); "
                "compare its processor and libraries with those of this machine",
            )
            _ready[shipment.name] = refused
            return refused
    _ready[shipment.name] = _Ready(engines, {sha256: paths[sha256] for sha256 in shipment.inputs}, work)
    return Readiness(worker_name())


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
    readiness = prepare(shipment, supplied or {})
    if readiness.missing or readiness.refusal is not None:
        return Reply(readiness)
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
        results.append(
            replace(result, content=packed, wall_s=time.monotonic() - begun, worker=readiness.worker)
        )
    return Reply(readiness, tuple(results))
