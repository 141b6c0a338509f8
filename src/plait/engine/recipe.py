"""How an engine gets to another process or machine: a picklable recipe, and files by their content.

The virtual engine sends what it was made from. Any other engine is pickled itself.

Only plait's own pickles are read: `recipe_of` makes them in the process of the study, and they reach a worker inside a
task that the executor itself pickles. Whoever could change them could change that task. plait unpickles no file, no
result of a worker and nothing that a guest or a host has sent.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from plait.engine.engine import Engine
from plait.errors import MachineError, RequestError


@dataclass(frozen=True)
class ShippedFile:
    """A file that a worker needs, by its content."""

    sha256: str
    size: int
    origin: Path
    """Its path on the machine that sends it. A worker that finds the same content there needs no copy."""

    def read(self) -> bytes:
        """Return the content. Raise MachineError if the file has changed or cannot be read."""
        try:
            content = self.origin.read_bytes()
        except OSError as error:
            raise MachineError(f"sending {self.origin} to a worker: {error.strerror}; run again") from error
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise MachineError(
                f"sending {self.origin} to a worker: the file has changed meanwhile; run again"
            )
        return content


class EngineRecipe(Protocol):
    """The data from which another process makes an engine. A recipe can be pickled."""

    @property
    def files(self) -> tuple[ShippedFile, ...]:
        """The files that the engine needs."""

    def create(self, files: Mapping[str, Path]) -> Engine:
        """Return the engine; `files` are the paths of the files by SHA-256."""


@runtime_checkable
class _PortableEngine(Protocol):
    """An engine that other machines can make, too."""

    def recipe(self) -> EngineRecipe:
        """Return what another process needs to make this engine."""


@dataclass(frozen=True)
class _PickledEngine:
    """The recipe of an engine that needs no files."""

    content: bytes

    @property
    def files(self) -> tuple[ShippedFile, ...]:
        """No files."""
        return ()

    def create(self, files: Mapping[str, Path]) -> Engine:  # noqa: ARG002 - it needs none
        """Return a copy of the engine."""
        engine: Engine = pickle.loads(self.content)  # noqa: S301 - from `recipe_of`, see above
        return engine


def shipped_file(path: Path) -> ShippedFile:
    """Return a file to send. Raise MachineError if it cannot be read."""
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return ShippedFile(digest, path.stat().st_size, path)
    except OSError as error:
        raise MachineError(f"reading {path}, which workers need: {error.strerror}") from error


def recipe_of(engine: Engine) -> EngineRecipe:
    """Return the recipe of an engine. Raise RequestError if only this process can use the engine."""
    if isinstance(engine, _PortableEngine):
        return engine.recipe()
    try:
        return _PickledEngine(pickle.dumps(engine))
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise RequestError(
            f"running trials of the engine {engine.name} in other processes: it cannot be pickled "
            f"({error}); give it a method recipe(), or run the study with --jobs"
        ) from error
