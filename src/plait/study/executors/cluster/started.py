"""The Dask clusters that plait starts: workers on this machine, or as jobs of Slurm.

Each port that they open asks for the certificate of this run: Dask's protocol with TLS in both directions. Dask's web
pages know no user, so these clusters have none. Each of their processes imports code from the folder in which Dask
works. By default that is a name in /tmp, which another user may have created, so these clusters get a private one.
"""

from __future__ import annotations

import importlib
import logging
import os
from pathlib import Path
from typing import Any

import dask
import distributed

from plait.errors import RequestError
from plait.study.executors.cluster.connection import reason

_JOBS = 1000


class _WithoutPages:
    """A server of Dask that opens no port for web pages, which everyone on this machine could read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **{**options, "dashboard": False})

    def start_http_server(self, *_: object, **__: object) -> None: ...


class _PagelessScheduler(_WithoutPages, distributed.Scheduler):
    """Dask's scheduler without web pages."""


class _PagelessWorker(_WithoutPages, distributed.Worker):
    """Dask's worker without web pages."""


async def local(workers: int, security: distributed.Security, folder: Path) -> Any:
    """Start a scheduler in this process, and workers that share the memory of this machine.

    Dask works in `folder`, which nobody else may write to.
    """
    # Dask gives up a worker that a busy machine restarts in more than 15 s, and starts no other one.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 d"})
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    place = {
        "host": "127.0.0.1",
        "protocol": "tls://",
        "security": security,
        "local_directory": str(folder),
    }
    of_worker = {
        **place,
        "nthreads": 1,
        "silence_logs": logging.WARNING,
        "memory_limit": memory // workers,
        "worker_class": _PagelessWorker,
    }
    return await distributed.SpecCluster(  # type: ignore[no-untyped-call] # Dask has no types for it
        scheduler={"cls": _PagelessScheduler, "options": {**place, "port": 0}},
        workers={number: {"cls": distributed.Nanny, "options": of_worker} for number in range(workers)},
        security=security,
        asynchronous=True,
        silence_logs=logging.WARNING,
    )


def shared_folder() -> Path:
    """Return the folder that the hosts of Slurm's jobs share, as the user has configured dask-jobqueue."""
    configured = dask.config.get("jobqueue.slurm.shared-temp-directory", None)
    return Path(configured) if configured else Path.cwd()


async def slurm(security: distributed.Security, folder: Path) -> Any:
    """Start Dask's workers as jobs of Slurm, as the user has configured dask-jobqueue.

    The jobs read the certificate from a file that only the user can read, in a folder that their hosts share. Dask
    works in `folder` in there, which nobody else may write to, unless the user has configured another for the jobs.
    """
    jobqueue = importlib.import_module("dask_jobqueue")
    options = dask.config.get("jobqueue.slurm.worker-extra-args", None) or []
    of_jobs = dask.config.get("jobqueue.slurm.local-directory", None) or str(folder)
    try:
        cluster = await jobqueue.SLURMCluster(
            asynchronous=True,
            security=security,
            shared_temp_directory=str(shared_folder()),
            local_directory=of_jobs,
            scheduler_cls=_PagelessScheduler,
            scheduler_options={"local_directory": str(folder)},
            worker_extra_args=[*options, "--worker-class", f"{__name__}.{_PagelessWorker.__name__}"],
        )
    except (TypeError, ValueError) as error:
        raise RequestError(
            f"--cluster slurm: {reason(error)}; set cores, memory and queue in ~/.config/dask/jobqueue.yaml"
        ) from error
    cluster.adapt(minimum=1, maximum=_JOBS)
    return cluster
