"""Settings that this machine has once for all namespaces: compared with those of a plan, and written only on request.

plait restores what it wrote, also after `kill -9` (`plait.janitor`). Two plaits cannot write settings at once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from plait.errors import MachineError
from plait.janitor import locked_for_all, undone_by
from plait.plan.model.plan import Plan
from plait.plan.network.sysctls import ALLOWED_CONGESTION_CONTROL

_PROC = Path("/proc/sys")
_PAGE = 4096
_TCP_MEMORY = "net/ipv4/tcp_mem"
_MINIMA = ("net/core/rmem_max", "net/core/wmem_max", "net/ipv4/neigh/default/gc_thresh3")
"""Limits that must be at least those of the plan. Others affect only networks that are larger, or show in counters."""
_NEIGHBOURS = 1024
"""The kernel's default of gc_thresh3; a smaller network never reaches it."""
# The arguments are pairs of a file and its previous content.
_RESTORING = """
while [ $# -gt 1 ]; do
    printf '%s\\n' "$2" > "$1"
    shift 2
done
"""


@dataclass(frozen=True)
class Difference:
    """A setting of the plan that this machine does not meet."""

    path: str
    planned: str
    present: str | None
    """None: this kernel has no such setting."""
    needed: str
    """The value to write."""

    @property
    def name(self) -> str:
        """The name for `sysctl`."""
        return self.path.replace("/", ".")

    def __str__(self) -> str:
        return f"{self.name} is {self.present!r}, and this study needs {self.needed!r}"


def differences(plan: Plan, coming: Collection[str] = ()) -> list[Difference]:
    """Return the settings of the plan that this machine does not meet and that matter for the plan.

    `coming`: congestion controls that plait loads for each trial, open to every user.
    """
    unmet = []
    for path, planned in plan.machine.sysctls:
        present = _read(path)
        needed = _needed(plan, path, planned, present, coming)
        if needed is not None:
            unmet.append(Difference(path, planned, present, needed))
    return unmet


def _needed(plan: Plan, path: str, planned: str, present: str | None, coming: Collection[str]) -> str | None:
    """Return the value that the setting needs; None if the present one suffices."""
    if path == ALLOWED_CONGESTION_CONTROL:
        allowed = (present or "").split()
        missing = [name for name in planned.split() if name not in (*allowed, *coming)]
        return " ".join([*allowed, *missing]) if missing else None
    if path == _TCP_MEMORY:
        pages = plan.machine.memory_mib * 2**20 // _PAGE
        is_default = planned == f"{pages // 4} {pages * 3 // 8} {pages // 2}"
        if is_default:  # ample memory, which no flow reaches: this machine decides
            return None
        return planned if (present or "").split() != planned.split() else None
    if path in _MINIMA:
        planned_least = int(planned)
        if path.endswith("gc_thresh3") and _neighbours(plan) < _NEIGHBOURS:
            planned_least = _NEIGHBOURS
        return str(planned_least) if present is None or int(present) < planned_least else None
    return None


def _neighbours(plan: Plan) -> int:
    """Return how many entries the neighbour table needs at most."""
    return sum(len(end.addresses) for veth in plan.network.veths for end in (veth.a, veth.b)) * 2


@contextlib.contextmanager
def written(
    differing: Callable[[], list[Difference]], take: Callable[[str], int] = locked_for_all
) -> Iterator[list[Difference]]:
    """Write the needed values, yield what differed, and restore it at the end (MachineError).

    `differing` looks at the settings once no other plait changes them, which a lock that `take` takes ensures.
    """
    unmet: list[Difference] = []

    def pairs() -> list[str]:
        unmet.extend(differing())
        return [text for setting in unmet for text in (str(_PROC / setting.path), setting.present or "")]

    with undone_by(_RESTORING, "host-settings", lambda: ["janitor", *pairs()], take):
        for difference in unmet:
            _write(difference)
        yield unmet


def _write(difference: Difference) -> None:
    try:
        (_PROC / difference.path).write_text(difference.needed, encoding="ascii")
    except OSError as error:
        raise MachineError(
            f"setting {difference.name} to {difference.needed!r}: {error.strerror}; --allow-host-settings needs root"
        ) from error


def _read(path: str) -> str | None:
    try:
        return (_PROC / path).read_text(encoding="ascii").strip().replace("\t", " ")
    except OSError:
        return None
