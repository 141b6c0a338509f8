"""Events of hosts: endpoints that come, go and change, limits, kernel settings; what holds after each of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from plait.plan.model.mptcp import (
    AddEndpoint,
    ChangeEndpoint,
    Endpoint,
    RemoveEndpoint,
    SetLimits,
    SetSysctl,
)
from plait.plan.mptcp.pm_state import MAX_ENDPOINTS, HostEndpoint
from plait.plan.network import sysctls
from plait.scenario.fields.events import HostHappening, host_happenings
from plait.scenario.fields.host_events import EndpointChange, LimitsEvent
from plait.scenario.fields.settings import EndpointSpec
from plait.scenario.read.located import error_at
from plait.units import Duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.plan.network.model import Port, Topology

    Action = AddEndpoint | ChangeEndpoint | RemoveEndpoint | SetLimits | SetSysctl
    Endpoints = dict[str, list[HostEndpoint]]
    Limits = dict[str, tuple[int, int]]
    Where = tuple[str | int, ...]

_NAMES = {
    "add": "endpoint_add",
    "change": "endpoint_change",
    "remove": "endpoint_remove",
    "limits": "limits_set",
    "sysctls": "sysctl_set",
}
OF_MPTCP = ("endpoint_add", "endpoint_change", "endpoint_remove", "limits_set")
"""Names of events after which a flow may have other subflows than before."""


@dataclass(frozen=True)
class HostEvent:
    """One event of a host, with what is done to its kernel."""

    at: int
    """In ns of the trial."""
    name: str
    host: str
    text: str
    action: Action
    where: Where
    own: HostEndpoint | None = None
    """The endpoint that comes."""


class States:
    """What the endpoints and limits of all hosts are at first, and after each event."""

    def __init__(self, topology: Topology, first: Endpoints) -> None:
        self._topology = topology
        self._happenings = host_happenings(topology.scenario.events)
        self._used = {host: {own.id for own in owns} for host, owns in first.items()}
        self.endpoints: list[Endpoints] = [first]
        """After each event; the first are those of the beginning."""
        self._done: list[tuple[HostEndpoint | None, Action | None]] = []
        for one in self._happenings:
            now = self.endpoints[-1]
            if one.what in ("add", "change", "remove"):
                owns, own, action = self._take(one, now[one.host])
                self._done.append((own, action))
                now = {**now, one.host: owns}
            else:
                self._done.append((None, None))
            self.endpoints.append(now)

    def limits(self, first: Limits) -> list[Limits]:
        """The limits at first and after each event."""
        found = [first]
        for one in self._happenings:
            now = found[-1]
            if isinstance(one.detail, LimitsEvent):
                subflows, accepted = now[one.host]
                given = one.detail
                subflows = subflows if given.subflows is None else given.subflows
                accepted = accepted if given.add_addr_accepted is None else given.add_addr_accepted
                now = {**now, one.host: (subflows, accepted)}
            found.append(now)
        return found

    def events(self, first: Limits) -> Iterator[HostEvent]:
        """All events in the order of their times, with what each does."""
        for one, (own, done), now in zip(self._happenings, self._done, self.limits(first)[1:], strict=True):
            action = done
            if one.what == "limits":
                subflows, accepted = now[one.host]
                action = SetLimits(netns=one.host, subflows=subflows, add_addr_accepted=accepted)
            elif isinstance(one.detail, tuple):
                name, value = one.detail
                action = SetSysctl(netns=one.host, path=sysctls.path(name), value=value)
            assert action is not None  # endpoints have theirs
            yield HostEvent(one.at, _NAMES[one.what], one.host, _text(one, action), action, one.where, own)

    def _take(
        self, one: HostHappening, owns: list[HostEndpoint]
    ) -> tuple[list[HostEndpoint], HostEndpoint | None, Action]:
        """The endpoints after it, the one that has come, and what is done."""
        if isinstance(one.detail, EndpointSpec):
            return self._add(one, one.detail, owns)
        if isinstance(one.detail, EndpointChange):
            return self._change(one, one.detail, owns)
        assert isinstance(one.detail, str)
        port = _port(self._topology, one.host, one.detail, one.where)
        own = _at(owns, one.detail)
        address = str((port if own is None else own.port).ip)
        number = 0 if own is None or own.id is None else own.id
        rest = [other for other in owns if other is not own]
        return rest, None, RemoveEndpoint(netns=one.host, address=address, id=number)

    def _add(
        self, one: HostHappening, spec: EndpointSpec, owns: list[HostEndpoint]
    ) -> tuple[list[HostEndpoint], HostEndpoint, AddEndpoint]:
        own = _own(self._topology, one.host, spec, one.where)
        used = self._used[one.host]
        if own.id is None:
            own = replace(own, id=next(n for n in range(1, 256) if n not in used))
        after = [*owns, own]
        _refuse_clashes(self._topology, one.host, after, [(*one.where, "link")] * len(after))
        used.add(own.id)
        return after, own, AddEndpoint(netns=one.host, endpoint=planned(own))

    def _change(
        self, one: HostHappening, change: EndpointChange, owns: list[HostEndpoint]
    ) -> tuple[list[HostEndpoint], None, ChangeEndpoint]:
        name = change.link or change.address or ""
        own = _at(owns, name)
        if own is None:
            what = (
                f"{one.host} has no endpoint at {name} at {Duration(one.at)}; add one first, or give it one under "
                f"mptcp.endpoints.{one.host}"
            )
            raise error_at(
                self._topology.scenario, [((*one.where, "link" if change.link else "address"), what)]
            )
        flags = [flag for flag in own.flags if flag not in ("backup", "fullmesh")]
        for flag in ("backup", "fullmesh"):
            wanted = getattr(change, flag)
            if wanted if wanted is not None else flag in own.flags:
                flags.append(flag)
        if "fullmesh" in flags and "signal" in flags:
            what = f"the endpoint of {one.host} at {name} is announced (signal), and fullmesh is for what connects"
            raise error_at(self._topology.scenario, [((*one.where, "fullmesh"), what)])
        changed = replace(own, flags=tuple(flags))
        after = [changed if other is own else other for other in owns]
        assert own.id is not None  # all are numbered
        action = ChangeEndpoint(
            netns=one.host,
            address=str(own.port.ip),
            id=own.id,
            backup="backup" in flags,
            fullmesh="fullmesh" in flags,
        )
        return after, None, action


def given(topology: Topology, host: str) -> list[HostEndpoint]:
    """The endpoints that a scenario gives a host at first. Raises ScenarioError where the kernel would refuse them."""
    specs = topology.scenario.mptcp.endpoints[host]
    here: list[Where] = [("mptcp", "endpoints", host, i) for i in range(len(specs))]
    owns = [_own(topology, host, spec, where) for spec, where in zip(specs, here, strict=True)]
    _refuse_clashes(topology, host, owns, here)
    return owns


def changed_ports(topology: Topology, host: str) -> set[Port]:
    """The interfaces of a host whose endpoints events change: one with the initial subflow needs an endpoint, too."""
    found: set[Port] = set()
    for one in host_happenings(topology.scenario.events):
        if one.host == host and isinstance(one.detail, EndpointChange):
            name, field = (
                one.detail.link or one.detail.address or "",
                "link" if one.detail.link else "address",
            )
            found.add(_port(topology, host, name, (*one.where, field)))
    return found


def numbered(owns: list[HostEndpoint]) -> list[HostEndpoint]:
    """The endpoints, each with an id."""
    used = {own.id for own in owns if own.id is not None}
    free = (number for number in range(1, 256) if number not in used)
    return [own if own.id is not None else replace(own, id=next(free)) for own in owns]


def planned(own: HostEndpoint) -> Endpoint:
    """An endpoint as the plan has it."""
    assert own.id is not None  # all are numbered
    flags = own.flags
    return Endpoint(address=str(own.port.ip), id=own.id, flags=flags, port=own.listen)  # type: ignore[arg-type]


def _own(topology: Topology, host: str, spec: EndpointSpec, where: Where) -> HostEndpoint:
    name, field = (spec.link, "link") if spec.link is not None else (spec.address or "", "address")
    return HostEndpoint(_port(topology, host, name, (*where, field)), tuple(spec.flags), spec.id, spec.port)


def _port(topology: Topology, host: str, name: str, where: Where) -> Port:
    """The interface of a host on a link, or with an address."""
    for port in topology.ports[host]:
        if _fits(port, name):
            return port
    have = ", ".join(str(port.ip) for port in topology.ports[host])
    raise error_at(topology.scenario, [(where, f"{host} has no address {name}; it has {have}")])


def _at(owns: list[HostEndpoint], name: str) -> HostEndpoint | None:
    return next((own for own in owns if _fits(own.port, name)), None)


def _fits(port: Port, name: str) -> bool:
    if port.wired.key == name:
        return True
    try:
        return ip_address(name) == port.ip
    except ValueError:
        return False


def _refuse_clashes(topology: Topology, host: str, owns: list[HostEndpoint], places: list[Where]) -> None:
    """The kernel takes an address once (with several ports, once each), an id once, and eight endpoints."""
    seen: set[object] = set()
    for own, where in zip(owns, places, strict=True):
        key = (own.port, own.listen)
        what = None
        if key in seen:
            what = f"{host} has an endpoint at {own.port.ip} already; leave one out, or change its flags"
        elif own.id is not None and own.id in seen:
            what = f"{host} has an endpoint with id {own.id} already; choose another, or leave the id out"
        elif len(owns) > MAX_ENDPOINTS:
            what = f"{host} would have {len(owns)} endpoints; the kernel takes at most {MAX_ENDPOINTS}"
        if what is not None:
            raise error_at(topology.scenario, [(where, what)])
        seen |= {key, own.id} - {None}


def _text(one: HostHappening, action: Action) -> str:
    """`phone: endpoint 10.0.1.1 is backup`, in words for marks in figures."""
    match action:
        case AddEndpoint(endpoint=endpoint):
            words = f"endpoint {endpoint.address} comes ({', '.join(endpoint.flags)})"
        case ChangeEndpoint():
            asked = {flag: getattr(one.detail, flag) for flag in ("backup", "fullmesh")}
            flags = [flag if on else f"no {flag}" for flag, on in asked.items() if on is not None]
            words = f"endpoint {action.address}: {', '.join(flags)}"
        case RemoveEndpoint():
            words = f"endpoint {action.address} goes"
        case SetLimits():
            words = f"limits: {action.subflows} subflows, {action.add_addr_accepted} announcements accepted"
        case SetSysctl():
            words = f"{action.path.replace('/', '.')} = {action.value}"
    return f"{one.host}: {words}"
