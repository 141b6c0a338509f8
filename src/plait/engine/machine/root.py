"""The root of a machine: an initramfs with the agent, the kernel's modules, the trial's folder, and files of programs.

A stock kernel shares no folder with its host, so everything enters it with the initramfs. The archive is written for
each trial; its first part, the agent, comes from the cache.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from plait.engine.virtual.initramfs import ArchiveEntry, pack
from plait.files import Folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from plait.engine.machine.modules import ModuleFile


def write_root(
    target: Path,
    agent: Path,
    modules: Iterable[ModuleFile],
    inputs: Mapping[str, bytes],
    programs: bytes = b"",
) -> None:
    """Write the initramfs to `target`: the archive `agent`, the modules in order, `inputs` by path below /job.

    `programs`: another archive, with the files of programs. Raises OSError.
    """
    loaded = list(modules)
    order = "".join(f"{module.name} {module.parameters}".rstrip() + "\n" for module in loaded)
    entries = [ArchiveEntry("modules", stat.S_IFDIR | 0o755), _file("modules/order", order.encode())]
    entries += [_file(f"modules/{module.name}.ko", module.content) for module in loaded]
    folders = {f"job/{path.rpartition('/')[0]}" for path in inputs if "/" in path}
    entries += [ArchiveEntry(folder, stat.S_IFDIR | 0o755) for folder in sorted(folders)]
    entries += [_file(f"job/{path}", content) for path, content in inputs.items()]
    with Folder(target.parent).create(target.name) as file:
        for content in (agent.read_bytes(), programs):
            file.write(content + b"\0" * (-len(content) % 512))
        file.write(pack(entries))


def _file(name: str, content: bytes) -> ArchiveEntry:
    return ArchiveEntry(name, stat.S_IFREG | 0o644, content)
