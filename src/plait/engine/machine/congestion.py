"""Algorithms that a stock kernel gets as BPF programs: their objects, and what loads them.

The agent runs `bpftool`, which is a copy of this machine's, before the trial (`agent/src/machine.rs`).
"""

from __future__ import annotations

import stat
from collections.abc import Sequence

from plait.bpf import programs
from plait.engine.host_view import PROGRAMS, HostView
from plait.engine.machine.host_files import HostFiles
from plait.engine.machine.libraries import Libraries
from plait.engine.virtual.initramfs import ArchiveEntry, pack
from plait.errors import MachineError
from plait.kernel.stock import StockKernel


def offered(kernel: StockKernel) -> tuple[str, ...]:
    """Return the algorithms that this machine can load into the kernel of a trial; none if something is missing.

    Only the kernel's inventory says whether it takes the schedulers among them.
    """
    try:
        programs.find_loader()
        for name in programs.NAMES:
            programs.object_of(name)
    except MachineError:
        return ()
    return programs.NAMES if programs.accepts(kernel.version) else ()


def bpf_archive(names: Sequence[str]) -> bytes:
    """Return an archive with the objects and their loader; empty for no names.

    Raises MachineError if one is missing, OSError if a file of the loader has changed meanwhile.
    """
    if not names:
        return b""
    loader = programs.find_loader()
    files = HostFiles(view=HostView(PROGRAMS))
    libraries = Libraries(files)
    real = files.add(str(loader))
    if real is not None:
        libraries.add(real, required=True)
    missing = libraries.take_missing() if real else [f"{loader} is not among this machine's programs"]
    if missing:
        raise MachineError(f"copying the loader of BPF programs: {', '.join(missing)}; install bpftool again")
    entries = [
        *files.copies(""),
        ArchiveEntry("bpf", stat.S_IFDIR | 0o755),
        ArchiveEntry("bpf/loader", stat.S_IFLNK | 0o777, str(real).encode()),
        ArchiveEntry("bpf/order", stat.S_IFREG | 0o644, "".join(f"{name}\n" for name in names).encode()),
        *(
            ArchiveEntry(f"bpf/{name}.bpf.o", stat.S_IFREG | 0o644, programs.object_of(name))
            for name in names
        ),
    ]
    return pack(entries)
