"""Convert the agent's Arrow streams to the Parquet tables of a trial.

The agent flushes Arrow IPC *streams* while they grow, so that a crash loses little. plait keeps Parquet, which is
smaller and which common tools read.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from plait.dataset.arrow_stream import ForeignStreamError, check_stream
from plait.dataset.files import READ_ERRORS, check_columns, write_table
from plait.dataset.model import MONITOR_TABLES, TABLES
from plait.errors import DataError

END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""How an Arrow IPC stream ends (Arrow columnar format, "IPC Streaming Format"): continuation, length 0."""

_ADDRESS = r"^[0-9a-f:.]{2,45}$"
"""The form of an IP address. plait writes addresses of tables to scenarios and sentences, so they have no other one."""

CUT_SHORT = "the guest was stopped before it finished; see the trial's logs for the reason"


def convert(arrow_dir: Path, out_dir: Path) -> dict[str, pl.DataFrame]:
    """Convert every `TABLE.arrow` in `arrow_dir` to `TABLE.parquet` in `out_dir`, and return the tables.

    plait reads and checks all tables before it writes the first one. A monitor's table exists only if the plan has the
    monitor. `out_dir` is created if it is missing.

    Raises:
        DataError: a table is missing, truncated or damaged, or its columns differ from the contract.
    """
    monitors = [table for table in MONITOR_TABLES if (arrow_dir / f"{table}.arrow").exists()]
    frames = {table: read_stream(arrow_dir / f"{table}.arrow", table) for table in (*TABLES, *monitors)}
    out_dir.mkdir(parents=True, exist_ok=True)
    for table, frame in frames.items():
        write_table(frame, out_dir, table)
    return frames


def read_stream(path: Path, table: str) -> pl.DataFrame:
    """Return the table in one Arrow IPC stream.

    Raises:
        DataError: the stream is missing, truncated or damaged, or its columns differ from the contract.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path}: the table `{table}` is missing; {CUT_SHORT}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot read the table `{table}`: {error.strerror}") from error
    # A reader accepts a stream that stops between two batches; only the end marker shows that it is complete.
    if not data.endswith(END_OF_STREAM):
        raise DataError(f"{path}: the stream of table `{table}` is truncated; {CUT_SHORT}")
    try:
        check_stream(data)
        frame = pl.read_ipc_stream(data)
    except ForeignStreamError as error:
        raise DataError(
            f"{path}: the stream of table `{table}` {error}, which the agent never writes; a program in the guest, or "
            "the host, replaced it"
        ) from error
    except READ_ERRORS as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: this is not a readable Arrow stream ({reason}); {CUT_SHORT}") from error
    check_columns(frame.schema, table, path)
    _check_addresses(frame, table, path)
    return frame


def _check_addresses(frame: pl.DataFrame, table: str, path: Path) -> None:
    named = [name for name in frame.columns if name.endswith("_address")]
    fitting = frame.select(pl.col(named).str.contains(_ADDRESS).all()).row(0) if named else ()
    for name, fits in zip(named, fitting, strict=True):
        if not fits:
            raise DataError(
                f"{path}: `{name}` of table `{table}` has a text that is no IP address, which the agent never writes; "
                "a program in the guest, or the host, replaced it"
            )
