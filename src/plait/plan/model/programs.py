"""Programs of this machine that run in nodes.

Part of the plan's contract (`model.py`); `agent/src/plan/programs.rs` reads the same. Paths of files are those that
the programs see; every one is absolute.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plait.plan.model.record import Count, Micros, Record


class Ready(Record):
    """How a program shows that it is ready: by exactly one of the first four, `within_us` of its start."""

    tcp: int | None = None
    """Somebody in its namespace listens on this port."""
    udp: int | None = None
    """A socket in its namespace has this port."""
    file: str | None = None
    """It is there."""
    log: str | None = None
    """A line of its log contains this."""
    within_us: Count


class ProgramFile(Record):
    """A file that is written before the program starts: a text, or the trial's `input/INPUT`."""

    path: str
    text: str | None = None
    input: str | None = None


class Stop(Record):
    """How a program is stopped that is still there at `at_us`, or at the end of the trial."""

    at_us: Micros | None = None
    signal: Count
    grace_us: Count
    """What is there that long after the signal is killed."""


class Program(Record):
    """A program of the host, run in a node as root of a root directory that nothing can change.

    What it writes to its standard output and error goes to `programs/NAME.log` of the trial's folder. It starts
    `start_us` after the last of `after` is ready (those with `ready`) or has ended (others).
    """

    name: str
    netns: str
    argv: tuple[str, ...] = Field(min_length=1)
    environment: tuple[tuple[str, str], ...] = ()
    start_us: Micros
    after: tuple[str, ...] = ()
    directory: str = "/"
    """Made if it is not there."""
    files: tuple[ProgramFile, ...] = ()
    collect: tuple[str, ...] = ()
    """Copied to `programs/NAME/` of the trial's folder when the trial has ended."""
    ready: Ready | None = None
    awaited: bool = False
    """The trial goes on until it has ended by itself."""
    stop: Stop = Stop(signal=9, grace_us=1)
    exit_code: int | None = None
    """What it has to end with when it ends by itself; None: anything."""
    transport: Literal["tcp", "mptcp"] = "tcp"
    """What the sockets are for which programs in its namespace ask TCP."""
    result: Literal["iperf3"] | None = None
    """What its log is read as, for the table `program_figures`."""
