"""What a guest that went down says of it: the reason, and the trace with the lines of sources that were added.

UML scans the stack for addresses of code. It follows frame pointers, and marks with `?` what it only came across: such
an address may be left over from an earlier call, so it is no caller. An entry `name+0x0/..` is a pointer to a function
and not a call, and is left out.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_CALL = r"(?P<call>(?P<name>[\w.]+)\+0x(?P<offset>[0-9a-f]+)/0x[0-9a-f]+)(?: \[(?P<module>\w+)\])?"
_FAULT = re.compile(rf"RIP: [0-9a-f]+:{_CALL}")
_FRAME = re.compile(rf"\[<[0-9a-f]+>\] (?P<doubt>\? )?{_CALL}")
_SHOWN = 6
"""Calls that are shown on either side of the first one in a module."""
DOUBTFUL = "on the stack, left over from earlier calls or not:"
"""Before entries that the kernel marks with `?`."""


def panic(console: list[str]) -> str | None:
    """Returns why the kernel panicked; None when it did not."""
    for line in console:
        if "Kernel panic" in line:
            return line.split("Kernel panic - ")[-1]
    return None


def ran_out_of_memory(console: list[str]) -> bool:
    """Whether the kernel killed a program because no memory was left."""
    return any("Out of memory: Killed process" in line for line in console)


def trace(console: list[str], modules: Path) -> list[str]:
    """Returns where the kernel went down and the calls that led there, innermost first.

    Without frame pointers the kernel is sure of none: then what lay on the stack follows, each with its `?`. Those in
    modules of the folder `modules` have their line in the source. Empty when it did not go down by a panic.
    """
    start = next((number for number, line in enumerate(console) if "Kernel panic" in line), len(console))
    fault = [
        f"at {_with_source_line(match, modules, 0)}"
        for line in console[:start]
        if (match := _FAULT.search(line))
    ]
    frames = [match for line in console[start:] if (match := _FRAME.search(line)) and match["offset"] != "0"]
    sure = [match for match in frames if not match["doubt"]]
    if sure or not frames:
        return fault[-1:] + [_with_source_line(match, modules, 1) for match in _around_module(sure)]
    return [
        *fault[-1:],
        DOUBTFUL,
        *(f"? {_with_source_line(match, modules, 1)}" for match in _around_module(frames)),
    ]


def _around_module(frames: list[re.Match[str]]) -> list[re.Match[str]]:
    """The frames about the first one in a module."""
    first_in_module = next((number for number, match in enumerate(frames) if match["module"]), 0)
    return frames[max(0, first_in_module - _SHOWN) : first_in_module + _SHOWN]


def _with_source_line(frame: re.Match[str], modules: Path, back: int) -> str:
    """A call, and its line in the source. A return address is one byte `back` in the call."""
    if frame["module"] is None:
        return frame["call"]
    lines = _lines(modules / f"{frame['module']}.ko", frame["name"], int(frame["offset"], 16) - back)
    return f"{frame['call']} ({next(lines, frame['module'])})"


def _lines(module: Path, symbol: str, offset: int) -> Iterator[str]:
    """Yields the source lines of an address, as the module's debugging information has them."""
    tools = [shutil.which(name) for name in ("nm", "addr2line")]
    if not module.is_file() or None in tools:
        return
    symbols = _output("nm", str(module)).splitlines()
    base = next((line.split()[0] for line in symbols if line.endswith(f" {symbol}")), None)
    if base is None:
        return
    for line in _output("addr2line", "-i", "-e", str(module), f"{int(base, 16) + offset:#x}").splitlines():
        name, _, number = line.split(" ")[0].rpartition("/")[2].partition(":")
        if name.endswith(".c") and number.isdigit():
            yield f"{name}:{number}"


def _output(*command: str) -> str:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    ).stdout
