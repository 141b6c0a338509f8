"""Makes the engine that the user selects by its name: one line for each engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module

from plait.engine.engine import Engine
from plait.engine.request import EngineRequest
from plait.engine.support import Feature
from plait.errors import RequestError


@dataclass(frozen=True)
class _EngineKind:
    """An engine that the user can select; its modules, which no other engine needs, are imported at their use."""

    module: str
    support: str | None = None
    """The module that has what it lacks, if that is another one."""

    def create(self, request: EngineRequest) -> Engine:
        """Return the engine (RequestError, MachineError)."""
        engine: Engine = import_module(f"plait.engine.{self.module}").create(request)
        return engine

    @property
    def lacks(self) -> Mapping[Feature, str]:
        """The features that it lacks on every machine, and why (see `plait.engine.support`)."""
        lacks: Mapping[Feature, str] = import_module(f"plait.engine.{self.support or self.module}").LACKS
        return lacks


ENGINES: Mapping[str, _EngineKind] = {
    "virtual": _EngineKind("virtual.trial"),
    "machine": _EngineKind("machine.trial"),
    "host": _EngineKind("host.engine"),
    "remote": _EngineKind("remote.trial", "remote.support"),
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
