"""Reads why a guest crashed: the reason of the panic, and its trace with source lines of added modules.

UML scans the stack for code addresses. It follows frame pointers, and marks every other address with `?`: such an
address may be left over from an earlier call, so it may not be a caller. An entry `name+0x0/..` is a pointer to a
function, not a call; the trace omits it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

_CALL = r"(?P<call>(?P<name>[\w.]+)\+0x(?P<offset>[0-9a-f]+)/0x[0-9a-f]+)(?: \[(?P<module>\w+)\])?"
_FAULT = re.compile(rf"RIP: [0-9a-f]+:{_CALL}")
_FRAME = re.compile(rf"\[<[0-9a-f]+>\] (?P<doubt>\? )?{_CALL}")
_SHOWN = 6
"""Calls to show before and after the first call in a module."""
DOUBTFUL = "addresses on the stack, which may be left over from earlier calls:"
"""Before entries that the kernel marks with `?`."""


def panic(console: list[str]) -> str | None:
    """Return the reason of a kernel panic; None without a panic."""
    for line in console:
        if "Kernel panic" in line:
            return line.split("Kernel panic - ")[-1]
    return None


def ran_out_of_memory(console: list[str]) -> bool:
    """Return whether the kernel killed a program because it ran out of memory."""
    return any("Out of memory: Killed process" in line for line in console)


def trace(console: list[str], modules: Path) -> list[str]:
    """Return where the kernel panicked and the calls that led there, innermost first; empty without a panic.

    Without frame pointers the kernel is sure of no call: the addresses on the stack follow, each with its `?`. Calls in
    modules of the folder `modules` have their source line.
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
    """Return the frames around the first one in a module."""
    first_in_module = next((number for number, match in enumerate(frames) if match["module"]), 0)
    return frames[max(0, first_in_module - _SHOWN) : first_in_module + _SHOWN]


def _with_source_line(frame: re.Match[str], modules: Path, bytes_back: int) -> str:
    """Return a call with its source line. A return address points behind the call; subtract `bytes_back` bytes."""
    if frame["module"] is None:
        return frame["call"]
    line = _line(modules / f"{frame['module']}.ko", frame["name"], int(frame["offset"], 16) - bytes_back)
    return f"{frame['call']} ({line or frame['module']})"


def _line(module: Path, symbol: str, offset: int) -> str | None:
    """Return the source line of an address from the module's debugging information."""
    if not module.is_file() or None in map(shutil.which, ("nm", "addr2line")):
        return None
    symbols = _output("nm", str(module)).splitlines()
    base = next((line.split()[0] for line in symbols if line.endswith(f" {symbol}")), None)
    if base is None:
        return None
    for line in _output("addr2line", "-i", "-e", str(module), f"{int(base, 16) + offset:#x}").splitlines():
        name, _, number = line.split(" ")[0].rpartition("/")[2].partition(":")
        if name.endswith(".c") and number.isdigit():
            return f"{name}:{number}"
    return None


def _output(*command: str) -> str:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    ).stdout
