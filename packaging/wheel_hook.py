"""Tags the wheel of plait: it has static programs of one processor, and no compiled module of Python.

A static program needs no C library, so the wheel fits every Linux with that processor.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS = ("plait-agent", "plait-contain")
PLATFORMS = "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64"

_X86_64 = 62
_DYNAMIC, _INTERPRETER = 2, 3


class WheelHook(BuildHookInterface):
    """Refuses to build a wheel without the two programs, and tags it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the tag; an editable installation gets its programs from `make setup` later."""
        if version == "editable":
            return
        for name in PROGRAMS:
            check_static(Path(self.root) / "src" / "plait" / "_bin" / name)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{PLATFORMS}"


def check_static(program: Path) -> None:
    """Raise ValueError unless `program` is a static ELF program for x86-64."""
    if not program.is_file():
        raise ValueError(f"building the wheel: {program} is missing; run `make setup` first")
    header = program.read_bytes()[: 64 << 10]
    if header[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", header, 18)[0] != _X86_64:
        raise ValueError(f"building the wheel: {program} is no x86-64 program; build it on an x86-64 machine")
    start, size, count = struct.unpack_from("<Q14xHH", header, 32)[0], *struct.unpack_from("<HH", header, 54)
    kinds = {struct.unpack_from("<I", header, start + index * size)[0] for index in range(count)}
    if kinds & {_DYNAMIC, _INTERPRETER}:
        raise ValueError(
            f"building the wheel: {program} is not static, so it would not run on every Linux; "
            "build it with the repository's Cargo configuration"
        )
