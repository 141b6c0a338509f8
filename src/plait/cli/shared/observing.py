"""`--pcap` and `--trace`: what verbs that boot a guest observe of it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.outputs import output_file, output_folder
from plait.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from plait.engine.virtual.session import SessionRequest
    from plait.files import Folder
    from plait.kernel import Kernel

CAPTURED_BYTES = 256
"""How much plait captures of each packet: all headers."""
PcapOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Capture the packets of each named network namespace to this folder"),
]


TraceOption = Annotated[
    str | None,
    typer.Option(metavar="EVENTS", help="Collect trace events, such as mptcp:*,tcp:* (see --trace-to)"),
]
TRACE = Path("trace.parquet")
TraceToOption = Annotated[
    Path, typer.Option(metavar="FILE", help="Parquet file for the trace events, with virtual times")
]


def capture_folder(folder: Path | None, shared: Collection[Path] = ()) -> Folder | None:
    """Return the folder of `--pcap folder`, created and held open (RequestError if it has files).

    `shared`: the folders that the guest may change.
    """
    if folder is None:
        return None
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"--pcap {folder}: it exists and is no empty folder; name a new one")
    return output_folder(folder, "--pcap", shared=shared)


@contextmanager
def tracing(
    events: str | None,
    target: Path,
    kernel: Kernel,
    report: Callable[[str], None],
    shared: Collection[Path] = (),
) -> Iterator[Callable[[SessionRequest], SessionRequest]]:
    """Yield what adds the events of `--trace` to a guest's request; write their table at the end (RequestError).

    `shared`: the folders that the guest may change.
    """
    if events is None:
        if target != TRACE:
            raise RequestError(f"--trace-to {target}: plait traces only the events of --trace; name some")
        yield lambda request: request
        return
    from plait.engine.virtual.tracing import kept_trace  # it needs the tables' library

    with kept_trace(kernel, events, output_file(target, "--trace-to", shared=shared), report) as traced:
        yield traced
