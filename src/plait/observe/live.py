"""Reads the tables of an observation while they grow, for a view of what goes on."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path as FilePath

import polars as pl

from plait.dataset.convert import END_OF_STREAM
from plait.dataset.files import READ_ERRORS
from plait.files import Folder

_PREFIX = struct.Struct("<Ii")
"""What precedes each message of an Arrow stream: a continuation mark, and the length of the metadata."""


@dataclass(frozen=True)
class CarriedNow:
    """What one connection carried between its last two samples."""

    peer: str
    """The address and the port of the other end."""
    bits_per_s: float
    """In the direction with more bytes."""
    shares: tuple[tuple[str, float], ...]
    """The share of each subflow, by its local and remote address."""
    rtt_ms: float
    """The lowest smoothed RTT of its subflows."""


class LiveRates:
    """The connections of an observation that goes on, by an Arrow stream that the agent still writes."""

    def __init__(self, folder: FilePath) -> None:
        self._folder = Folder(folder)
        self._header = b""
        self._read = 0
        self._last: dict[tuple[int, int], dict[str, int]] = {}
        self.t_s = 0.0
        """The time of the last sample."""

    def rates(self) -> list[CarriedNow] | None:
        """Return what each connection carries now, the fastest first; None if there is no new sample."""
        rows = self._added()
        if rows is None:
            return None
        latest = rows.filter(pl.col("t_us") == rows["t_us"].max())
        self.t_s = latest["t_us"][0] / 1e6
        by_flow: dict[int, list[tuple[dict[str, int], dict[str, int]]]] = {}
        now = {(row["flow"], row["subflow"]): row for row in latest.iter_rows(named=True)}
        for key, row in now.items():
            before = self._last.get(key)
            if before is not None and row["t_us"] > before["t_us"]:
                by_flow.setdefault(row["flow"], []).append((before, row))
        self._last = now
        return sorted(map(_rate, by_flow.values()), key=lambda rate: -rate.bits_per_s)

    def _added(self) -> pl.DataFrame | None:
        """Return the rows that the agent has added; None if there are none that are complete."""
        try:
            data = self._folder.read("subflows.arrow")
            if not self._header:
                _, length = _PREFIX.unpack_from(data)
                self._read = _PREFIX.size + length
                self._header = data[: self._read] if len(data) > self._read else b""
            added = data[self._read :].removesuffix(END_OF_STREAM)
            if not added:
                return None
            frame = pl.read_ipc_stream(self._header + added + END_OF_STREAM)
        except (OSError, struct.error, *READ_ERRORS):
            return None  # the first or the last batch is not complete yet
        self._read += len(added)
        return frame


def _rate(pairs: list[tuple[dict[str, int], dict[str, int]]]) -> CarriedNow:
    """Return what the subflows of a connection carried between two samples."""
    carried = {
        way: [max(0, (row[way] or 0) - (before[way] or 0)) for before, row in pairs]
        for way in ("acked_bytes", "received_bytes")
    }
    counts = max(carried.values(), key=sum)
    total = sum(counts)
    first, last = pairs[0]
    elapsed_s = (last["t_us"] - first["t_us"]) / 1e6
    shares = tuple(
        (f"{row['local_address']} > {row['remote_address']}", count / total if total else 0.0)
        for (_, row), count in zip(pairs, counts, strict=True)
    )
    rtt_us = min((row["rtt_us"] for _, row in pairs if row["rtt_us"]), default=0)
    return CarriedNow(
        f"{last['remote_address']}:{last['remote_port']}", total * 8 / elapsed_s, shares, rtt_us / 1e3
    )
