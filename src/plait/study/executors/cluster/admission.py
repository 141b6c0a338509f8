"""Decides whether a worker of a Dask cluster may run the trials of a study, and prepares it.

A worker must have the same version of plait and the same type of machine. It gets the files that it lacks, runs the
sentinel, and only then gets batches. Dask learns the memory that guests may use there as the resource `plait-memory`,
because Dask's own limit counts the process of the worker alone.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections import defaultdict
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from plait.study.executors.cluster.connection import reason
from plait.study.executors.shipment import Shipment, difference, facts
from plait.study.executors.worker import lacking, prepare, supply
from plait.version import __version__

MEMORY = "plait-memory"
"""The resource that guests use, in MiB."""
WORKER_MIB = 400
"""The memory that a worker's own process needs."""
_UNLIMITED_MIB = 1 << 20
_PREPARE_S = 600
"""How long a worker may take to get the files and to run the sentinel."""


@dataclass(frozen=True)
class _WorkerOffer:
    """The resources of an admitted worker."""

    threads: int
    memory_mib: int
    """The memory for guests."""


class Admission:
    """Prepares workers for a shipment. Files go to each host once."""

    def __init__(self, ship: Shipment) -> None:
        self._ship = ship
        self._hosts: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._sending = asyncio.Lock()
        self._sent: dict[str, Any] = {}

    async def admit(self, client: Any, address: str, info: dict[str, Any]) -> _WorkerOffer | str:
        """Prepare a worker; return what it offers, or why it must not be used.

        `info` is what the scheduler knows of it. Raises OSError, TimeoutError or CancelledError if the worker goes away
        or takes too long.
        """
        terms = _terms(info)
        if isinstance(terms, str):
            return terms
        differs = await self._difference(client, address)
        if differs is not None:
            return differs
        async with asyncio.timeout(_PREPARE_S):
            refusal = await self._supply(client, address)
            if refusal is None:
                refusal = (await _submitted(client, address, prepare, self._ship, {})).refusal
        if refusal is not None:
            return refusal
        await client.run(grant, {MEMORY: float(terms.memory_mib)}, workers=[address])
        return terms

    async def _difference(self, client: Any, address: str) -> str | None:
        """Return how the worker's plait or machine differs; None if it is fit."""
        answer = await _run(client, address, facts)
        if isinstance(answer, tuple):
            return difference(self._ship.facts, answer)
        if isinstance(answer, OSError):
            raise answer
        version = await _run(client, address, importlib.metadata.version, "plait")
        installed = f"its plait {version}" if isinstance(version, str) else "it without plait"
        return f"{installed} cannot run trials of plait {__version__} ({reason(answer)})"

    async def _supply(self, client: Any, address: str) -> str | None:
        """Bring the worker the files that its machine lacks; return why that failed."""
        async with self._hosts[urlsplit(address).hostname or address]:
            missing = await _submitted(client, address, lacking, self._ship)
            for sha256 in missing:
                content = await self._content(client, sha256)
                failure = await _submitted(client, address, supply, self._ship, sha256, content)
                if failure is not None:
                    return str(failure)
        return None

    async def _content(self, client: Any, sha256: str) -> Any:
        """Return the content of a file as data of the cluster, which sends it from worker to worker itself."""
        async with self._sending:
            sent = self._sent.get(sha256)
            if sent is None or sent.client is not client or sent.status != "finished":
                content = await asyncio.to_thread(self._ship.file(sha256).read)
                self._sent[sha256] = await client.scatter(content, hash=False)
            return self._sent[sha256]


async def grant(resources: dict[str, float], dask_worker: Any) -> None:
    """Give the worker that runs this resources."""
    await dask_worker.set_resources(**resources)


def _terms(info: dict[str, Any]) -> _WorkerOffer | str:
    """Return what a worker offers by its own words, or why that is not enough."""
    threads = int(info["nthreads"])
    stated = (info.get("resources") or {}).get(MEMORY)
    if stated is not None:
        return _WorkerOffer(threads, int(stated))
    limit = int(info.get("memory_limit") or 0) >> 20
    if not limit:
        return _WorkerOffer(threads, _UNLIMITED_MIB)
    if limit <= WORKER_MIB:
        return (
            f"its memory limit of {limit} MiB leaves nothing for guests, because its own process needs {WORKER_MIB} "
            'MiB; raise --memory-limit, or state the memory for guests (--resources "plait-memory=4096")'
        )
    return _WorkerOffer(threads, limit - WORKER_MIB)


async def _run(client: Any, address: str, function: Any, *arguments: Any) -> Any:
    """Return what a function returns on a worker, or its exception."""
    answers = await client.run(function, *arguments, workers=[address], on_error="return")
    return answers.get(address, OSError(f"{address} has gone"))


async def _submitted(client: Any, address: str, function: Any, *arguments: Any) -> Any:
    """Return what a function returns in a thread of a worker."""
    future = client.submit(
        function, *arguments, workers=[address], allow_other_workers=False, pure=False, priority=100
    )
    try:
        return await future
    except CancelledError as error:
        raise OSError(f"{address} has gone") from error
    finally:
        future.release()
