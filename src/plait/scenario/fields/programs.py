"""Programs of this machine that run in nodes, with their input and output files."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from plait.parts import Listed, Part, Start, Transport, Whole
from plait.scenario.names import NodeName
from plait.units import Duration, Size, Within

Word = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
ProgramName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$")]
Port = Annotated[Whole, Field(ge=1, le=65_535)]
FilePath = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")]
"""A path relative to the program's directory, or an absolute one."""


Patience = Annotated[Duration, Within(least=10**6, most=3600 * 10**9, step=1000)]
"""A timeout, in virtual time."""

Memory = Annotated[Size, Within(least=256 * 2**20, most=64 * 2**30)]
"""Guest memory."""


class MachineSpec(Part):
    """The machine on which the engine `machine` runs a trial's kernel."""

    processors: Annotated[Whole, Field(ge=1, le=4)] = 1
    """Processors of the machine. No engine has more than one: QEMU repeats a run of one processor only."""
    nanoseconds_per_instruction: Literal[1, 2, 4, 8, 16, 32, 64, 128] = 1
    """Virtual time that each instruction takes, in ns."""
    offloads: bool = False
    """Whether interfaces of hosts keep their segmentation offloads."""


SHELL = ["/bin/sh", "-c"]
"""The shell that runs a command line."""


def _command(value: object) -> object:
    """Return the arguments: a text is a command line for the shell, a list a program with its arguments."""
    return [*SHELL, value] if isinstance(value, str) else value


def _text(value: object) -> object:
    return str(value) if type(value) is int else value


def _waits(value: object) -> object:
    """Return the value; the old spellings `exit` and `end` occur under `vary`, whose values stay as written."""
    return {"exit": True, "end": False}.get(value, value) if isinstance(value, str) else value


Value = Annotated[Word, BeforeValidator(_text, json_schema_input_type=str | int)]
"""A text, or a whole number."""


class ReadySpec(Part):
    """How plait recognises that a program is ready: exactly one of tcp, udp, file and log."""

    tcp: Port | None = None
    """A socket in its node listens on this TCP port."""
    udp: Port | None = None
    """A UDP socket in its node is bound to this port."""
    file: FilePath | None = None
    """This file exists."""
    log: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """A line of its output contains this text."""
    within: Patience = Duration(30 * 10**9)
    """Timeout: the trial fails if the program is not ready within this time after its start."""

    @model_validator(mode="after")
    def _require_one_condition(self) -> Self:
        if sum(condition is not None for condition in (self.tcp, self.udp, self.file, self.log)) != 1:
            raise ValueError(
                "ready needs exactly one of tcp, udp, file and log; write for example ready: {tcp: 80}"
            )
        return self


class StopSpec(Part):
    """How plait stops a program that does not exit by itself."""

    at: Start | None = None
    """Time of the signal. Default: the end of the trial."""
    signal: Literal["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL"] = "TERM"
    grace: Patience = Duration(10**9)
    """Grace period after the signal, before plait kills the program and its children."""


class InputContent(Part):
    """A file of this machine, which plait copies for each trial."""

    input: FilePath
    """Path, relative to the scenario file's folder."""


class ProgramSpec(Part):
    """A program that runs as root of its node from `at` until it exits, is stopped, or the trial ends."""

    node: NodeName
    """Host or router; a list or a pattern such as `peer*` starts a program in each of several nodes."""
    run: Annotated[
        list[Value],
        Field(min_length=1, max_length=1000),
        BeforeValidator(_command, json_schema_input_type=str | list[str | int]),
    ]
    """Command line for the shell, or a list of the program and its arguments."""
    name: ProgramName | None = None
    """Name of its log, and in `after`. Default: the node and the entry's number, `h1-0`."""
    at: Start = Duration(0)
    """Start time, relative to the end of `after` if that is set."""
    after: Annotated[list[ProgramName], Field(max_length=64), Listed] = []
    """Programs above to wait for: until they are ready (those with `ready`), or until they exit."""
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Value] = {}
    """Environment variables in addition to `PATH`, `HOME` and `LANG`."""
    directory: Annotated[str, Field(max_length=1000, pattern=r"^/[^\x00]*$")] | None = None
    """Working directory. Default: /tmp/NAME, which plait creates."""
    files: Annotated[dict[FilePath, Word | InputContent], Field(max_length=64)] = {}
    """Files to write before it starts: {PATH: text}, or {PATH: {input: FILE}}."""
    collect: Annotated[list[FilePath], Field(max_length=64), Listed] = []
    """Output files to copy to programs/NAME/ of the trial's folder when the trial ends."""
    ready: ReadySpec | None = None
    """How plait recognises that it is ready."""
    wait: Annotated[bool, BeforeValidator(_waits)] = False
    """Whether the trial waits for its exit; otherwise plait stops it when the trial ends."""
    stop: StopSpec = StopSpec()
    """When and how plait stops it."""
    exit_code: Annotated[Whole, Field(ge=0, le=255)] | Literal["any"] = 0
    """Expected exit code if it exits by itself; any other code fails the trial."""
    transport: Transport | None = None
    """`mptcp`: TCP sockets of all programs in its node are MPTCP sockets. Default: the scenario's. A list is
    assigned to several nodes in turn."""
    result: Literal["iperf3", "json"] | None = None
    """Format of its output: `iperf3` (`iperf3 -J`), or `json` (the last line is an object of whole numbers).
    The report shows the results beside plait's."""
