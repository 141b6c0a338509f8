"""What a guest boots with: its kernel's command line, its root, and what it reads of its job folder.

The kernel command line is the same on every machine (no host paths), because the kernel mixes it into its random
generator. The seed's parameter is taken off the line by the kernel itself. Address-space randomisation is off: 6.12
lets it reach the guest's memory.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from plait.cache import cache_root
from plait.engine import inventory
from plait.engine.uml import initramfs
from plait.errors import MachineError
from plait.plan.model.plan import Machine, Network, Plan

if TYPE_CHECKING:
    from pathlib import Path

EPOCH_NS = 1_700_000_000_000_000_000
"""The guest's date at boot (2023-11-14), the same always."""
INPUTS = ("plan.json", "initramfs.cpio", "input", "modules", "session.json", inventory.REQUEST)
"""What the guest reads of its job folder, where it is there."""
EMPTY_PLAN = Plan(
    seed=0,
    machine=Machine(),
    sample_interval_us=1000,
    end_us=0,
    network=Network(namespaces=(), veths=()),
    links=(),
    flows=(),
)
"""The plan of a guest that runs no trial."""


def kernel_parameters(plan: Plan, *, real_time: bool = False, orders: bool = False) -> list[str]:
    """Returns the command line of the guest's kernel for `plan`, without host paths.

    With `real_time` its clock is the host's; with `orders` its console tty1 is the descriptor 0 of its process.
    """
    virtual_time = [
        "time-travel=inf-cpu",
        f"time-travel-start={EPOCH_NS}",
        f"time-travel-syscall-ns={plan.machine.syscall_ns}",
    ]
    return [
        f"mem={plan.machine.memory_mib}M",
        "initrd=initramfs.cpio",
        "hostfs=/proc/self/cwd",  # hostfs wants an absolute path; this one is the same everywhere
        "rdinit=/init",
        *([] if real_time else virtual_time),
        f"um_rng_seed={plan.seed}",
        "con=null",
        "con0=null,fd:1",
        *(["con1=fd:0"] if orders else []),
        "uml_dir=.",
        "umid=guest",
        "panic=-1",
        "quiet",
    ]


def present_inputs(folder: Path) -> list[str]:
    """Returns the names of what the guest reads of its job folder."""
    return [name for name in INPUTS if (folder / name).exists()]


def initramfs_of(agent: Path) -> tuple[Path, str]:
    """Returns the guest's root with this agent, and the agent's SHA-256 (MachineError when there is none)."""
    try:
        content = agent.read_bytes()
    except OSError as error:
        raise MachineError(f"reading plait-agent at {agent}: {error.strerror}; run `make setup`") from error
    digest = hashlib.sha256(content).hexdigest()
    try:
        return initramfs.ensure(content, digest, cache_root()), digest
    except OSError as error:
        raise MachineError(f"writing the guest's root below {cache_root()}: {error.strerror}") from error
