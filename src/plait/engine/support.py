"""The features of plans that not every engine has, and the places in which a plan uses them.

An engine states which features it lacks, and why. `plait.study.preflight.engines` refuses a scenario that uses one,
with the place in the scenario and the engines that have it. What depends on the engine's kernel (algorithms, sysctls)
is in its inventory instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from plait.plan.links.changes import link_changes
from plait.plan.model.plan import Plan
from plait.plan.model.programs import SYSTEM_CALL_NS

Feature = Literal[
    "links",
    "traces",
    "plait_red",
    "switches",
    "openflow",
    "nat",
    "middleboxes",
    "modules",
    "programs",
    "pauses",
    "captures",
    "probes",
    "trace events",
    "link events",
    "bucket events",
    "node events",
    "shared sysctls",
    "system call time",
    "processors",
    "instruction time",
    "offloads",
    "hosts",
    "flows",
    "interface counters",
    "unsampled flows",
]
"""Features of plans. `links`: links with conditions that the engine applies. `bucket events`: events that change a
token bucket and keep its tokens. `shared sysctls`: settings that the kernel has once for all hosts. `system call time`,
`instruction time`: virtual time that each of them takes. `processors`: more than one. `hosts`: nodes and addresses that
the user need not map. `flows`: every kind of traffic and socket option."""
Part = Literal["links", "nodes", "traffic", "programs", "monitors", "events", "pause", "settings", "machine"]


@dataclass(frozen=True)
class Use:
    """A use of a feature in a plan."""

    feature: Feature
    part: Part
    """The part of the scenario that asks for it."""
    name: str = ""
    """The link, node, program, .. in that part; of `settings`, the scenario's field; empty: the part as a whole."""


@dataclass(frozen=True)
class Unsupported:
    """A feature that an engine lacks, and why."""

    use: Use
    reason: str
    """A sentence without its subject, which is the engine: `has no queue that replays a trace`."""


def lacking(plan: Plan, lacks: Mapping[Feature, str]) -> list[Unsupported]:
    """Return the uses in `plan` of the features in `lacks`, with the reasons."""
    return [Unsupported(use, lacks[use.feature]) for use in uses(plan) if use.feature in lacks]


def uses(plan: Plan) -> Iterator[Use]:
    """Yield what a plan uses of the features above."""
    yield from _links(plan)
    yield from _nodes(plan)
    yield from _events(plan)
    for program in plan.programs:
        yield Use("programs", "programs", program.name)
    for capture in plan.monitors.captures:
        yield Use("captures", "monitors", capture.file)
    for probe in plan.monitors.probes:
        yield Use("probes", "monitors", probe.path)
    if plan.monitors.trace:
        yield Use("trace events", "monitors")
    if any(flow.unsampled for flow in plan.flows):
        yield Use("unsampled flows", "settings", "sample")
    if plan.pause:
        yield Use("pauses", "pause")
    yield from _machine(plan)


def _links(plan: Plan) -> Iterator[Use]:
    names = {side.ifname: link.name for link in plan.links for side in link.directions}
    for link in plan.links:
        yield Use("links", "links", link.name)
    for link in plan.links:
        for side in link.directions:
            if side.trace is not None:
                yield Use("traces", "links", link.name)
            if side.aqm == "plait_red":
                yield Use("plait_red", "links", link.name)
    for box in plan.network.middleboxes:
        yield Use("middleboxes", "links", names.get(box.source, names.get(box.target, "")))


def _nodes(plan: Plan) -> Iterator[Use]:
    for bridge in plan.network.bridges:
        yield Use("switches", "nodes", bridge.netns)
    for datapath in plan.network.datapaths:
        yield Use("openflow", "nodes", datapath.netns)
    for nat in plan.network.nats:
        yield Use("nat", "nodes", nat.netns)


def _events(plan: Plan) -> Iterator[Use]:
    for event in plan.events:
        kinds = {action.kind for action in event.actions}
        if kinds & {"change_link", "set_device"}:
            yield Use("link events", "events")
        if kinds - {"change_link", "set_device"}:
            yield Use("node events", "events")
    moved = (
        change for change in link_changes(plan) if change.moves_rate and change.now.baseline_bps is not None
    )
    for _, subject in dict.fromkeys((change.event.t_us, change.event.subject) for change in moved):
        yield Use("bucket events", "events", subject)


def _machine(plan: Plan) -> Iterator[Use]:
    if plan.machine.modules:
        yield Use("modules", "settings")
    if plan.machine.sysctls:
        yield Use("shared sysctls", "settings", "tcp")
    if plan.machine.syscall_ns not in (0, SYSTEM_CALL_NS if plan.programs else 0):  # not the default
        yield Use("system call time", "settings", "system_call")
    if plan.machine.processors > 1:
        yield Use("processors", "machine", "processors")
    if plan.machine.instruction_ns > 1:
        yield Use("instruction time", "machine", "nanoseconds_per_instruction")
    if plan.machine.offloads:
        yield Use("offloads", "machine", "offloads")
