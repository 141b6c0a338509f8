"""The programs of a plan in a machine: the archive with their files, and what keeps them from running there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.engine.host_view import view_for_programs
from plait.engine.machine.host_files import MAX_BYTES, MAX_FILES, HostFiles, TooManyFilesError
from plait.engine.machine.needed_files import NeededFiles
from plait.engine.support import Unsupported, Use
from plait.engine.virtual.initramfs import pack
from plait.plan.model.plan import Plan
from plait.plan.model.programs import Program

_MPTCP_SINCE = (6, 6)
"""Linux can since then change the protocol of a socket that a program asks for (agent/src/program/transport.rs)."""
_STEP_MIB = 64


@dataclass(frozen=True)
class ProgramFiles:
    """Files of this machine for the programs of a plan."""

    files: HostFiles | None
    """None: no programs."""
    lacks: Sequence[Unsupported] = ()

    @property
    def memory_mib(self) -> int:
        """The memory for the archive and for the files that the machine's kernel unpacks from it."""
        steps = 0 if self.files is None else -(-2 * self.files.bytes // (_STEP_MIB << 20))
        return steps * _STEP_MIB

    def archive(self) -> bytes:
        """Return the archive (OSError if a file has changed since plait found it)."""
        return b"" if self.files is None else pack(self.files.entries())


def files_of(programs: Sequence[Program], readable: Sequence[Path] = ()) -> ProgramFiles:
    """Find the files that these programs need; `readable`: what the user adds by --ro to what they see."""
    if not programs:
        return ProgramFiles(None)
    needed = NeededFiles(view_for_programs(programs, readable))
    program = programs[0]
    try:
        for program in programs:
            needed.add(program)
    except TooManyFilesError as error:
        reason = (
            f"takes at most {MAX_BYTES >> 20} MiB in {MAX_FILES} files for programs, and the program needs more "
            f"(at {error}); name smaller folders in its command"
        )
        return ProgramFiles(needed.files, [_lack(program.name, reason)])
    return ProgramFiles(
        needed.files,
        [
            _lack(missing.program, f"cannot run it: {missing.reason}, which is not on this machine")
            for missing in needed.missing
        ],
    )


def no_mptcp(plan: Plan, version: str) -> Iterator[Unsupported]:
    """Yield the programs whose sockets a kernel of this version cannot give MPTCP."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is not None and (int(match[1]), int(match[2])) >= _MPTCP_SINCE:
        return
    for program in plan.programs:
        if program.transport == "mptcp":
            reason = f"has Linux {version}, which cannot give programs MPTCP in place of TCP (Linux 6.6 can)"
            yield _lack(program.name, reason)


def _lack(program: str, reason: str) -> Unsupported:
    return Unsupported(Use("programs", "programs", program), reason)
