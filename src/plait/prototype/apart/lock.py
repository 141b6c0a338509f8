"""Locks the process before it runs a stranger's code: it then opens no files or sockets, and starts no processes."""

from __future__ import annotations

import ctypes
import importlib
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MODULES = (
    *(
        "abc",
        "bisect",
        "collections",
        "copy",
        "dataclasses",
        "decimal",
        "enum",
        "fractions",
        "functools",
        "heapq",
    ),
    *(
        "itertools",
        "json",
        "math",
        "numbers",
        "operator",
        "random",
        "re",
        "statistics",
        "string",
        "time",
        "typing",
    ),
)
"""What a scheduler can import: the process reads no file of a module afterwards."""

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


class _Program(ctypes.Structure):
    """`struct sock_fprog` of the kernel."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def lock(filters: Sequence[Sequence[Sequence[int]]]) -> None:
    """Import `MODULES`, and install filters of system calls: instructions (code, jt, jf, k), as BPF has them.

    Raises SystemExit where the kernel refuses.
    """
    for name in MODULES:
        importlib.import_module(name)
    library = ctypes.CDLL(None, use_errno=True)
    for instructions in filters:
        code = b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)
        program = _Program(len(instructions), code)
        mode = ctypes.c_ulong(_MODE_FILTER)
        if library.prctl(_PR_SET_SECCOMP, mode, ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0)):
            number = ctypes.get_errno()
            raise SystemExit(
                f"the kernel of this host refuses to filter system calls (seccomp, errno {number})"
            )
