"""The programs of a plan. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.plan.watching import Program

if TYPE_CHECKING:
    from plait.scenario import Scenario

SYSTEM_CALL_NS = 1000
"""Virtual time that a system call takes where programs run: one that polls without sleeping would stop the clock."""
ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
"""Of every program, whoever runs plait."""


def programs(scenario: Scenario) -> tuple[Program, ...]:
    """The programs, with the same environment on every machine."""
    return tuple(
        Program(
            name=asked.name or f"{asked.node}-{number}",
            netns=asked.node,
            argv=tuple(asked.run),
            environment=tuple(sorted({**ENVIRONMENT, **asked.environment}.items())),
            start_us=asked.at.us,
        )
        for number, asked in enumerate(scenario.programs)
    )


def system_call_ns(scenario: Scenario) -> int:
    """The virtual cost of a system call."""
    if scenario.system_call is not None:
        return int(scenario.system_call)
    return SYSTEM_CALL_NS if scenario.programs else 0
