"""The options that limit a guest, the same for every verb that boots one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from plait.engine.uml.containment import Policy

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


def policy(disk: str, *, unconfined: bool) -> Policy:
    """Return the policy of a guest (RequestError if `disk` is not a size)."""
    from plait.engine.uml.containment import Policy

    return Policy(unconfined=unconfined, disk_bytes=bytes_of("--disk-limit", disk))


def bytes_of(option: str, text: str) -> int:
    """Return the size in `text` in bytes (RequestError if it is no size or below 1 MiB)."""
    from plait.errors import RequestError
    from plait.units import Size

    try:
        size = int(Size.parse(text))
    except ValueError as error:
        raise RequestError(f"{option} {text}: {error}") from error
    if size < 1 << 20:
        raise RequestError(f"{option} {text}: the size is too small; write at least 1MiB")
    return size
