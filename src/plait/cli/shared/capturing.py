"""`--pcap`: captures of the network namespaces that programs of a guest name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.outputs import output_folder

if TYPE_CHECKING:
    from collections.abc import Collection

    from plait.files import Folder

CAPTURED_BYTES = 256
"""How much plait captures of each packet: all headers."""
PcapOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Capture the packets of each named network namespace to this folder"),
]


def capture_folder(folder: Path | None, shared: Collection[Path] = ()) -> Folder | None:
    """Return the folder of `--pcap folder`, created and held open (RequestError if it has files).

    `shared`: the folders that the guest may change.
    """
    from plait.errors import RequestError

    if folder is None:
        return None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"--pcap {folder}: it exists and is no empty folder; name a new one")
    return output_folder(folder, "--pcap", shared=shared)
