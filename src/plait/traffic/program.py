"""Connections that programs open: no entry of the traffic, but flows that the analysis observes."""

from __future__ import annotations

from typing import Literal

from plait.traffic.job import FlowJob


class Connection(FlowJob):
    """The traffic of a program over its own connection. No plan contains it: the analysis adds what it observes."""

    kind: Literal["program"] = "program"
    program: str | None
    """The program that connected; None: unknown."""
    server_program: str | None
