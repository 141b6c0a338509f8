"""Programs of this machine that run in nodes of the laboratory, and what they need and leave."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from plait.scenario.fields.parts import NodeName, Part, Start, Transport, Whole, listed
from plait.units import Duration, Size

Word = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
ProgramName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$")]
Port = Annotated[Whole, Field(ge=1, le=65_535)]
FilePath = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")]
"""Relative to the program's directory, or absolute."""


class Patience(Duration):
    """How long something is waited for, in virtual time."""

    least = 10**6
    most = 3600 * 10**9
    step = 1000


class Memory(Size):
    """Memory of a guest."""

    least = 256 * 2**20
    most = 64 * 2**30


SHELL = ["/bin/sh", "-c"]
"""What a command line is given to."""


def _command(value: object) -> object:
    """A text is a shell's command line; a list is a program and its arguments."""
    return [*SHELL, value] if isinstance(value, str) else value


def _text(value: object) -> object:
    return str(value) if type(value) is int else value


Value = Annotated[Word, BeforeValidator(_text, json_schema_input_type=str | int)]
"""A text, or a whole number as it stands."""


class ReadySpec(Part):
    """How it shows that a program is ready for others: exactly one of the first four."""

    tcp: Port | None = None
    """Somebody in its node listens on this TCP port."""
    udp: Port | None = None
    """A UDP socket in its node has this port."""
    file: FilePath | None = None
    """This file is there."""
    log: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """A line that it has printed contains this text."""
    within: Patience = Patience(30 * 10**9)
    """It is ready that long after its start, or the trial fails."""

    @model_validator(mode="after")
    def _require_one_condition(self) -> Self:
        if sum(condition is not None for condition in (self.tcp, self.udp, self.file, self.log)) != 1:
            raise ValueError(
                "a program shows that it is ready by one thing; give exactly one of tcp, udp, file and log, "
                "for example ready: {tcp: 80}"
            )
        return self


class StopSpec(Part):
    """How a program is ended that does not end by itself."""

    at: Start | None = None
    """When. Default: at the end of the trial."""
    signal: Literal["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL"] = "TERM"
    grace: Patience = Patience(10**9)
    """What has not ended that long after the signal is killed, with all that it has started."""


class InputContent(Part):
    """A file of this machine, the trial's own copy of it."""

    input: FilePath
    """Relative to the scenario file's folder."""


class ProgramSpec(Part):
    """A program, run as root of its node from `at` until it ends, is stopped, or the trial ends."""

    node: NodeName
    """A host or router; several, as a list or a pattern such as `peer*`, have a program each (see generators)."""
    run: Annotated[
        list[Value],
        Field(min_length=1, max_length=1000),
        BeforeValidator(_command, json_schema_input_type=str | list[str | int]),
    ]
    """A command line for the shell, or a list: the program and its arguments."""
    name: ProgramName | None = None
    """Of its log, and for `after`. Default: the node and the entry's number, `h1-0`."""
    at: Start = Start(0)
    """When it starts; counted from what it waits for, if it does."""
    after: Annotated[
        list[ProgramName],
        Field(max_length=64),
        BeforeValidator(listed, json_schema_input_type=str | list[str]),
    ] = []
    """Programs above that have to be ready (those with `ready`) or to have ended before it starts."""
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Value] = {}
    """Beside `PATH`, `HOME` and `LANG`."""
    directory: Annotated[str, Field(max_length=1000, pattern=r"^/[^\x00]*$")] | None = None
    """Where it runs. Default: /tmp/NAME, which is made for it."""
    files: Annotated[dict[FilePath, Word | InputContent], Field(max_length=64)] = {}
    """What is written before it starts: {PATH: text}, or {PATH: {input: FILE}}."""
    collect: Annotated[
        list[FilePath], Field(max_length=64), BeforeValidator(listed, json_schema_input_type=str | list[str])
    ] = []
    """Files that it leaves, copied to programs/NAME/ of the trial's folder when the trial ends."""
    ready: ReadySpec | None = None
    """How it shows that it is ready for what comes after it."""
    until: Literal["exit", "end"] = "end"
    """`exit`: it ends by itself, and the trial waits for that. `end`: it is stopped when the trial ends."""
    stop: StopSpec = StopSpec()
    """How it is stopped, and when."""
    exit_code: Annotated[Whole, Field(ge=0, le=255)] | Literal["any"] = 0
    """What is expected of it when it ends by itself; anything else fails the trial."""
    transport: Transport | None = None
    """`mptcp`: its TCP sockets are MPTCP sockets, and so are those of all programs in its node. Default: the
    scenario's. For several nodes a list is taken in turn."""
    result: Literal["iperf3"] | None = None
    """What it prints is the JSON of `iperf3 -J`, whose figures stand beside plait's."""
