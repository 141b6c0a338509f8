"""What programs must mean together: nodes and names that are there, one transport in a node, an end of the trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.scenario.read.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.scenario.fields.programs import ProgramSpec
    from plait.scenario.mistakes import FieldMistake, Where
    from plait.scenario.model import ScenarioModel


def program_name(program: ProgramSpec, number: int) -> str:
    """Returns the name of the entry at `number`, its own or the one that follows from its place."""
    return program.name or f"{program.node}-{number}"


def check_programs(scenario: ScenarioModel) -> Iterator[FieldMistake]:
    """Programs run in hosts and routers, each under a name of its own, and wait for programs above them."""
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
                guess = nearest(other, names) or "name one"
                yield (*here, "after", place), f"no program above is called '{other}'; {guess}"
            elif not _can_be_awaited(scenario.programs[names[other]]):
                message = f"'{other}' is never ready and does not end; give it ready, for example ready: {{tcp: 80}}"
                yield (*here, "after", place), message
        names.setdefault(name, i)
        yield from _transport(scenario, i, transports)
        if program.stop.at is not None and program.until == "exit":
            message = "it ends by itself (until: exit), and is stopped; leave one of them out"
            yield (*here, "stop", "at"), message
    yield from _end(scenario)


def _can_be_awaited(program: ProgramSpec) -> bool:
    return program.ready is not None or program.until == "exit"


def _transport(
    scenario: ScenarioModel, i: int, transports: dict[str, tuple[str, str]]
) -> Iterator[FieldMistake]:
    """The kernel's switch is a namespace's, so all programs of a node have one transport."""
    program = scenario.programs[i]
    transport = program.transport or scenario.transport
    first, other = transports.setdefault(program.node, (transport, program_name(program, i)))
    if first != transport:
        yield (
            ("programs", i, *(("transport",) if program.transport else ())),
            (
                f"its TCP sockets would be {transport}, and those of '{other}' in the same node {first}; "
                "that is one switch for a node: give both the same transport, or run them in two hosts"
            ),
        )


def _end(scenario: ScenarioModel) -> Iterator[FieldMistake]:
    """Something has to happen, and to end."""
    if scenario.traffic:
        return
    if not scenario.programs:
        yield (
            ("traffic",),
            "this is missing; write for example traffic: [{bulk: {from: h1, to: h2, duration: 10s}}]",
        )
    elif scenario.until is None and all(program.until == "end" for program in scenario.programs):
        yield (
            ("programs",),
            "nothing says when the trial ends; give a program `until: exit`, or the scenario until: 10s",
        )
