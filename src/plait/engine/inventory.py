"""A kernel's features: its algorithms, sysctls and trace events, and which settings it refuses. The kernel reports it.

plait boots a guest to ask each pair of kernel and agent once (some 0.2 s), and keeps the answer in the cache.
`plait.study.preflight.kernel` uses it to refuse a scenario before anything runs.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from plait.bpf.programs import SCHEDULERS
from plait.cache import cache_root
from plait.engine.workspace import working_folder
from plait.errors import MachineError, TrialError
from plait.files import Folder
from plait.parts import Part

Boot = Callable[[Path], None]

REQUEST = "inventory-request.json"
ANSWER = "inventory.json"

Setting = tuple[str, str]
"""(path below /proc/sys, value)."""


class Sysctl(Part):
    """The state of a sysctl in a new namespace."""

    value: str | None
    """Null if the sysctl cannot be read."""
    writable: bool


class _Refusal(Part):
    """A setting that the kernel refused, and the reason that it reported."""

    path: str
    value: str
    why: str


class Inventory(Part):
    """The algorithms, sysctls and trace events of one kernel."""

    congestion_controls: tuple[str, ...]
    schedulers: tuple[str, ...]
    """The packet schedulers of MPTCP."""
    sysctls: dict[str, Sysctl]
    """The sysctls of a namespace, by path below /proc/sys."""
    shared_sysctls: dict[str, Sysctl]
    """The sysctls that all namespaces share."""
    refused: tuple[_Refusal, ...] = ()
    """The refused ones of the settings that plait tried."""
    trace_events: tuple[str, ...] = ()
    """The kernel's trace events, `SYSTEM:EVENT`; empty: it has none."""
    takes_schedulers: bool = False
    """Whether it takes schedulers of MPTCP as BPF programs."""

    def with_programs(self, names: Iterable[str]) -> Inventory:
        """Return the inventory with the algorithms `names`, which plait loads as BPF programs."""
        added = [name for name in names if self.takes_schedulers or name not in SCHEDULERS]
        controls = [*self.congestion_controls, *(name for name in added if name not in SCHEDULERS)]
        schedulers = [*self.schedulers, *(name for name in added if name in SCHEDULERS)]
        update = {
            "congestion_controls": tuple(dict.fromkeys(controls)),
            "schedulers": tuple(dict.fromkeys(schedulers)),
        }
        return self.model_copy(update=update)


def take(identity: str, settings: Iterable[Setting], boot: Boot) -> Inventory:
    """Return the inventory of the kernel and agent called `identity`, from the cache if it has it.

    The guest tries each of `settings` in a new namespace. `boot` runs a guest in the given folder. Raises MachineError
    if the guest fails.
    """
    tried = sorted(set(settings))
    name = sha256(json.dumps([identity, tried]).encode()).hexdigest()
    kept = Folder(cache_root()) / "inventories"
    with contextlib.suppress(OSError, ValidationError):  # missing or damaged: ask the kernel again
        return Inventory.model_validate_json(kept.read(f"{name}.json"))
    answer = ask(tried, boot)
    with contextlib.suppress(OSError):  # without a cache, plait asks again next time
        kept.write(f"{name}.json", answer.model_dump_json().encode())
    return answer


def ask(settings: list[Setting], boot: Boot) -> Inventory:
    """Return the inventory of the kernel of `boot` at this moment (MachineError if `boot` fails)."""
    try:
        with working_folder() as workspace:
            folder = workspace.job()
            Folder(folder).write(REQUEST, json.dumps({"settings": settings}).encode())
            boot(folder)
            return Inventory.model_validate_json(Folder(folder).read(ANSWER))
    except (OSError, ValidationError, TrialError) as error:
        raise MachineError(f"asking the kernel for its algorithms and sysctls: {error}") from error
