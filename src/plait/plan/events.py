"""Events as actions on the kernel's objects: each change of a link, in the order of time.

The state of a link is its conditions, whether it is cut, and whether it is down. An event's actions are the
directions whose conditions differ after it. A change of the rate leaves the length of the queue: a queue is a piece of
equipment, and plait computes a `bdp` once, and again only if an event sets the queue. `host_events.py` derives the
events of hosts.
"""

from __future__ import annotations

from collections.abc import Iterable

from plait.errors import FieldMistakesError
from plait.plan.links import links
from plait.plan.links.chain import can_become
from plait.plan.links.changes import link_changes
from plait.plan.model.links import ChangeLink, LinkDirection, VethEnd
from plait.plan.model.plan import Action, Event, Flow, Plan, Route, SetDevice
from plait.plan.mptcp.host_events import OF_MPTCP, HostEvent
from plait.plan.mptcp.path_manager import PathManager
from plait.plan.network.model import Port, Topology, TopologyLink
from plait.plan.network.traces import MAX_STEPS, Step, steps
from plait.scenario.fields.conditions import Conditions
from plait.scenario.fields.events import Change, Happening, happenings

_NS_PER_US = 1000


def plan(
    net: Topology, manager: PathManager, rtts: dict[str, int], routes: tuple[Route, ...], end: int
) -> tuple[Event, ...]:
    """Return the events of a scenario and the steps of its traces up to `end` ns, in the order of their times.

    Raise FieldMistakesError if an event needs another kind of link.
    """
    states: dict[str, _LinkChanges] = {}

    def state_of(link: TopologyLink) -> _LinkChanges:
        if link.key not in states:
            states[link.key] = _LinkChanges(link, rtts, routes)
        return states[link.key]

    by_name: dict[str, tuple[TopologyLink, tuple[bool, ...]]] = {}
    for link in net.wires:
        by_name[link.key] = (link, (True, False))
        for forward in (True, False):
            by_name[link.name.direction(forward=forward)] = (link, (forward,))
    events = []
    for happening in _in_time(net, manager, end):
        actions: tuple[Action, ...]
        if isinstance(happening, HostEvent):
            name, subject, text = happening.name, happening.host, happening.text
            actions = (happening.action,)
        elif isinstance(happening, Step):
            name, subject, text = "trace_step", happening.port.out, ""
            actions = state_of(happening.port.link).follow(happening)
        else:
            link, sides = by_name[happening.subject]
            name, subject, text = f"link_{happening.kind}", happening.subject, _text(happening)
            actions = state_of(link).take(happening, sides)
            if not actions and happening.kind != "set":
                continue
        events.append(
            Event(t_us=happening.at // _NS_PER_US, name=name, subject=subject, text=text, actions=actions)
        )
    return tuple(events)


def without_fixed_limits(planned: Plan, flows: tuple[Flow, ...]) -> tuple[Flow, ...]:
    """Return the flows, without the fixed rates of links whose rate changes.

    Those flows lose their ideal rate, and the changed paths their rate. MPTCP flows lose the ideal rate also if
    the endpoints or limits of their hosts change.
    """
    hosts = {event.subject for event in planned.events if event.name in OF_MPTCP}
    changing = _changing_rates(planned)
    out = []
    for flow in flows:
        paths = tuple(
            path.model_copy(update={"rate_bps": None}) if changing & set(path.forward) else path
            for path in flow.paths
        )
        managed = flow.transport == "mptcp" and hosts & {flow.client.netns, flow.server.netns}
        changed = {} if paths == flow.paths and not managed else {"paths": paths, "ideal_rate_bps": None}
        out.append(flow.model_copy(update=changed))
    return tuple(out)


def _changing_rates(planned: Plan) -> set[str]:
    """Return the directions whose rate changes: they go down, are cut, or get another rate."""
    links_ = {link.name: {direction.name for direction in link.directions} for link in planned.links}
    changing = {change.now.name for change in link_changes(planned) if change.moves_rate}
    for event in planned.events:
        if event.name in ("link_down", "link_cut", "link_up"):
            changing |= links_.get(event.subject, {event.subject})
    return changing


def _in_time(net: Topology, manager: PathManager, end: int) -> list[Happening | HostEvent | Step]:
    """Return everything that happens; at one time, first the steps of traces, then events as written."""
    ports = [port for link in net.wires for port in link.ports]
    moves: list[Step] = []
    for step in steps(ports, end):
        moves.append(step)
        if len(moves) > MAX_STEPS:
            message = (
                f"the traces of all links make more than {MAX_STEPS} changes within the {end / 1e9:g} s that a trial "
                "may take; give fewer rows, or end the trial earlier (until)"
            )
            raise FieldMistakesError((("network", "links", step.port.link.key, "trace"), message))
    written: list[Happening | HostEvent] = [*happenings(net.scenario.events), *manager.events]
    written.sort(
        key=lambda happening: (happening.at, str(happening.where[1]).zfill(4))
    )  # the number of the event
    return sorted([*moves, *written], key=lambda happening: happening.at)


def _text(happening: Happening) -> str:
    """Return the label of the event's mark in figures: `h1-s1 down`, `h1-s1: rate 2mbit`."""
    if isinstance(happening.detail, Change):
        return f"{happening.subject}: {', '.join(_conditions(happening.detail))}"
    return f"{happening.subject} {happening.kind}"


def _conditions(change: Change) -> list[str]:
    parts = [("", change), ("forward ", change.forward), ("backward ", change.backward)]
    return [
        f"{side}{name} {getattr(part, name)}"
        for side, part in parts
        if part is not None
        for name in Conditions.model_fields
        if name in part.model_fields_set
    ]


class _LinkChanges:
    """The state of one link during a trial."""

    def __init__(self, link: TopologyLink, rtts: dict[str, int], routes: tuple[Route, ...]) -> None:
        self._link = link
        self._routes = routes
        self._down = False
        self._sides = {
            forward: _Direction(port, rtts) for forward, port in zip((True, False), link.ports, strict=True)
        }

    def take(self, happening: Happening, sides: tuple[bool, ...]) -> tuple[ChangeLink | SetDevice, ...]:
        """Return the actions of an event. Raise FieldMistakesError if it needs another kind of link."""
        actions: list[ChangeLink | SetDevice] = []
        if happening.kind == "down" or (happening.kind == "up" and len(sides) == 2 and self._down):
            self._down = happening.kind == "down"
            actions += [self._device(veth.a) for veth in links.veths(self._link)]
        if happening.kind == "down":
            return tuple(actions)
        for forward in sides:
            direction = self._sides[forward]
            if isinstance(happening.detail, Change):
                changes = direction.set(happening.detail.given(forward=forward))
            else:
                changes = direction.cut(happening.kind == "cut")
            if changes is None:
                message = (
                    f"the event would change the kind of queue or of link of {happening.subject}, or give or take its "
                    f"token bucket; give the link the same kind from the start, under network.links.{self._link.key}"
                )
                raise FieldMistakesError((happening.where, message))
            actions += changes
        return tuple(actions)

    def follow(self, step: Step) -> tuple[ChangeLink, ...]:
        """Return the change with a step of a trace."""
        changes = self._sides[step.port.at_a].set(step.given)
        assert changes is not None  # rate, delay and loss need no other kind of link
        return changes

    def _device(self, end: VethEnd) -> SetDevice:
        """Return the action that sets a node's interface down, or up with the state that the kernel has dropped."""
        if self._down:
            return SetDevice(netns=end.netns, ifname=end.ifname, up=False)
        return up_again(end, self._routes)


def up_again(end: VethEnd, routes: Iterable[Route]) -> SetDevice:
    """Return the action that sets a node's interface up again.

    It restores the addresses and those of `routes` that the kernel has dropped.
    """
    return SetDevice(
        netns=end.netns,
        ifname=end.ifname,
        up=True,
        addresses=tuple(address for address in end.addresses if ":" in address),
        routes=tuple(r for r in routes if (r.netns, r.device) == (end.netns, end.ifname)),
    )


class _Direction:
    """The state of one direction of a link during a trial."""

    def __init__(self, port: Port, rtts: dict[str, int]) -> None:
        self._port = port
        self._place = links.place(port, rtts)
        self._conditions = links.settled(port.conditions, self._place)
        self._cut = False
        self._planned = self._now()

    def set(self, given: dict[str, object]) -> tuple[ChangeLink, ...] | None:
        """Apply other conditions; the queue stays unless `given` sets it."""
        self._conditions = links.settled(self._conditions.model_copy(update=given), self._place)
        return self._changed()

    def cut(self, cut: bool) -> tuple[ChangeLink, ...] | None:
        """Start or end the loss of all packets."""
        self._cut = cut
        return self._changed()

    def _now(self) -> LinkDirection:
        planned = links.direction(self._port, self._place, self._conditions)
        return planned.model_copy(update=_LOSING_ALL) if self._cut else planned

    def _changed(self) -> tuple[ChangeLink, ...] | None:
        """Return the change, if any; None if no kernel can make it."""
        before, self._planned = self._planned, self._now()
        if not can_become(before, self._planned):
            return None
        return () if before == self._planned else (ChangeLink(direction=self._planned),)


_LOSING_ALL = {"loss_ratio": 1.0, "loss_burst_packets": None, "gemodel": None}
