"""Check traffic and programs: existing nodes, links and flows, unique names, and an end of the trial."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from plait.scenario.fields.programs import ProgramSpec
from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.model import ScenarioModel
from plait.scenario.names import is_address
from plait.scenario.wording import nearest
from plait.traffic.spec import FlowSpec


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
            elif (awaited := scenario.programs[names[other]]).ready is None and not awaited.wait:
                message = f"'{other}' is never ready and does not end; add ready to it, for example ready: {{tcp: 80}}"
                yield (*here, "after", place), message
        names.setdefault(name, i)
        yield from _transport(scenario, i, transports)
        if program.stop.at is not None and program.wait:
            message = "the program has both wait: true and a time at which it is stopped; remove one of them"
            yield (*here, "stop", "at"), message
    yield from _end(scenario)


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


def check_traffic(scenario: ScenarioModel, links_of: Mapping[str, set[str]]) -> Iterator[FieldMistake]:
    """Yield mistakes: flows run between two different hosts, over links of them; `links_of` holds the links of each."""
    hosts = scenario.network.hosts
    names: dict[str, int] = {}
    links = scenario.network.links
    for i, entry in enumerate(scenario.traffic):
        flow, here = entry.flow, ("traffic", i, entry.key)
        for field, host in (("from", flow.from_), ("to", flow.to)):
            if host not in hosts:
                yield (*here, field), f"no host is called '{host[:40]}'; {nearest(host, hosts)}"
        if flow.from_ == flow.to:
            yield (*here, "to"), f"'{flow.to[:40]}' sends to itself; write another host"
        if flow.name is not None and flow.name in names:
            yield (
                (*here, "name"),
                f"'{flow.name}' is also the name of entry {names[flow.name]}; choose another name",
            )
        names.setdefault(flow.name or "", i)
        for field, message in _ends(flow, links_of, links):
            yield (*here, field), message
    if scenario.traffic and not scenario.programs and all(e.flow.background for e in scenario.traffic):
        yield (
            ("traffic",),
            "all flows are in the background, so no flow is measured; remove background from a flow",
        )


def _ends(
    flow: FlowSpec, links_of: Mapping[str, set[str]], links: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each end that is not a link of its host; for an unknown host, of no host."""
    client, server = (flow.from_, flow.to)[:: -1 if flow.connects_to_sender else 1]
    for field, value, host in (
        ("via", flow.via, client),
        ("bind", flow.bind, client),
        ("connect", flow.connect, server),
    ):
        names = links_of.get(host, links)
        if value is not None and not is_address(value) and value not in names:
            subject = f"{host} has" if host in links_of else "there is"
            yield field, f"{subject} no link '{value[:40]}'; {nearest(value, names)}"
