"""The user's request to an engine, beside its name: kernel, limits, and permissions on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plait import kernel as kernels
from plait.errors import RequestError
from plait.kernel import Kernel, Progress
from plait.kernel.model import silent
from plait.plan.model.plan import LinksAs

DISK_BYTES = 4 << 30
"""Default limit of what a guest may write to its folder."""


@dataclass(frozen=True)
class Policy:
    """The permissions that the user gives a guest."""

    unconfined: bool = False
    """Untrusted code runs even if layers are missing."""
    disk_bytes: int = DISK_BYTES
    """Limit of what a guest may write to its folder."""
    readable: Sequence[Path] = ()
    """Folders that programs see in addition to what they always see (see `plait.engine.host_view`)."""
    without: Sequence[str] = ()
    """Layers to omit; only tests do so, to show what each layer prevents."""


DEFAULT_POLICY = Policy()


def links_of_environment() -> LinksAs | None:
    """Return what the variable PLAIT_LINKS asks links to be; None without it (RequestError for an unknown word)."""
    asked = os.environ.get("PLAIT_LINKS")
    if asked is None:
        return None
    if asked not in ("chain", "device"):
        raise RequestError(f"PLAIT_LINKS={asked}: links are `chain` or `device`; write one of these words")
    return "device" if asked == "device" else "chain"


@dataclass(frozen=True)
class EngineRequest:
    """The options of all engines; each uses those that concern it."""

    kernel: str | None = None
    """The kernel to use: the name of a built one, a distribution's (`debian:6.12`) or an image; None: the default."""
    modules: Path | None = None
    """The modules of a kernel image; None: all are built in."""
    trial_timeout_s: float = 3600.0
    """Wall time after which the engine ends a trial."""
    policy: Policy = DEFAULT_POLICY
    warn: Callable[[str], None] = lambda _: None
    """The engine calls it with what the user should know, each message once."""
    progress: Progress = silent
    """The engine calls it with the steps of a download."""
    allow_host_settings: bool = False
    """Whether the engine `host` may write settings that all namespaces of this machine share."""
    build: Callable[[], Kernel] = kernels.ensure
    """Returns the default laboratory kernel, built if necessary."""
    hosts: Path | None = None
    """The file that maps nodes to real hosts, for the engine `remote`."""
    ssh_config: Path | None = None
    """A configuration file for ssh instead of the user's own."""
    configure: bool = False
    """Whether the engine may change settings of real hosts as root, which it restores."""
    links: LinksAs | None = field(default_factory=links_of_environment)
    """The form of a link in the engine `virtual`; None: a device if the kernel has it."""
