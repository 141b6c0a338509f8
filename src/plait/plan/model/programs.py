"""Programs of the host that run in nodes.

These records are part of the plan's contract (`plan.py`). Paths of
files are absolute, and as the programs see them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plait.parts import U16, Micros, Record, Span
from plait.plan.model.sockets import StreamTransport

ResultKind = Literal["iperf3", "json"]

SYSTEM_CALL_NS = 1000
"""Virtual time of a system call in trials with programs; a program that polls without sleep would stop the clock."""
PRIVATE = ("/tmp", "/run", "/var/tmp", "/mnt")  # noqa: S108 - names of the guest's folders, not files of this machine
"""Empty folders of the guest in place of this machine's (`PRIVATE` of agent/src/program/root.rs)."""


class Ready(Record):
    """How a program shows that it is ready: exactly one of the first four fields, `within_us` of its start."""

    tcp: U16 | None = None
    """A process in its namespace listens on this TCP port."""
    udp: U16 | None = None
    """A socket in its namespace is bound to this UDP port."""
    file: str | None = None
    """This file exists."""
    log: str | None = None
    """A line of its log contains this text."""
    within_us: Span


class ProgramFile(Record):
    """A file that the agent writes before the program starts: a text, or the trial's `input/INPUT`.

    INPUT is the SHA-256 of the content, so that the plan changes with it.
    """

    path: str
    text: str | None = None
    input: str | None = None


class Stop(Record):
    """How the agent stops a program that still runs at `at_us`, or at the end of the trial."""

    at_us: Micros | None = None
    signal: int = Field(ge=1, le=64)
    grace_us: Span
    """The agent kills what still runs this long after the signal."""


class Program(Record):
    """A program of the host that runs in a node, as root, with a read-only root directory.

    Its standard output and error go to `programs/NAME.log` of the trial's folder. It starts `start_us` after
    the last program of `after` is ready (those with `ready`) or has ended (others).
    """

    name: str
    netns: str
    argv: tuple[str, ...] = Field(min_length=1)
    environment: tuple[tuple[str, str], ...] = ()
    start_us: Micros
    after: tuple[str, ...] = ()
    directory: str = "/"
    """The working directory; the agent creates it if needed."""
    files: tuple[ProgramFile, ...] = ()
    collect: tuple[str, ...] = ()
    """The agent copies these files to `programs/NAME/` of the trial's folder when the trial has ended."""
    ready: Ready | None = None
    awaited: bool = False
    """The trial continues until this program ends by itself."""
    stop: Stop = Stop(signal=9, grace_us=1)
    exit_code: int | None = None
    """The exit code that the program must have if it ends by itself; None: any."""
    transport: StreamTransport = "tcp"
    """The transport of sockets for which programs in its namespace request TCP."""
    result: ResultKind | None = None
    """The format of its log, for the table `program_figures`."""
    flow: int | None = Field(default=None, exclude_if=lambda value: value is None)
    """The prototype flow that it runs: it starts when the flow begins. The agent writes its code and its settings, and
    reads what it prints as reports."""
