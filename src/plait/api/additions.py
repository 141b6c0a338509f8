"""Adds a scheduler or congestion control from one C file: builds, loads, tries and stores it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.engine.virtual.trial import VirtualEngine
from plait.engine.virtual.watch import TrialLimits
from plait.engine.workspace import Workspace, working_folder
from plait.errors import RequestError, TrialError
from plait.files import Folder
from plait.kernel import Kernel, additions
from plait.kernel.additions import AdditionRecord, AlgorithmSource
from plait.plan.model.plan import Plan
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

_TRY = """
title: A transfer over two paths, to try an algorithm
network:
  hosts: [h1, h2]
  routers: [r1, r2]
  links:
    h1-r1: {rate: 10mbit, delay: 5ms}
    r1-h2:
    h1-r2: {rate: 10mbit, delay: 10ms}
    r2-h2:
traffic: [{transfer: {from: h1, to: h2, bytes: 1MB}}]
until: 30s
"""
_LIMITS = TrialLimits(total_s=120, stall_s=30)


@dataclass(frozen=True)
class Addition:
    """An addition, and the result of its trial."""

    record: AdditionRecord
    warnings: str
    """The warnings of the compiler, or an empty string."""
    replaced: tuple[AdditionRecord, ...]
    """Earlier additions with the same names, which no name selects any more."""
    tried: dict[str, str]
    """By name, a sentence on a transfer of 1 MB over two paths with it."""


def add(path: Path, kernel: Kernel, agent: Path) -> Addition:
    """Add the algorithms in the C file at `path`; load them into `kernel` to learn their names.

    Raises:
        RequestError: the file does not compile, does not load, or registers no algorithm.
        MachineError: this machine or this kernel cannot build modules.
    """
    source = additions.read(path)
    plan = _plan()
    with working_folder() as workspace:
        # Under its lock, `plait store prune` leaves the kernel and its kit alone.
        built = additions.compile_module(kernel, source)
        module = workspace.path / "module.ko"
        Folder(workspace.path).write(module.name, built.content)
        engine = VirtualEngine(kernel, agent, _LIMITS, build=lambda _: module)
        record = _record(engine, plan, source, workspace)
        tried = {
            name: _sentence(engine, _using(plan, source, name, record), workspace) for name in record.names
        }
    replaced = additions.keep(kernel, source, built, record)
    return Addition(record, built.warnings, tuple(replaced), tried)


def _plan() -> Plan:
    return resolve(expand(parse(_TRY, "the scenario that tries additions"))[0].scenario, 1)


def _record(
    engine: VirtualEngine, plan: Plan, source: AlgorithmSource, workspace: Workspace
) -> AdditionRecord:
    """Load the module and return its record, with the algorithms that it registers."""
    try:
        status = _run(engine, _loading(plan, source), workspace.job())
    except TrialError as error:
        raise RequestError(f"{source.path} compiles, but loading it failed: {error}") from error
    brought = status["brought"]
    record = additions.record_of(source, tuple(brought["schedulers"]), tuple(brought["congestion_controls"]))
    if not record.names:
        raise RequestError(
            f"{source.path} compiles and loads, but registers neither a scheduler (PLAIT_SCHEDULER) "
            "nor a congestion control (tcp_register_congestion_control)"
        )
    return record


def _loading(plan: Plan, source: AlgorithmSource) -> Plan:
    return plan.model_copy(update={"machine": plan.machine.model_copy(update={"modules": (source.module,)})})


def _using(plan: Plan, source: AlgorithmSource, name: str, record: AdditionRecord) -> Plan:
    """Return the plan with the algorithm in use."""
    text = json.loads(_loading(plan, source).model_dump_json(by_alias=True))
    setting = "net/mptcp/scheduler" if name in record.schedulers else "net/ipv4/tcp_congestion_control"
    allowed = "net/ipv4/tcp_allowed_congestion_control"
    for path_and_value in text["machine"]["sysctls"]:
        if path_and_value[0] == allowed and name in record.congestion_controls:
            path_and_value[1] += f" {name}"
    for space in text["network"]["namespaces"]:
        if space["role"] == "host":
            space["sysctls"] = [pair for pair in space["sysctls"] if pair[0] != setting] + [[setting, name]]
    return type(plan).model_validate_json(json.dumps(text))


def _sentence(engine: VirtualEngine, plan: Plan, workspace: Workspace) -> str:
    """Return a sentence on the transfer; it has the trace of a crash."""
    work = workspace.job()
    try:
        _run(engine, plan, work)
    except TrialError as error:
        return f"a transfer over two paths failed: {error}"
    flow = convert(work / "data", work / "tables")["flows"].row(0, named=True)
    if flow["error"] is not None:
        return f"a transfer over two paths failed: {flow['error']}"
    if not flow["completed"]:
        return f"a transfer over two paths stopped at {flow['received_bytes']} of 1000000 bytes"
    goodput = flow["received_bytes"] * 8 / (flow["end_us"] - flow["start_us"])
    return f"a transfer of 1 MB over two paths of 10 Mbit/s: {goodput:.1f} Mbit/s"


def _run(engine: VirtualEngine, plan: Plan, folder: Path) -> dict[str, dict[str, list[str]]]:
    engine.execute(Job(plan, {}, folder))
    status: dict[str, dict[str, list[str]]] = json.loads((folder / "status.json").read_text(encoding="utf-8"))
    return status
