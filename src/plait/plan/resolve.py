"""Derive a plan from a scenario and a seed, in this order.

topology (segments, interfaces) -> addressing -> routing -> traffic's initial pairs -> endpoints and limits
-> flows and their paths -> links and their queues -> events.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import get_args

from plait.errors import FieldMistakesError, RequestError
from plait.plan import events
from plait.plan.finding import LintFinding
from plait.plan.flows import check_subflows, flows, sampled
from plait.plan.links import links
from plait.plan.links.distributions import UNIFORM, table
from plait.plan.links.shared_buckets import buckets
from plait.plan.model.forwarding import Nat
from plait.plan.model.links import ChangeLink, Link, LinkDirection
from plait.plan.model.plan import Bridge, Event, Flow, Machine, Measure, Namespace, Network, PauseAt, Plan
from plait.plan.model.qdiscs import Distribution, PlaitRed
from plait.plan.mptcp.path_manager import PathManager
from plait.plan.network import openflow, sysctls, topology
from plait.plan.network.middlebox import middleboxes
from plait.plan.network.model import WIRE, Topology, mac
from plait.plan.structure import Structure, structure
from plait.plan.traffic.applications import application, length_us
from plait.plan.traffic.flow_paths import directed, spread
from plait.plan.traffic.flow_slots import Slot, slots, total
from plait.plan.traffic.monitors import buffers_mib, monitors
from plait.plan.traffic.programs import (
    end_us,
    host_names,
    memory_mib,
    programs,
    prototype_programs,
    system_call_ns,
)
from plait.scenario import Scenario
from plait.scenario.fields.nodes import Host
from plait.scenario.generators.patterns import MAX_FLOWS
from plait.scenario.located import located, locating
from plait.seeds import SEED_BITS, derived

MEMORY_MIB = 256
MAX_MEMORY_MIB = 16_384
MAX_MESSAGES = 2_000_000
"""The limit for one trial. plait refuses a scenario with more; it never samples them."""
MAX_START_JITTER_US = 10_000_000
GRACE_US = 5_000_000
"""Time after the expected end of the last flow."""
_MESSAGE_BYTES = 64
"""An upper bound of the agent's memory for one message."""


def resolve(scenario: Scenario, seed: int) -> Plan:
    """Return the plan of one trial of a case with this seed (below 2**53).

    Ignores the scenario's `vary`, `repeat` and `seed`. A study resolves each case once (see `plait.plan.case_plan`).
    Raises ScenarioError if the scenario is impossible: unreachable hosts, address conflicts, cycles of switches,
    exceeded limits.
    """
    return seeded(without_seed(scenario)[0], scenario, seed)


@locating
def without_seed(scenario: Scenario) -> tuple[Plan, list[list[LintFinding]]]:
    """Return the part of a plan that does not depend on the seed, and the missing subflows of each traffic entry.

    Raises ScenarioError (see `resolve`).
    """
    _refuse_excess(scenario)
    shape = structure(scenario)
    net, routing, manager = shape.net, shape.routing, shape.manager
    routes, rules = routing.routes()
    check_subflows(shape)
    planned_flows = sampled(tuple(flows(shape)), scenario.sample.flows)
    rtts = _rtts(shape)
    planned_links = tuple(links.link(wired, rtts) for wired in net.wires)
    _refuse_too_many_messages(planned_flows)
    watched = monitors(net, planned_flows)
    memory = _memory_mib(scenario, planned_flows, buffers_mib(watched))
    shared_buckets, ifbs, redirects = buckets(net, rtts)
    namespaces = _namespaces(net)
    network = Network(
        namespaces=namespaces,
        veths=tuple(veth for wired in net.wires for veth in links.veths(wired)),
        bridges=_bridges(net),
        datapaths=tuple(openflow.datapaths(net)),
        ifbs=ifbs,
        redirects=(
            *(redirect for wired in net.wires for redirect in links.redirects(wired)),
            *redirects,
        ),
        routes=tuple(routes),
        rules=tuple(rules),
        nats=tuple(_nats(net)),
        middleboxes=tuple(box for wired in net.wires for box in middleboxes(wired)),
        mptcp=tuple(manager.plan()),
    )
    plan = Plan(
        seed=0,
        machine=Machine(
            memory_mib=memory,
            syscall_ns=system_call_ns(scenario),
            sysctls=sysctls.of_kernel(
                memory, namespaces, planned_flows, manager.settings(), scenario.tcp.machine_memory
            ),
            processors=scenario.machine.processors,
            instruction_ns=scenario.machine.nanoseconds_per_instruction,
            offloads=scenario.machine.offloads,
        ),
        sample_interval_us=scenario.sample.every.us,
        end_us=0,
        network=network,
        links=planned_links,
        buckets=shared_buckets,
        flows=planned_flows,
        measure=_measure(scenario),
        monitors=watched,
        programs=(*programs(scenario), *prototype_programs(planned_flows)),
        names=host_names(net),
        peers=tuple(shape.program_pairs.peers()),
        pause=tuple(at for at in get_args(PauseAt) if at in scenario.pause),
    )
    return _with_events(plan, net, manager, rtts), shape.missing_subflows()


def _with_events(plan: Plan, net: Topology, manager: PathManager, rtts: dict[str, int]) -> Plan:
    """Return the plan with its events up to the latest end of any seed, and with all distribution tables."""
    end_us = _end_us(net.scenario, plan, plan.flows) + MAX_START_JITTER_US
    planned_events = events.plan(net, manager, rtts, plan.network.routes, end_us * 1000)
    tables = distributions(plan.links, planned_events)
    network = plan.network.model_copy(update={"distributions": tables})
    return plan.model_copy(update={"network": network, "events": planned_events})


def distributions(links: Iterable[Link], planned_events: Iterable[Event]) -> tuple[Distribution, ...]:
    """Return each distribution table of delays, at the start or after an event."""
    sides = [side for link in links for side in link.directions]
    sides += [
        act.direction for event in planned_events for act in event.actions if isinstance(act, ChangeLink)
    ]
    named = {side.jitter_distribution for side in sides} - {None, UNIFORM}
    return tuple(table(name) for name in sorted(filter(None, named)))


def reseeded(link: Link, seed: int) -> Link:
    """Return the link with the seeds that a trial's seed gives its directions."""
    return link.model_copy(update={"directions": tuple(_reseeded(side, seed) for side in link.directions)})


def _reseeded(side: LinkDirection, seed: int) -> LinkDirection:
    update: dict[str, object] = {"seed": derived(seed, "netem", side.name)}
    if isinstance(side.manager, PlaitRed):
        update["manager"] = side.manager.model_copy(update={"seed": derived(seed, "plait_red", side.name)})
    return side.model_copy(update=update)


def seeded(plan: Plan, scenario: Scenario, seed: int) -> Plan:
    """Return the plan with all values that the seed determines: netem's seeds, the flows' starts, and the end.

    Raises RequestError for a seed out of range.
    """
    if not 0 <= seed < 2**SEED_BITS:
        raise RequestError(f"seed {seed} is out of range; use a whole number from 0 to 2**{SEED_BITS} - 1")
    namespaces = tuple(
        sysctls.reseeded(space, derived(seed, "ecmp", space.name)) for space in plan.network.namespaces
    )
    datapaths = tuple(
        openflow.reseeded(path, derived(seed, "openflow", path.netns)) for path in plan.network.datapaths
    )
    network = {"namespaces": namespaces, "datapaths": datapaths}
    with located(scenario):
        started = tuple(
            _started(flow, scenario, slot, seed)
            for flow, slot in zip(plan.flows, slots(scenario), strict=True)
        )
    return plan.model_copy(
        update={
            "seed": seed,
            "end_us": _end_us(scenario, plan, started),
            "network": plan.network.model_copy(update=network),
            "links": tuple(reseeded(link, seed) for link in plan.links),
            "flows": events.without_fixed_limits(plan, started),
        }
    )


def _started(flow: Flow, scenario: Scenario, slot: Slot, seed: int) -> Flow:
    """Return a flow with the start and the application's random values that follow from the seed."""
    spec = scenario.traffic[slot.entry].flow
    start_us = flow.start_us
    if slot.turn == 0 and (slot.part == 0 or flow.connection is not None):
        start_us += derived(seed, "start", slot.entry, slot.copy) % (spec.start_jitter.us + 1)
    drawn = application(scenario, slot, flow.carrier, start_us, seed)
    job = drawn.seeded_from(flow.application)
    return flow.model_copy(update={"start_us": start_us, "application": job})


def _refuse_excess(scenario: Scenario) -> None:
    """Raise ScenarioError if there are too many flows, before plait builds anything."""
    count = total(scenario)
    if count > MAX_FLOWS:
        problem = f"the entries have {count} flows in total; a plan has at most {MAX_FLOWS}"
        raise FieldMistakesError((("traffic",), problem))


def _namespaces(net: Topology) -> tuple[Namespace, ...]:
    """Return the namespaces of the nodes in the order of their declaration, and last the wire."""
    scenario = net.scenario
    ipv6 = any(
        port.address is not None and port.address.version == 6 for ps in net.ports.values() for port in ps
    )
    out = []
    for role, nodes in (
        ("host", scenario.network.hosts),
        ("switch", scenario.network.switches),
        ("router", scenario.network.routers),
    ):
        base = sysctls.of_node(scenario, role, ipv6=ipv6)
        common = sysctls.given(scenario.sysctls) if role == "host" else []
        for name, options in nodes.items():
            specific = sysctls.of_host(options) if isinstance(options, Host) else []
            specific += sysctls.given(getattr(options, "sysctls", {}))
            settings = sysctls.merged(base, common, specific)
            out.append(Namespace(name=name, role=role, sysctls=settings))  # type: ignore[arg-type]  # one of the three roles
    wire = sysctls.of_node(scenario, "wire", ipv6=False)
    return (*out, Namespace(name=WIRE, role="wire", sysctls=tuple(wire)))


def _nats(net: Topology) -> Iterator[Nat]:
    for router, options in net.scenario.network.routers.items():
        if options.nat:
            ports = {port.link.key: port.ifname for port in net.ports[router]}
            yield Nat(netns=router, outside=tuple(ports[link] for link in options.nat))


def _bridges(net: Topology) -> tuple[Bridge, ...]:
    return tuple(
        Bridge(
            netns=switch,
            ifname=openflow.BRIDGE,
            mac=mac(2, number),
            ports=tuple(port.ifname for port in net.ports[switch]),
        )
        for number, (switch, options) in enumerate(net.scenario.network.switches.items())
        if options.openflow is None
    )


def _rtts(shape: Structure) -> dict[str, int]:
    """Return the largest base RTT in ns of the paths that cross each link direction.

    All pairs of addresses of a flow's hosts count, for every transport and initial path: the queue of a link must be
    the same in all compared cases.
    """
    rtts: dict[str, int] = {}
    routing = shape.routing
    done: set[frozenset[str]] = set()
    ways = [(entry.sender, entry.spec.from_, entry.spec.to, entry.usable) for entry in shape.entries]
    ways += [
        ("client", client, server, pairs) for (client, server), pairs in shape.program_pairs.pairs.items()
    ]
    for sender, *ends, usable in ways:
        hosts = frozenset(ends)
        if hosts in done:
            continue
        done.add(hosts)
        for pair in usable:
            forward, backward = directed(sender, pair, routing)
            rtt = topology.delay_ns(forward) + topology.delay_ns(backward)
            for port in (*forward, *backward, *spread(pair, routing)):
                rtts[port.out] = max(rtts.get(port.out, 0), rtt)
    return rtts


def _memory_mib(scenario: Scenario, planned: tuple[Flow, ...], rings: int) -> int:
    """Return the guest's memory: ample for all socket buffers, the nodes and links, and the recorded data.

    The kernel's accounting doubles the buffers. Frames in flight are also in their sender's buffer. Unused memory
    costs nothing.
    """
    sockets = sum(
        (flow.socket.send_buffer or int(scenario.tcp.send_buffer_max))
        + (flow.socket.receive_buffer or int(scenario.tcp.receive_buffer_max))
        for flow in planned
    )
    network = scenario.network
    nodes = len(network.hosts) + len(network.switches) + len(network.routers)
    recorded = _MESSAGE_BYTES * sum(flow.application.messages(flow) for flow in planned)
    needed = 128 + rings + (2 * sockets + recorded) // 2**20 + nodes + len(network.links) // 4
    needed += memory_mib(scenario)
    if scenario.memory is not None:
        needed = -(-int(scenario.memory) // 2**20)
    return max(MEMORY_MIB, min(MAX_MEMORY_MIB, -(-needed // 64) * 64))


def _refuse_too_many_messages(planned: tuple[Flow, ...]) -> None:
    """Raise ScenarioError if the flows send more messages than a trial can record."""
    count = sum(flow.application.messages(flow) for flow in planned)
    if count > MAX_MESSAGES:
        most = max(planned, key=lambda flow: flow.application.messages(flow))
        problem = (
            f"the flows would send {count} messages, most of them {most.name}; a trial records at most {MAX_MESSAGES}. "
            "Send fewer and larger messages, or send for a shorter time"
        )
        raise FieldMistakesError((("traffic",), problem))


def _measure(scenario: Scenario) -> Measure | None:
    """Return the window of the steady goodput."""
    window = scenario.measure
    if window is None:
        return None
    begin, end = window.from_, window.to
    return Measure(
        from_us=-begin.offset.us if begin.before_end else begin.offset.us,
        to_us=(-end.offset.us or None) if end.before_end else end.offset.us,
    )


def _end_us(scenario: Scenario, plan: Plan, planned: tuple[Flow, ...]) -> int:
    """Return the trial's end: `until`, or the end of all flows if those of a fixed size get a tenth of their rate."""
    if scenario.until is not None:
        return scenario.until.us
    baselines = _baselines(plan)
    steady = tuple(_without_tokens(flow, baselines) for flow in planned)
    ends: list[int] = []
    for flow in steady:
        begin = max((ends[other] for other in flow.after), default=0) + flow.start_us
        ends.append(begin + length_us(flow, steady))
    changed = [event.t_us for event in plan.events if event.text]
    return max([*ends, end_us(scenario)]) + max(changed, default=0) + GRACE_US


def _without_tokens(flow: Flow, baselines: dict[str, int]) -> Flow:
    """Return the flow with the lowest baseline rate of its token buckets as its ideal rate."""
    slow = [baselines[name] for path in flow.paths for name in path.forward if name in baselines]
    return flow.model_copy(update={"ideal_rate_bps": min(slow)}) if slow else flow


def _baselines(plan: Plan) -> dict[str, int]:
    """Return the baseline rate of the token buckets of each link direction, in bit/s."""
    baselines = {
        name: direction.baseline_bps
        for name, direction in plan.directions.items()
        if direction.baseline_bps is not None
    }
    for bucket in plan.buckets:
        for name in bucket.directions:
            baselines[name] = min(baselines.get(name, bucket.baseline_bps), bucket.baseline_bps)
    return baselines
