"""The connection to a Dask scheduler: an existing one, a local one, or one whose workers Slurm starts.

All coroutines run on the event loop of `thread`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import os
import re
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from plait.errors import MachineError, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCAL = re.compile(r"local:([1-9][0-9]{0,3})")
_ADDRESS = re.compile(r"(tcp|tls)://[^\s/]+:[0-9]{1,5}")
CONNECT_S = 20
RECONNECT_S = 600
"""How long plait waits for a scheduler that went away."""
_LOOK_S = 0.5
_CLOSE_S = 15
_START = (
    "check that the scheduler runs (`dask scheduler`) and that this machine reaches it; its port is 8786 by default, "
    "and 8787 is that of its dashboard"
)
_START_LOCAL = (
    "its workers are processes that import the program again, so a script of your own must call plait below "
    "`if __name__ == '__main__':`"
)
_INSTALL = "install what clusters need: pip install 'plait[cluster]'"


class DaskConnection:
    """A Dask client that connects again, and the cluster that plait started for it, if any."""

    def __init__(self, where: str, notify: Callable[[str], None]) -> None:
        """Raise RequestError if `where` names no cluster."""
        if where != "slurm" and not _LOCAL.fullmatch(where) and not _ADDRESS.fullmatch(where):
            raise RequestError(
                f"--cluster {where}: write the address of a Dask scheduler (tcp://HOST:PORT), local:N for N workers on "
                "this machine, or slurm"
            )
        self.where = where
        self._notify = notify
        self._client: Any = None
        self._cluster: Any = None
        self.dashboard: str | None = None
        """The address of the dashboard; None if there is none."""

    @property
    def patience_s(self) -> float:
        """How long to wait for a worker; jobs wait in Slurm's queue."""
        return 86400.0 if self.where == "slurm" else 600.0

    def load(self) -> None:
        """Import what the cluster needs. Raise RequestError if it is not installed."""
        _library("distributed", f"--cluster {self.where}: {_INSTALL}")
        if self.where == "slurm":
            _load_jobqueue()

    async def open(self) -> None:
        """Connect, after starting the cluster if plait must; after `load`. Raise RequestError or MachineError."""
        distributed = importlib.import_module("distributed")
        local = _LOCAL.fullmatch(self.where)
        address: Any = self.where
        try:
            if local:
                self._cluster = address = await _local(distributed, int(local[1]))
            elif self.where == "slurm":
                self._cluster = address = await _slurm()
            self._client = await _client(distributed, address, direct=bool(local))
        except (OSError, TimeoutError, RuntimeError) as error:
            await self.close()
            remedy = _START_LOCAL if local else _START
            raise MachineError(
                f"connecting to the cluster {self.where}: {reason(error)}; {remedy}"
            ) from error
        if importlib.util.find_spec("bokeh") is not None:
            self.dashboard = self._client.dashboard_link

    async def client(self) -> Any:
        """Return a connected client; wait for a scheduler that went away. Raise MachineError after RECONNECT_S."""
        until = time.monotonic() + RECONNECT_S
        lost = False
        while True:
            if self._client.status == "running":
                with contextlib.suppress(OSError, TimeoutError):
                    await self._client.scheduler.identity(n_workers=0)
                    return self._client
            elif self._client.status == "closed":
                with contextlib.suppress(OSError, TimeoutError):
                    distributed = importlib.import_module("distributed")
                    self._client = await _client(distributed, self._cluster or self.where)
                    continue
            if not lost:
                lost = True
                self._notify(
                    f"lost the connection to the scheduler {self.where}; waiting up to {RECONNECT_S} s for it"
                )
            if time.monotonic() > until:
                raise MachineError(
                    f"the scheduler {self.where} has been gone for {RECONNECT_S} s; plait keeps finished trials: "
                    "start it, and run again"
                )
            await asyncio.sleep(_LOOK_S)

    async def close(self) -> None:
        """Close the connection, and the cluster that plait started."""
        for closing in (self._client, self._cluster):
            if closing is not None:
                with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                    async with asyncio.timeout(_CLOSE_S):
                        await closing.close()
        self._client = self._cluster = None


async def workers_of(client: Any) -> dict[str, Any]:
    """Return what the scheduler knows of each worker, by address. Raise OSError if it cannot be reached."""
    workers: dict[str, Any] = (await client.scheduler.identity(n_workers=-1))["workers"]
    return workers


def reason(error: BaseException) -> str:
    """Return the first line of an error, or its name."""
    if isinstance(error, TimeoutError) and not str(error):
        return "it did not answer in time"
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__


async def _client(distributed: Any, address: Any, *, direct: bool = False) -> Any:
    """Return a connected client. Raise OSError or TimeoutError."""
    client = distributed.Client(
        address,
        timeout=CONNECT_S,
        set_as_default=False,
        asynchronous=True,
        direct_to_workers=direct,  # elsewhere a firewall may let plait reach the scheduler alone
    )
    try:
        async with asyncio.timeout(2 * CONNECT_S):  # Dask waits for ever for a server of another protocol
            return await client
    except BaseException:
        with contextlib.suppress(OSError, TimeoutError, RuntimeError):
            async with asyncio.timeout(_CLOSE_S):
                await client.close()
        raise


async def _local(distributed: Any, workers: int) -> Any:
    """Start a scheduler in this process, and workers that share the memory of this machine."""
    # Dask gives up a worker that a busy machine restarts in more than 15 s, and starts no other one.
    importlib.import_module("dask").config.set({"distributed.deploy.lost-worker-timeout": "1 d"})
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return await distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        memory_limit=memory // workers,
        dashboard_address="127.0.0.1:0",  # None would mean port 8787 on all interfaces
        asynchronous=True,
    )


async def _slurm() -> Any:
    """Start Dask's workers as jobs of Slurm, as the user has configured dask-jobqueue."""
    jobqueue = importlib.import_module("dask_jobqueue")
    try:
        cluster = await jobqueue.SLURMCluster(asynchronous=True)
    except (TypeError, ValueError) as error:
        raise RequestError(
            f"--cluster slurm: {reason(error)}; set cores, memory and queue in ~/.config/dask/jobqueue.yaml"
        ) from error
    cluster.adapt(minimum=1, maximum=1000)
    return cluster


def _load_jobqueue() -> None:
    """Import dask-jobqueue. Raise RequestError if it is not installed, or if this is not the main thread.

    It sets handlers of signals when it is imported, which would end plait at Ctrl-C without keeping anything.
    """
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        _library(
            "dask_jobqueue",
            "--cluster slurm: it needs dask-jobqueue (pip install dask-jobqueue); or start the workers as jobs "
            "yourself and give the address of their scheduler, or use --shard",
        )
    except ValueError as error:  # Python sets handlers of signals in the main thread alone
        raise RequestError(
            f"--cluster slurm: importing dask-jobqueue: {error}; call plait from the main thread"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in handlers.items():
                signal.signal(number, handler)


def _library(name: str, message: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise RequestError(message) from error
