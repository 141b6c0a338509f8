"""Makes the engine that the user selects by its name: one line for each engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from plait.engine.engine import Engine
from plait.engine.host import engine as host
from plait.engine.machine import trial as machine
from plait.engine.remote import support as remote_support
from plait.engine.remote import trial as remote
from plait.engine.request import EngineRequest
from plait.engine.support import Feature
from plait.engine.virtual import trial as virtual
from plait.errors import RequestError


@dataclass(frozen=True)
class _EngineKind:
    """An engine that the user can select."""

    create: Callable[[EngineRequest], Engine]
    lacks: Mapping[Feature, str]
    """The features that it lacks on every machine, and why (see `plait.engine.support`)."""


ENGINES: Mapping[str, _EngineKind] = {
    "virtual": _EngineKind(virtual.create, virtual.LACKS),
    "machine": _EngineKind(machine.create, machine.LACKS),
    "host": _EngineKind(host.create, host.LACKS),
    "remote": _EngineKind(remote.create, remote_support.LACKS),
}


_OWN_KERNELS = ("host", "remote")
"""Engines whose hosts have their kernels already."""


def make_engine(name: str = "virtual", request: EngineRequest | None = None) -> Engine:
    """Return the engine called `name`: `virtual`, or `virtual@KERNEL` for a kernel instead of that of the request.

    Raises RequestError for an unknown engine or an unsuitable request, MachineError if the engine cannot run here.
    """
    name, _, kernel = name.partition("@")
    if name not in ENGINES:
        raise RequestError(f"--engine {name}: unknown engine; write one of: {', '.join(ENGINES)}")
    request = request or EngineRequest()
    if kernel and name in _OWN_KERNELS:
        raise RequestError(
            f"the engine {name} runs on the kernels that its hosts have; leave out the kernel {kernel}"
        )
    return ENGINES[name].create(replace(request, kernel=kernel) if kernel else request)


def engines_with(feature: Feature) -> list[str]:
    """Return the names of the engines that have `feature`; on real hosts (`remote`) links are what they are."""
    return [name for name, kind in ENGINES.items() if name != "remote" and feature not in kind.lacks]
