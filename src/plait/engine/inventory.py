"""What a kernel has: its algorithms, its sysctls, and which of some settings it refuses. Told by the kernel itself.

A guest is booted for it once for each kernel and agent (some 0.2 s), and the answer kept in the cache. Which settings
a scenario may ask for is decided with it, before anything is run (see `plait.study.preflight`).
"""

from __future__ import annotations

import contextlib
import json
from hashlib import sha256
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from plait.cache import cache_root
from plait.engine.workspace import Workspace
from plait.errors import MachineError, TrialError
from plait.files import Folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    Boot = Callable[[Path], None]

REQUEST = "inventory-request.json"
ANSWER = "inventory.json"

Setting = tuple[str, str]
"""(path below /proc/sys, value)."""


class _InventoryRecord(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sysctl(_InventoryRecord):
    """A sysctl as a new namespace shows it."""

    value: str | None
    """Null when it cannot be read."""
    writable: bool


class Refusal(_InventoryRecord):
    """A setting that the kernel did not take, and its words for why."""

    path: str
    value: str
    why: str


class Inventory(_InventoryRecord):
    """What one kernel has."""

    congestion_controls: tuple[str, ...]
    schedulers: tuple[str, ...]
    """Of MPTCP."""
    sysctls: dict[str, Sysctl]
    """By path below /proc/sys: those that every namespace has of its own."""
    shared_sysctls: dict[str, Sysctl]
    """Those that the kernel keeps once for all namespaces."""
    refused: tuple[Refusal, ...] = ()
    """Of the settings that were tried."""


def take(identity: str, settings: Iterable[Setting], boot: Boot) -> Inventory:
    """Returns the inventory of the kernel and agent called `identity`, from the cache if it is there.

    Each of `settings` is tried in a namespace of its own making. `boot` runs a guest in the folder that it is given.
    Raises MachineError when that fails.
    """
    tried = sorted(set(settings))
    name = sha256(json.dumps([identity, tried]).encode()).hexdigest()
    kept = Folder(cache_root()) / "inventories"
    with contextlib.suppress(OSError, ValidationError):  # not there, or damaged: the kernel is asked again
        return Inventory.model_validate_json(kept.read(f"{name}.json"))
    answer = _ask(tried, boot)
    with contextlib.suppress(OSError):  # without a cache it is only asked again next time
        kept.write(f"{name}.json", answer.model_dump_json().encode())
    return answer


def _ask(settings: list[Setting], boot: Boot) -> Inventory:
    try:
        with Workspace(cache_root() / "exec", ".work-") as workspace:
            folder = workspace.job()
            (folder / REQUEST).write_text(json.dumps({"settings": settings}), encoding="utf-8")
            boot(folder)
            return Inventory.model_validate_json(Folder(folder).read(ANSWER))
    except (OSError, ValidationError, TrialError) as error:
        raise MachineError(f"asking the kernel what it has, in a guest booted for that: {error}") from error
