"""The programs of a plan: those of the scenario, and those that run its prototype connections."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator

from plait.errors import FieldMistakesError
from plait.plan.model.plan import Flow, HostName
from plait.plan.model.programs import SYSTEM_CALL_NS, Program, ProgramFile, Ready, Stop
from plait.plan.network.model import Topology
from plait.plan.traffic.flow_slots import copies
from plait.scenario import Scenario
from plait.scenario.check.programs import program_name
from plait.scenario.fields import programs as asked
from plait.traffic.prototype import Prototype

ENVIRONMENT = {
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}
"""The environment of every program, whoever runs plait."""
PATIENCE_US = 600_000_000
"""The time limit of a program that the trial waits for, unless the scenario has an `until`."""
MEMORY_MIB, MEMORY_MIB_EACH = 256, 96
"""For the files that programs read and write, and for each program. Memory costs nothing until it is used."""

PYTHON = ("python3", "-I", "-S", "-B")
"""The interpreter of the guest, without the user's settings, installed packages and files of compiled code."""
_GRACE_US = 100_000
_RUN = "import sys; sys.path.insert(0, '.'); from plait.prototype.main import main; main()"


def programs(scenario: Scenario) -> tuple[Program, ...]:
    """Return the programs, with the same environment on every machine."""
    return tuple(_program(scenario, spec, number) for number, spec in enumerate(scenario.programs))


def _program(scenario: Scenario, spec: asked.ProgramSpec, number: int) -> Program:
    name = program_name(spec, number)
    directory = spec.directory or f"/tmp/{name}"  # noqa: S108 - of the guest, empty when the trial begins
    awaited = spec.wait
    return Program(
        name=name,
        netns=spec.node,
        argv=tuple(spec.run),
        environment=tuple(sorted({**ENVIRONMENT, **spec.environment}.items())),
        start_us=spec.at.us,
        after=tuple(spec.after),
        directory=directory,
        files=tuple(_file(scenario, number, directory, path) for path in spec.files),
        collect=tuple(_absolute(directory, path) for path in spec.collect),
        ready=_ready(directory, spec.ready),
        awaited=awaited,
        stop=Stop(
            at_us=None if spec.stop.at is None else spec.stop.at.us,
            signal=int(getattr(signal, f"SIG{spec.stop.signal}")),
            grace_us=spec.stop.grace.us,
        ),
        exit_code=None if spec.exit_code == "any" else spec.exit_code,
        transport=spec.transport or scenario.transport,
        result=spec.result,
    )


def _file(scenario: Scenario, number: int, directory: str, path: str) -> ProgramFile:
    content = scenario.programs[number].files[path]
    where = _absolute(directory, path)
    if isinstance(content, str):
        return ProgramFile(path=where, text=content)
    facts = scenario.files.get(content.input)
    if facts is None:
        message = (
            f"the file '{content.input}' has not been read; read the scenario with plait.scenario.read.load"
        )
        raise FieldMistakesError((("programs", number, "files", path, "input"), message))
    return ProgramFile(path=where, input=facts.sha256)


def _absolute(directory: str, path: str) -> str:
    return path if path.startswith("/") else f"{directory.rstrip('/')}/{path}"


def _ready(directory: str, spec: asked.ReadySpec | None) -> Ready | None:
    if spec is None:
        return None
    file = None if spec.file is None else _absolute(directory, spec.file)
    return Ready(tcp=spec.tcp, udp=spec.udp, file=file, log=spec.log, within_us=spec.within.us)


def prototype_programs(flows: Iterable[Flow]) -> Iterator[Program]:
    """Yield the program of each prototype connection, in the node that sends."""
    for flow in flows:
        if not isinstance(flow.application, Prototype):
            continue
        name = f"prototype.{flow.id}"
        directory = f"/tmp/{name}"  # noqa: S108 - of the guest, empty when the trial begins
        yield Program(
            name=name,
            netns=flow.client.netns,
            argv=(*PYTHON, "-c", _RUN),
            environment=tuple(sorted(ENVIRONMENT.items())),
            start_us=0,
            directory=directory,
            stop=Stop(signal=int(signal.SIGTERM), grace_us=_GRACE_US),
            exit_code=0,
            flow=flow.id,
        )


def host_names(net: Topology) -> tuple[HostName, ...]:
    """Return names for programs, if there are any.

    `h1` is its first address; `h1-eth0`, `h1-eth1`, .. have one address each.
    """
    scenario = net.scenario
    if not scenario.programs:
        return ()
    nodes = (*scenario.network.hosts, *scenario.network.routers)
    names = []
    for node in nodes:
        ports = net.ports[node]
        names += [HostName(address=str(port.ip), name=node) for port in ports[:1]]
        names += [HostName(address=str(port.ip), name=port.ifname) for port in ports]
    return tuple(names)


def memory_mib(scenario: Scenario) -> int:
    """Return the memory for programs beyond that of flows and nodes, also for those at a prompt."""
    running = len(scenario.programs) + sum(
        copies(entry.prototype) for entry in scenario.traffic if entry.prototype is not None
    )
    if not running and not scenario.pause:
        return 0
    return MEMORY_MIB + MEMORY_MIB_EACH * running


def end_us(scenario: Scenario) -> int:
    """Return the time limit of the last program that the trial waits for."""
    awaited = [program for program in scenario.programs if program.wait]
    return max((program.at.us + PATIENCE_US for program in awaited), default=0)


def system_call_ns(scenario: Scenario) -> int:
    """Return the virtual cost of a system call: the configured one, or a default if the scenario runs programs."""
    if scenario.system_call is not None:
        return int(scenario.system_call)
    prototypes = any(entry.prototype is not None for entry in scenario.traffic)
    return SYSTEM_CALL_NS if scenario.programs or prototypes else 0
