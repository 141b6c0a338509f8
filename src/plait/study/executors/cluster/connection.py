"""The connection to a Dask scheduler: an existing one, a local one, or one whose workers Slurm starts.

All coroutines run on the event loop of `thread`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from plait.cache import cache_root
from plait.engine.workspace import Workspace
from plait.errors import MachineError, RequestError

_LOCAL = re.compile(r"local:([1-9][0-9]{0,3})")
_ADDRESS = re.compile(r"(?P<protocol>tcp|tls)://[^\s/]+:[0-9]{1,5}")
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
_CERTIFICATES = (
    "name the certificates of the cluster: DASK_DISTRIBUTED__COMM__TLS__CA_FILE=ca.pem, "
    "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT=me.pem and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY=me-key.pem"
)


class DaskConnection:
    """A Dask client that connects again, and the cluster that plait started for it, if any."""

    def __init__(self, cluster: str, notify: Callable[[str], None], *, insecure: bool = False) -> None:
        """Raise RequestError if `cluster` names no cluster, or one that needs `insecure`."""
        address = _ADDRESS.fullmatch(cluster)
        if cluster != "slurm" and not _LOCAL.fullmatch(cluster) and address is None:
            raise RequestError(
                f"--cluster {cluster}: write the address of a Dask scheduler (tls://HOST:PORT), local:N for N workers "
                "on this machine, or slurm"
            )
        without_tls = address is not None and address["protocol"] == "tcp"
        if without_tls and not insecure:
            raise RequestError(
                f"--cluster {cluster}: a Dask cluster without TLS lets everyone who reaches its ports run code as you, "
                "on this machine as well; start it with certificates and write tls://HOST:PORT "
                "(docs/how-to/clusters.md), or add --insecure (in Python insecure=True) if only you reach these ports"
            )
        if insecure and not without_tls:
            raise RequestError(f"--insecure with --cluster {cluster}: this cluster has TLS; omit --insecure")
        self.cluster = cluster
        self._notify = notify
        self._client: Any = None
        self._cluster: Any = None
        self._folder: Workspace | None = None
        """Where the cluster that plait started works."""
        self._security: Any = None
        """The certificates that connect plait to the cluster; None without TLS."""
        self.dashboard: str | None = None
        """The address of the dashboard; None if there is none. A cluster that plait starts has none."""

    @property
    def patience_s(self) -> float:
        """How long to wait for a worker; jobs wait in Slurm's queue."""
        return 86400.0 if self.cluster == "slurm" else 600.0

    def load(self) -> None:
        """Import what the cluster needs. Raise RequestError if it is not installed or if certificates are missing."""
        distributed = _library("distributed", f"--cluster {self.cluster}: {_INSTALL}")
        if self.cluster == "slurm":
            _load_jobqueue()
        if self.cluster.startswith("tls:"):
            self._security = _own_certificates(distributed, self.cluster)
        elif not self.cluster.startswith("tcp:"):
            _library("cryptography", f"--cluster {self.cluster}: {_INSTALL}")
            self._security = distributed.Security.temporary()

    async def open(self) -> None:
        """Connect, after starting the cluster if plait must; after `load`. Raise RequestError or MachineError."""
        local = _LOCAL.fullmatch(self.cluster)
        try:
            if local:
                folder = self._private_folder(cache_root() / "dask", ".work-")
                self._cluster = await _started().local(int(local[1]), self._security, folder)
            elif self.cluster == "slurm":
                folder = self._private_folder(_started().shared_folder(), ".plait-dask-")
                self._cluster = await _started().slurm(self._security, folder)
            self._client = await self._connect(direct=bool(local))
        except (OSError, TimeoutError, RuntimeError) as error:
            await self.close()
            remedy = _START_LOCAL if local else _START
            raise MachineError(
                f"connecting to the cluster {self.cluster}: {reason(error)}; {remedy}"
            ) from error
        if self._cluster is None and importlib.util.find_spec("bokeh") is not None:
            self.dashboard = self._client.dashboard_link

    async def client(self) -> Any:
        """Return a connected client; wait for a scheduler that went away. Raise MachineError after RECONNECT_S."""
        deadline = time.monotonic() + RECONNECT_S
        lost = False
        while True:
            if self._client.status == "running":
                with contextlib.suppress(OSError, TimeoutError):
                    await self._client.scheduler.identity(n_workers=0)
                    return self._client
            elif self._client.status == "closed":
                with contextlib.suppress(OSError, TimeoutError):
                    self._client = await self._connect()
                    continue
            if not lost:
                lost = True
                self._notify(
                    f"lost the connection to the scheduler {self.cluster}; waiting up to {RECONNECT_S} s for it"
                )
            if time.monotonic() > deadline:
                raise MachineError(
                    f"the scheduler {self.cluster} has been gone for {RECONNECT_S} s; plait keeps finished trials: "
                    "start it, and run again"
                )
            await asyncio.sleep(_LOOK_S)

    async def _connect(self, *, direct: bool = False) -> Any:
        """Return a connected client. Raise OSError or TimeoutError."""
        client = importlib.import_module("distributed").Client(
            self._cluster or self.cluster,
            timeout=CONNECT_S,
            set_as_default=False,
            asynchronous=True,
            security=self._security,
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

    async def close(self) -> None:
        """Close the connection, and the cluster that plait started."""
        for closing in (self._client, self._cluster):
            if closing is not None:
                with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                    async with asyncio.timeout(_CLOSE_S):
                        await closing.close()
        self._client = self._cluster = None
        if self._folder is not None:
            self._folder.__exit__()
            self._folder = None

    def _private_folder(self, parent: Path, prefix: str) -> Path:
        """Create a folder that exists until `close`, or until this process ends (MachineError)."""
        self._folder = Workspace(parent, prefix).__enter__()
        return self._folder.path


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


def _started() -> Any:
    """Return the module of the clusters that plait starts, which needs Dask."""
    return importlib.import_module("plait.study.executors.cluster.started")


def _own_certificates(distributed: Any, address: str) -> Any:
    """Return the user's certificates as Dask's configuration names them (RequestError)."""
    security = distributed.Security(require_encryption=True)
    named = security.get_tls_config_for_role("client")
    if not named["ca_file"] or not named["cert"]:
        raise RequestError(f"--cluster {address}: no certificate is configured; {_CERTIFICATES}")
    try:
        security.get_connection_args("client")
    except OSError as error:
        files = ", ".join(str(named[part]) for part in ("ca_file", "cert", "key") if named[part])
        raise RequestError(
            f"--cluster {address}: reading the certificates {files}: {reason(error)}; {_CERTIFICATES}"
        ) from error
    return security


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
