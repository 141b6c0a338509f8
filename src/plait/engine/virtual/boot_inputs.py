"""The inputs of a guest's boot: its kernel's command line, its root, and its inputs in the job folder.

The kernel command line is the same on every machine (no host paths), because the kernel mixes it into its random
generator. The kernel itself removes the seed from the line. Address-space randomisation is off: in 6.12 it affects the
guest's memory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from plait.binaries import agent_bytes
from plait.cache import CACHE_REMEDY, cache_root, used_folder
from plait.engine import inventory
from plait.engine.virtual import initramfs
from plait.errors import MachineError, RequestError, TrialError
from plait.files import Folder
from plait.kernel import Kernel, additions
from plait.plan.model.plan import Machine, Module, Network, Plan

BuildModule = Callable[[Module], Path]

EPOCH_NS = 1_700_000_000_000_000_000
"""The date of every guest at boot: 2023-11-14."""
INPUTS = ("plan.json", "initramfs.cpio", "input", "modules", "session.json", inventory.REQUEST)
"""The files and folders of the job folder that the guest reads, if they exist."""
CUT_THROUGH = "PLAIT_CUT_THROUGH"
"""A variable: with `0`, each packet passes the whole stack of each router. Results are the same to the byte."""
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
    """Return the command line of the guest's kernel for `plan`, without host paths.

    `real_time`: the guest uses the host's clock; `orders`: its console tty1 is descriptor 0 of its process.
    """
    virtual_time = [
        "time-travel=inf-cpu",
        f"time-travel-start={EPOCH_NS}",
        f"time-travel-syscall-ns={plan.machine.syscall_ns}",
    ]
    return [
        f"mem={plan.machine.memory_mib}M",
        "initrd=initramfs.cpio",
        "hostfs=/proc/self/cwd",  # hostfs needs an absolute path; this one is the same everywhere
        "rdinit=/init",
        *([] if real_time else virtual_time),
        f"um_rng_seed={plan.seed}",
        "con=null",
        "con0=null,fd:1",
        *(["con1=fd:0"] if orders else []),
        *(["plait_cut_through=0"] if os.environ.get(CUT_THROUGH) == "0" else []),
        "uml_dir=.",
        "umid=guest",
        "panic=-1",
        "quiet",
    ]


def present_inputs(folder: Path) -> list[str]:
    """Return those of INPUTS that exist in the job folder."""
    return [name for name in INPUTS if (folder / name).exists()]


def module_builder(kernel: Kernel) -> BuildModule:
    """Return what builds the modules of `plait kernel add` for a kernel (see `additions.object_of`)."""
    return partial(additions.object_of, kernel)


def add_modules(plan: Plan, folder: Path, build: BuildModule) -> None:
    """Copy the plan's modules, each as `build` returns it, to the job folder (TrialError if that fails)."""
    for module in plan.machine.modules:
        try:
            built = build(module)
        except (RequestError, MachineError) as error:
            raise TrialError(f"building the module {module.name}, which the plan needs: {error}") from error
        (Folder(folder) / "modules").bring(built, f"{module.name}.ko")


def initramfs_of(agent: Path) -> tuple[Path, str]:
    """Return the path of the guest's root with this agent, and the agent's SHA-256 (MachineError if it is missing)."""
    content = agent_bytes(agent)
    digest = hashlib.sha256(content).hexdigest()
    try:
        return initramfs.ensure(content, digest, used_folder("initramfs")), digest
    except OSError as error:
        raise MachineError(
            f"writing the guest's root below {cache_root()}: {error.strerror}; {CACHE_REMEDY}"
        ) from error
