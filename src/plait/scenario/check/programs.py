"""Check programs: existing nodes, unique names, one transport per node, and an end of the trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.scenario.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.scenario.fields.programs import ProgramSpec
    from plait.scenario.mistakes import FieldMistake, Where
    from plait.scenario.model import ScenarioModel


def program_name(program: ProgramSpec, number: int) -> str:
    """Return the name of the program `number`: its `name`, or its node and number."""
    return program.name or f"{program.node}-{number}"


def check_programs(scenario: ScenarioModel) -> Iterator[FieldMistake]:
    """Yield mistakes: programs run in hosts and routers, have unique names, and wait only for programs above them."""
    nodes = {**scenario.network.hosts, **scenario.network.routers}
    names: dict[str, int] = {}
    transports: dict[str, tuple[str, str]] = {}
    for i, program in enumerate(scenario.programs):
        here: Where = ("programs", i)
        if program.node not in nodes:
            guess = nearest(program.node, nodes)
            yield (*here, "node"), f"no host or router is called '{program.node[:40]}'; {guess}"
        name = program_name(program, i)
        if program.name is not None and name in names:
            yield (*here, "name"), f"another program above is called '{name}'; choose another name"
        for place, other in enumerate(program.after):
            if other not in names:
                guess = nearest(other, names) or "write the name of a program above"
                yield (*here, "after", place), f"no program above is called '{other}'; {guess}"
            elif not _can_be_awaited(scenario.programs[names[other]]):
                message = f"'{other}' is never ready and does not end; add ready to it, for example ready: {{tcp: 80}}"
                yield (*here, "after", place), message
        names.setdefault(name, i)
        yield from _transport(scenario, i, transports)
        if program.stop.at is not None and program.wait:
            message = "the program has both wait: true and a time at which it is stopped; remove one of them"
            yield (*here, "stop", "at"), message
    yield from _end(scenario)


def _can_be_awaited(program: ProgramSpec) -> bool:
    return program.ready is not None or program.wait


def _transport(
    scenario: ScenarioModel, i: int, transports: dict[str, tuple[str, str]]
) -> Iterator[FieldMistake]:
    """Yield a mistake if programs of a node differ in transport: the kernel has one switch per namespace."""
    program = scenario.programs[i]
    transport = program.transport or scenario.transport
    first, other = transports.setdefault(program.node, (transport, program_name(program, i)))
    if first != transport:
        yield (
            ("programs", i, *(("transport",) if program.transport else ())),
            (
                f"its TCP sockets would be {transport}, those of '{other}' in the same node {first}, but a node has "
                "one setting; give both the same transport, or run them in two hosts"
            ),
        )


def _end(scenario: ScenarioModel) -> Iterator[FieldMistake]:
    """Yield a mistake if the trial has neither traffic nor programs, or no end."""
    if scenario.traffic:
        return
    if not scenario.programs:
        yield (
            ("traffic",),
            "this field is missing; write for example traffic: [{bulk: {from: h1, to: h2, duration: 10s}}]",
        )
    elif scenario.until is None and not any(program.wait for program in scenario.programs):
        yield (
            ("programs",),
            "the trial has no end; add wait: true to a program, or until: 10s to the scenario",
        )
