"""Programs of this machine that run in nodes of the laboratory."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from plait.scenario.parts import NodeName, Part, Start

Word = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]


def _command(value: object) -> object:
    """A text is a shell's command line; a list is a program and its arguments."""
    return ["/bin/sh", "-c", value] if isinstance(value, str) else value


class Program(Part):
    """A program, run as root of its node from `at` until it ends or the trial does."""

    node: NodeName
    """A host or router."""
    run: Annotated[
        list[Word],
        Field(min_length=1, max_length=1000),
        BeforeValidator(_command, json_schema_input_type=str | list[str]),
    ]
    """A command line for the shell, or a list: the program and its arguments."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$")] | None = None
    """Of its log. Default: the node and the entry's number, `h1-0`."""
    at: Start = Start(0)
    """When it starts."""
    environment: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], Word] = {}
    """Beside `PATH` and `HOME`."""
