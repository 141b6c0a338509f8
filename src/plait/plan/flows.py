"""The flows of a plan: their sides, paths, start offsets from the seed, and the rate that the links allow them."""

from __future__ import annotations

from collections.abc import Iterator

from plait.errors import FieldMistakesError, refuse_fields
from plait.frames import frame_bytes
from plait.plan.links.shared_buckets import takes_tokens
from plait.plan.model.plan import Flow, Side, SideName
from plait.plan.model.sockets import SocketOptions
from plait.plan.structure import Structure
from plait.plan.traffic.applications import application
from plait.plan.traffic.entries import Entry
from plait.plan.traffic.flow_paths import directed
from plait.plan.traffic.flow_slots import Slot, copies, slots, transport_of
from plait.scenario.check.programs import program_name
from plait.scenario.fields.conditions import Conditions
from plait.scenario.scenario import Scenario
from plait.scenario.wording import nearest
from plait.traffic.job import PATIENCE_US
from plait.traffic.spec import ConnectionSpec
from plait.traffic.udp import Udp

FIRST_PORT = 5001
DRAIN_US = 100_000
"""The wait for a UDP packet beyond its longest possible delay."""


def sampled(planned: tuple[Flow, ...], most: int | None) -> tuple[Flow, ...]:
    """Return the flows; all but `most` connections, evenly spread over the plan, are marked as unsampled.

    A generator plans hosts in the order of the network, so the first connections would be those of one corner of it.
    Flows that share a connection, and the connections of a page, count as one.
    """
    if most is None:
        return planned
    whole = {flow.id: _first_of(flow) for flow in planned if flow.transport in ("tcp", "mptcp")}
    firsts = list(dict.fromkeys(whole.values()))
    left_out = {first for place, first in enumerate(firsts) if place * most % len(firsts) >= most}
    return tuple(
        flow.model_copy(update={"unsampled": True}) if whole.get(flow.id) in left_out else flow
        for flow in planned
    )


def _first_of(flow: Flow) -> int:
    page = flow.application.page_flow
    return flow.carrier if page is None else page


def flows(shape: Structure) -> Iterator[Flow]:
    """Yield the flows in the order of the traffic, before the seed affects them."""
    scenario = shape.net.scenario
    first = 0
    before: dict[int, tuple[int, ...]] = {}
    names: dict[str, list[int]] = {}
    programs = frozenset(program_name(program, i) for i, program in enumerate(scenario.programs))
    for number, slot in enumerate(slots(scenario)):
        entry = shape.entries[slot.entry]
        spec = entry.spec
        first = number if slot.part == 0 else first
        if slot.turn == 0 and slot.part == 0:
            before[slot.copy] = () if spec.after in programs else _preceding_flows(entry, names)
        transport = transport_of(scenario, slot)
        carried, sender = entry.carried(slot), entry.sender_of(slot)
        paths, ideal = shape.paths_and_ideal(entry, transport, sender)
        start_us = nominal_start_us(scenario, slot)
        job = application(scenario, slot, first, start_us, seed=0)
        if isinstance(job, Udp):
            job = job.model_copy(update={"drain_us": _drain_us(entry, sender, shape)})
        c0, s0 = entry.initial
        yield Flow(
            id=number,
            name=slot.name,
            application=job,
            transport=transport,  # type: ignore[arg-type]  # one of the four
            client=Side(netns=c0.node, address=str(c0.ip), port=0),
            server=Side(
                netns=s0.node,
                address=str(s0.ip),
                port=FIRST_PORT + (first if carried else number),
            ),
            sender=sender,
            start_us=start_us,
            after=before[slot.copy],
            after_programs=(spec.after,) if spec.after in programs and slot.turn == 0 else (),
            connection=first if carried else None,
            user=slot.user,
            background=spec.background,
            group=spec.group,
            socket=_socket(entry, transport),
            joins=shape.manager.joins(entry.initial) if transport == "mptcp" and not carried else (),
            paths=paths,
            ideal_rate_bps=ideal,
        )
        if slot.part == spec.parts - 1:
            before[slot.copy] = tuple(range(first, number + 1))
        _register_names(scenario, slot, number, names)


def check_subflows(shape: Structure) -> None:
    """Refuse paths without a subflow. Raise FieldMistakesError."""
    mistakes = []
    for entry in shape.entries:
        opened = shape.manager.pairs(entry.initial) if entry.uses_mptcp else [entry.initial]
        for j in range(1, len(entry.spec.paths)):
            wanted = shape.routing.reach.explicit.named[entry.index, j]
            if not any(pair in opened for pair in wanted):
                client, server = wanted[0]
                there = ", ".join(f"{c.ip} to {s.ip}" for c, s in opened)
                message = (
                    f"the path manager opens no subflow from {client.ip} to {server.ip}, only {there}; choose "
                    "endpoints and limits that open it, or leave the path out"
                )
                mistakes.append((("traffic", entry.index, entry.key, "paths", j), message))
    refuse_fields(mistakes)


def nominal_start_us(scenario: Scenario, slot: Slot) -> int:
    """Return the start of a flow without its jitter, from zero or from the end of the flow before it."""
    spec = scenario.traffic[slot.entry].flow
    if slot.turn:
        return spec.round_gap.us
    return spec.start.us + spec.spread.us * slot.copy // copies(spec)


def _preceding_flows(entry: Entry, names: dict[str, list[int]]) -> tuple[int, ...]:
    """Return the flows that an entry follows."""
    if entry.spec.after is None:
        return ()
    numbers = names.get(entry.spec.after)
    if numbers is None:
        message = f"no flow above is called '{entry.spec.after[:60]}'; {nearest(entry.spec.after, names) or 'name one'}"
        raise FieldMistakesError((("traffic", entry.index, entry.key, "after"), message))
    return tuple(numbers)


def _register_names(scenario: Scenario, slot: Slot, number: int, names: dict[str, list[int]]) -> None:
    """Record the names by which other flows can refer to this flow: its own, and its entry's."""
    traffic = scenario.traffic[slot.entry]
    if slot.name in names:
        message = f"there is a flow '{slot.name}' above already; give this entry another name"
        raise FieldMistakesError((("traffic", slot.entry, traffic.key), message))
    names[slot.name] = [number]
    whole = traffic.flow.name or f"{traffic.kind}{slot.entry + 1}"
    if whole != slot.name:
        names.setdefault(whole, []).append(number)


def _socket(entry: Entry, transport: str) -> SocketOptions:
    spec = entry.spec
    common = SocketOptions(
        send_buffer=spec.send_buffer and int(spec.send_buffer),
        receive_buffer=spec.receive_buffer and int(spec.receive_buffer),
        mark=spec.mark,
        dscp=spec.dscp,
    )
    # net/mptcp/sockopt.c sets IP_TOS, but neither TCP_MAXSEG nor IPV6_TCLASS
    refused = {"mss": "TCP_MAXSEG"} | ({"dscp": "IPV6_TCLASS"} if entry.initial[0].ip.version == 6 else {})
    for field, option in refused.items():
        if transport == "mptcp" and getattr(spec, field) is not None:
            message = f"Linux 6.12 refuses {option} on MPTCP sockets; leave it out, or set transport: tcp"
            raise FieldMistakesError((("traffic", entry.index, entry.key, field), message))
    if not isinstance(spec, ConnectionSpec):
        return common
    of_tcp = {
        "scheduler": spec.scheduler if transport == "mptcp" else None,
        "congestion_control": spec.congestion_control,
        "nodelay": spec.nodelay,
        "notsent_lowat": spec.notsent_lowat and int(spec.notsent_lowat),
        "mss": spec.mss,
    }
    return common.model_copy(update=of_tcp)


def _drain_us(entry: Entry, sender: SideName, shape: Structure) -> int:
    """Return how long the last packet can take: all delays, and all queues full before it."""
    forward, _ = directed(sender, entry.initial, shape.routing)
    longest = DRAIN_US
    for port in forward:
        conditions = port.conditions
        longest += (
            (conditions.delay or 0) + (0 if conditions.jitter is None else conditions.jitter.most_ns)
        ) // 1000
        if conditions.aqm is not None or takes_tokens(shape.net, port):
            return PATIENCE_US
        if conditions.rate is not None:
            longest += _queue_us(conditions, port.link.spec.mtu)
    return min(longest, PATIENCE_US)


def _queue_us(conditions: Conditions, mtu: int) -> int:
    """Return the time that a full queue takes to drain; for a multiple of the BDP, one second and 100 frames."""
    queue, rate = conditions.queue, conditions.rate
    assert rate is not None
    if queue is None or queue.unit == "bdp":
        return 1_000_000 + 100 * frame_bytes(mtu) * 8_000_000 // int(rate)
    size = int(queue.amount) * (1 if queue.unit == "B" else frame_bytes(mtu))
    return size * 8_000_000 // int(rate)
