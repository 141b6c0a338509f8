"""A built kernel and its record in the cache. How plait builds kernels is in `build` and `obtain`."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Progress = Callable[[str, float | None], None]
"""Called with each step and its completed fraction (0 to 1; None if unknown)."""

KernelEngine = Literal["virtual", "machine"]
"""The engine that a kernel is built for: User-Mode Linux with plait's changes, or a stock kernel for QEMU."""

SYMBOLS = "symbols"
"""The file with debug information beside a kernel's binary."""


def silent(_step: str, _fraction: float | None) -> None:
    """Report no progress."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that plait built."""

    identity: str
    """A hexadecimal hash of the source, patches and configuration, not of the binary: it is the same on machines with
    different compilers."""
    version: str
    """The version in the source, such as `6.12.117`."""
    binary: Path
    binary_sha256: str
    hz: int
    """Timer ticks per second."""
    label: str | None = None
    """The name that the user gave it, or that of several by which it was found."""
    other_labels: tuple[str, ...] = ()
    engine: KernelEngine = "virtual"

    @property
    def name(self) -> str:
        """The name that selects the kernel: the user's, or the version and the start of the identity."""
        return self.label or f"{self.version}-{self.identity[:8]}"

    @property
    def symbols(self) -> Path | None:
        """The file that a debugger reads; None if the kernel was built without debug information."""
        path = self.binary.parent / SYMBOLS
        return path if path.is_file() else None

    @property
    def executes_memory(self) -> bool:
        """Whether it starts a process from a program in memory (execveat(2)), as User-Mode Linux does since 6.13."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:2]) >= (6, 13)

    @cached_property
    def has_link_devices(self) -> bool:
        """Whether it has the device for links, `plait_link`; kernels that older versions of plait built lack it."""
        try:
            with (
                self.binary.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
            ):
                return content.find(b"plait_link\0") >= 0
        except (OSError, ValueError):  # missing or empty: whoever boots it says so
            return False


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceRecord(_Record):
    """The origin of the source."""

    kind: Literal["given", "installed", "distribution", "kernel.org"]
    name: str
    """Name of the file or folder, without its path."""
    content_sha256: str
    """Hash of the archive; for a source tree, of the names, modes and contents of the used files."""


class BuildRecord(_Record):
    """`build.json`: how plait built the kernel beside it."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    identity: str
    version: str
    hz: int
    recipe_sha256: str
    """Hash of the patches, the configuration and the pinned settings."""
    chosen_by_default: bool
    """Whether `ensure()` without a source returns it."""
    source: SourceRecord
    compiler: str
    binary_sha256: str
    binary_bytes: int
    built_at: str
    """UTC, ISO 8601."""
    build_s: float | None
    """None in the package, so that its bytes do not depend on the machine that made it; `jobs` likewise."""
    jobs: int | None
    label: str | None = None
    """The name that the user gave the kernel last (`--name`)."""
    other_labels: tuple[str, ...] = ()
    """The names that the user gave it before."""
    packaged: bool = False
    """Whether plait unpacked it from the package `plait-kernel`."""
    engine: KernelEngine = "virtual"

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
