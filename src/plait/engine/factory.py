"""Makes the engine that the user selects by its name: one line for each engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module

from plait.engine.engine import Engine
from plait.engine.request import EngineRequest
from plait.engine.support import Feature
from plait.errors import RequestError

ENGINES = {
    "virtual": "plait.engine.virtual.trial",
    "machine": "plait.engine.machine.trial",
    "host": "plait.engine.host.engine",
    "remote": "plait.engine.remote.trial",
}
"""The modules of the engines that the user can select, which `create` them; they are imported at their use."""
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
    engine: Engine = import_module(ENGINES[name]).create(
        replace(request, kernel=kernel) if kernel else request
    )
    return engine


def lacks_of(name: str) -> Mapping[Feature, str]:
    """Return the features that an engine lacks on every machine, and why (see `plait.engine.support`)."""
    module = "plait.engine.remote.support" if name == "remote" else ENGINES[name]
    lacks: Mapping[Feature, str] = import_module(module).LACKS
    return lacks


def engines_with(feature: Feature) -> list[str]:
    """Return the names of the engines that have `feature`; on real hosts (`remote`) links are what they are."""
    return [name for name in ENGINES if name != "remote" and feature not in lacks_of(name)]
