"""What a built kernel is, and the record that is kept beside it. Knows nothing of how kernels are built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from pathlib import Path

Progress = Callable[[str, float | None], None]
"""Told of each step: what is being done, and how much of it (0 to 1; None when unknown)."""

RECORD_SCHEMA = 1


def silent(_step: str, _fraction: float | None) -> None:
    """The progress of those who do not want to hear of it."""


@dataclass(frozen=True)
class Kernel:
    """A laboratory kernel that can be run."""

    identity: str
    """Hexadecimal. Of what was built (source, patches, configuration), not of the binary: two machines with two
    compilers agree on it."""
    version: str
    """As the source names it: `6.12.117`."""
    binary: Path
    binary_sha256: str
    hz: int
    """Timer ticks per second."""

    @property
    def name(self) -> str:
        """The name by which a person asks for it: the version and the beginning of the identity."""
        return f"{self.version}-{self.identity[:8]}"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceRecord(_Record):
    """Where the source came from."""

    kind: Literal["given", "installed", "distribution", "kernel.org"]
    name: str
    """Name of the file or folder, without the place where it lay."""
    content_sha256: str
    """Of the archive; of a source tree: of the names, modes and contents of the files that were used."""


class BuildRecord(_Record):
    """`build.json`: how the kernel beside it came to be."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    identity: str
    version: str
    hz: int
    recipe_sha256: str
    """Of the patches, the configuration and the pinned settings."""
    chosen_by_default: bool
    """Whether `ensure()` without a source returns it."""
    source: SourceRecord
    compiler: str
    binary_sha256: str
    binary_bytes: int
    built_at: str
    """UTC, ISO 8601."""
    build_s: float
    jobs: int

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
