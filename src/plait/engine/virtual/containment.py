"""The sandbox of a guest: its layers, and what it may see and write.

`plait-contain` (contain/, Rust) builds the sandbox from the specification of this module, and reports which layers it
has. Programs, kernel modules and prompts bring untrusted code into a guest. plait starts such a guest only if every
layer but Landlock is present, or with `--unconfined`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.engine.host_view import HostView, state_folders
from plait.engine.request import DEFAULT_POLICY, Policy

LAYERS = {
    "user_namespace": "root in the guest's process would be root of this machine",
    "minimal_root": "the guest's process would see every file that you can read, write those that you can write, and "
    "fill the disk",
    "pid_namespace": "the guest's process could signal and trace your other processes",
    "network_namespace": "the guest's process could reach this machine's network and abstract sockets",
    "ipc_namespace": "the guest's process could reach this machine's shared memory",
    "uts_namespace": "the guest's process could change this machine's name",
    "cgroup_namespace": "the guest's process could see this machine's control groups",
    "no_capabilities": "the guest's process would keep what root may do",
    "no_new_privileges": "the guest's process could gain privileges by programs that give some",
    "resource_limits": "the guest's process could write files of any size",
    "seccomp": "the guest's process could make every system call of this machine's kernel",
    "landlock": "FIFOs among the files that programs see could be written to, and every program there executed",
}
"""Every layer, and the consequence of its absence."""
REQUIRED = tuple(layer for layer in LAYERS if layer != "landlock")
"""Layers that untrusted code requires. Landlock is newer (Linux 5.13) and repeats what the mounts do."""

MAX_ENTRIES = 20_000
"""Maximum number of files and folders that a guest may write."""
_DESCRIPTORS, _PROCESSES = 65_536, 16_384

GUEST = "guest"
"""The name in a job folder of the folder that the guest may write to; plait reads it only through `guest_folder`."""


@dataclass(frozen=True)
class Sandbox:
    """The files and devices of this machine that one guest can access."""

    kernel: Path
    arguments: Sequence[str]
    folder: Path
    """The job folder. The guest writes to its subfolder `guest`, and reads the files in `inputs`."""
    inputs: Sequence[str] = ()
    view: HostView | None = None
    """The files of this machine that programs see; None: no files."""
    directory: Path | None = None
    """The folder in which programs start; the guest has it, empty if they do not see it."""
    writable: Sequence[Path] = ()
    untrusted_code: bool = False
    """Whether the guest runs code that is part of neither plait nor its kernel."""
    policy: Policy = DEFAULT_POLICY
    emulator: bool = False
    """Whether `kernel` is the loader of an emulator, whose files are the input `emulator`."""
    executes_memory: bool = False
    """Whether the kernel starts its processes from a program in memory (see Kernel.executes_memory)."""
    memory_mib: int = 0
    """The guest's memory: a file of its process (memfd_create(2)), not of its folder."""

    def _empty_folders(self) -> list[str]:
        folders = [*state_folders(), Path.home(), *([] if self.directory is None else [self.directory])]
        return [str(folder) for folder in folders]

    def specification(self, report: int) -> Mapping[str, object]:
        """Return the specification that plait-contain reads (mirrored by contain/src/spec.rs)."""
        hard = os.sysconf("SC_OPEN_MAX")
        return {
            "parent": os.getpid(),
            "report": report,
            "kernel": str(self.kernel),
            "arguments": list(self.arguments),
            "job": str(self.folder.resolve() / GUEST),
            "inputs": [{"source": str(self.folder.resolve() / name), "name": name} for name in self.inputs],
            "emulator": self.emulator,
            "executes_memory": self.executes_memory,
            "visible": None if self.view is None else list(self.view.paths),
            "empty": [] if self.view is None else self._empty_folders(),
            "writable": [str(path.resolve()) for path in self.writable],
            "limits": {
                "folder_bytes": self.policy.disk_bytes,
                "folder_files": MAX_ENTRIES,
                "file_bytes": max(self.policy.disk_bytes, self.memory_mib << 20),
                "descriptors": max(hard, _DESCRIPTORS),
                "processes": _PROCESSES,
            },
            "required": list(REQUIRED) if self.untrusted_code and not self.policy.unconfined else [],
            "without": list(self.policy.without),
        }


def layer_title(layer: str) -> str:
    """Return the name of a layer for messages."""
    return layer.replace("_", " ")


def caution(missing: Mapping[str, str]) -> str:
    """Return a caution that names each missing layer and the consequence of its absence."""
    sentences = [f"{layer_title(layer)}: {LAYERS[layer]} ({reason})" for layer, reason in missing.items()]
    return "this machine lacks layers of the sandbox. " + ". ".join(sentences)
