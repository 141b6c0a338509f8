"""The options that limit a guest, the same for every verb that boots one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.options import parsed
from plait.errors import RequestError

if TYPE_CHECKING:
    from plait.engine.request import Policy

UnconfinedOption = Annotated[
    bool,
    typer.Option(
        "--unconfined", help="Run untrusted code even if a layer of the sandbox is missing (`plait doctor`)"
    ),
]
DiskOption = Annotated[
    str, typer.Option("--disk-limit", metavar="SIZE", help="Maximum that a guest may write to its folder")
]
DISK = "4GiB"
RoOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--ro",
        metavar="DIR",
        help="Folder that programs may read, beside installed programs and the current folder; repeat the option "
        "for more",
    ),
]


def policy(disk: str, ro: list[Path] | None, *, unconfined: bool) -> Policy:
    """Return the policy of a guest (RequestError if `disk` is not a size, or a folder of `ro` does not exist)."""
    from plait.engine.request import Policy

    for folder in ro or ():
        if not folder.exists():
            raise RequestError(f"--ro {folder}: there is no such folder; correct its path")
    readable = tuple(folder.absolute() for folder in ro or ())
    return Policy(unconfined=unconfined, disk_bytes=bytes_of("--disk-limit", disk), readable=readable)


def bytes_of(option: str, text: str) -> int:
    """Return the size in `text` in bytes (RequestError if it is no size or below 1 MiB)."""
    from plait.units import Size

    size = int(parsed(option, text, Size))
    if size < 1 << 20:
        raise RequestError(f"{option} {text}: the size is too small; write at least 1MiB")
    return size
