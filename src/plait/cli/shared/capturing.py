"""`--pcap`: captures of the network namespaces that programs of a guest name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CAPTURED_BYTES = 256
"""How much plait captures of each packet: all headers."""
PcapOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Capture the packets of each named network namespace to this folder"),
]


def capture_bytes(folder: Path | None) -> int | None:
    """Return how much to capture of each packet for `--pcap folder` (RequestError if the folder has files)."""
    from plait.errors import RequestError

    if folder is None:
        return None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"--pcap {folder}: it exists and is no empty folder; name a new one")
    return CAPTURED_BYTES
