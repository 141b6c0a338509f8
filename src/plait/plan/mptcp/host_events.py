"""Events of hosts: added, removed and changed endpoints, limits, kernel settings; and the state after each event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from plait.errors import FieldMistakesError
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
from plait.plan.network.model import Port, Topology
from plait.scenario.fields.events import Happening, host_happenings
from plait.scenario.fields.host_events import EndpointChange
from plait.scenario.fields.settings import EndpointSpec, LimitsSpec
from plait.scenario.mistakes import Where
from plait.units import Duration

Action = AddEndpoint | ChangeEndpoint | RemoveEndpoint | SetLimits | SetSysctl
Endpoints = dict[str, list[HostEndpoint]]
Limits = dict[str, tuple[int, int]]

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
    """One event of a host, with the action on its kernel."""

    at: int
    """In ns of the trial."""
    name: str
    host: str
    text: str
    action: Action
    where: Where
    endpoint: HostEndpoint | None = None
    """The endpoint that the event adds."""


class States:
    """The endpoints and limits of all hosts at the start, and after each event."""

    def __init__(self, topology: Topology, first: Endpoints) -> None:
        self._topology = topology
        self._happenings = host_happenings(topology.scenario.events)
        self._used = {host: {endpoint.id for endpoint in endpoints} for host, endpoints in first.items()}
        self.endpoints: list[Endpoints] = [first]
        """After each event; the first entry is the start."""
        self._done: list[tuple[HostEndpoint | None, Action | None]] = []
        for happening in self._happenings:
            now = self.endpoints[-1]
            endpoints, endpoint, action = self._take(happening, now.get(happening.subject, []))
            self._done.append((endpoint, action))
            self.endpoints.append({**now, happening.subject: endpoints} if happening.subject in now else now)

    def limits(self, first: Limits) -> list[Limits]:
        """Return the limits at the start and after each event."""
        limits = [first]
        for happening in self._happenings:
            now = limits[-1]
            if isinstance(happening.detail, LimitsSpec):
                now = {**now, happening.subject: happening.detail.over(now[happening.subject])}
            limits.append(now)
        return limits

    def events(self, first: Limits) -> Iterator[HostEvent]:
        """Yield all events in the order of their times, with their actions."""
        for happening, (endpoint, done), now in zip(
            self._happenings, self._done, self.limits(first)[1:], strict=True
        ):
            action = done
            if action is None:
                subflows, accepted = now[happening.subject]
                action = SetLimits(netns=happening.subject, subflows=subflows, add_addr_accepted=accepted)
            assert action is not None  # all other events have one
            yield HostEvent(
                happening.at,
                _NAMES[happening.kind],
                happening.subject,
                _text(happening, action),
                action,
                happening.where,
                endpoint,
            )

    def _take(
        self, happening: Happening, endpoints: list[HostEndpoint]
    ) -> tuple[list[HostEndpoint], HostEndpoint | None, Action | None]:
        """Return the endpoints after the event, the added endpoint, and the action unless that is of limits."""
        if isinstance(happening.detail, LimitsSpec):
            return endpoints, None, None
        if isinstance(happening.detail, tuple):
            name, value = happening.detail
            return endpoints, None, SetSysctl(netns=happening.subject, path=sysctls.path(name), value=value)
        if isinstance(happening.detail, EndpointSpec):
            return self._add(happening, happening.detail, endpoints)
        if isinstance(happening.detail, EndpointChange):
            return self._change(happening, happening.detail, endpoints)
        assert isinstance(happening.detail, str)
        port = _port(self._topology, happening.subject, happening.detail, happening.where)
        endpoint = _endpoint_at(endpoints, happening.detail)
        address = str((port if endpoint is None else endpoint.port).ip)
        number = 0 if endpoint is None or endpoint.id is None else endpoint.id
        rest = [other for other in endpoints if other is not endpoint]
        return rest, None, RemoveEndpoint(netns=happening.subject, address=address, id=number)

    def _add(
        self, happening: Happening, spec: EndpointSpec, endpoints: list[HostEndpoint]
    ) -> tuple[list[HostEndpoint], HostEndpoint, AddEndpoint]:
        endpoint = _host_endpoint(self._topology, happening.subject, spec, happening.where)
        used = self._used[happening.subject]
        if endpoint.id is None:
            endpoint = replace(endpoint, id=next(n for n in range(1, 256) if n not in used))
        after = [*endpoints, endpoint]
        _refuse_clashes(happening.subject, after, [(*happening.where, "link")] * len(after))
        used.add(endpoint.id)
        return after, endpoint, AddEndpoint(netns=happening.subject, endpoint=planned(endpoint))

    def _change(
        self, happening: Happening, change: EndpointChange, endpoints: list[HostEndpoint]
    ) -> tuple[list[HostEndpoint], None, ChangeEndpoint]:
        name, field = _named(change)
        endpoint = _endpoint_at(endpoints, name)
        if endpoint is None:
            message = (
                f"{happening.subject} has no endpoint at {name} at {Duration(happening.at)}; add one first, or give it "
                f"one under mptcp.endpoints.{happening.subject}"
            )
            raise FieldMistakesError(((*happening.where, field), message))
        flags = [flag for flag in endpoint.flags if flag not in ("backup", "fullmesh")]
        for flag in ("backup", "fullmesh"):
            wanted = getattr(change, flag)
            if wanted if wanted is not None else flag in endpoint.flags:
                flags.append(flag)
        if "fullmesh" in flags and "signal" in flags:
            message = (
                f"the endpoint of {happening.subject} at {name} has the flag signal, which excludes fullmesh; "
                "leave fullmesh out"
            )
            raise FieldMistakesError(((*happening.where, "fullmesh"), message))
        changed = replace(endpoint, flags=tuple(flags))
        after = [changed if other is endpoint else other for other in endpoints]
        assert endpoint.id is not None  # all are numbered
        action = ChangeEndpoint(
            netns=happening.subject,
            address=str(endpoint.port.ip),
            id=endpoint.id,
            backup="backup" in flags,
            fullmesh="fullmesh" in flags,
        )
        return after, None, action


def given(topology: Topology, host: str) -> list[HostEndpoint]:
    """Return the endpoints that a scenario gives a host at the start.

    Raise FieldMistakesError if the kernel would refuse them.
    """
    specs = topology.scenario.mptcp.endpoints[host]
    here: list[Where] = [("mptcp", "endpoints", host, i) for i in range(len(specs))]
    endpoints = [_host_endpoint(topology, host, spec, where) for spec, where in zip(specs, here, strict=True)]
    _refuse_clashes(host, endpoints, here)
    return endpoints


def changed_ports(topology: Topology, host: str) -> set[Port]:
    """Return the interfaces of a host whose endpoints events change.

    The interface of the initial subflow then needs an endpoint, too.
    """
    ports: set[Port] = set()
    for happening in host_happenings(topology.scenario.events):
        if happening.subject == host and isinstance(happening.detail, EndpointChange):
            name, field = _named(happening.detail)
            ports.add(_port(topology, host, name, (*happening.where, field)))
    return ports


def numbered(endpoints: list[HostEndpoint]) -> list[HostEndpoint]:
    """Return the endpoints, each with an id."""
    used = {endpoint.id for endpoint in endpoints if endpoint.id is not None}
    free = (number for number in range(1, 256) if number not in used)
    return [
        endpoint if endpoint.id is not None else replace(endpoint, id=next(free)) for endpoint in endpoints
    ]


def planned(endpoint: HostEndpoint) -> Endpoint:
    """Return an endpoint as a record of the plan."""
    assert endpoint.id is not None  # all are numbered
    flags = endpoint.flags
    address = str(endpoint.port.ip)
    return Endpoint(address=address, id=endpoint.id, flags=flags, port=endpoint.listen)  # type: ignore[arg-type]  # pydantic checks the flags


def _named(endpoint: EndpointSpec | EndpointChange) -> tuple[str, str]:
    """Return the link or the address of an endpoint, and the field that has it."""
    return (endpoint.link, "link") if endpoint.link is not None else (endpoint.address or "", "address")


def _host_endpoint(topology: Topology, host: str, spec: EndpointSpec, where: Where) -> HostEndpoint:
    name, field = _named(spec)
    return HostEndpoint(_port(topology, host, name, (*where, field)), tuple(spec.flags), spec.id, spec.port)


def _port(topology: Topology, host: str, name: str, where: Where) -> Port:
    """Return the interface of a host on a link, or with an address."""
    for port in topology.ports[host]:
        if port.matches(name):
            return port
    have = ", ".join(str(port.ip) for port in topology.ports[host])
    raise FieldMistakesError((where, f"{host} has no address {name}; it has {have}"))


def _endpoint_at(endpoints: list[HostEndpoint], name: str) -> HostEndpoint | None:
    return next((endpoint for endpoint in endpoints if endpoint.port.matches(name)), None)


def _refuse_clashes(host: str, endpoints: list[HostEndpoint], places: list[Where]) -> None:
    """Refuse what the kernel refuses.

    It takes each pair of address and port once, each id once, and at most eight endpoints.
    """
    seen: set[object] = set()
    for endpoint, where in zip(endpoints, places, strict=True):
        key = (endpoint.port, endpoint.listen)
        message = None
        if key in seen:
            message = (
                f"{host} has an endpoint at {endpoint.port.ip} already; leave one out, or change its flags"
            )
        elif endpoint.id is not None and endpoint.id in seen:
            message = (
                f"{host} has an endpoint with id {endpoint.id} already; choose another, or leave the id out"
            )
        elif len(endpoints) > MAX_ENDPOINTS:
            message = (
                f"{host} would have {len(endpoints)} endpoints; the kernel takes at most {MAX_ENDPOINTS}: leave some "
                "out"
            )
        if message is not None:
            raise FieldMistakesError((where, message))
        seen |= {key, endpoint.id} - {None}


def _text(happening: Happening, action: Action) -> str:
    """Return the label of the event's mark in figures: `phone: endpoint 10.0.1.1: backup`."""
    match action:
        case AddEndpoint(endpoint=endpoint):
            words = f"endpoint {endpoint.address} comes ({', '.join(endpoint.flags)})"
        case ChangeEndpoint():
            asked = {flag: getattr(happening.detail, flag) for flag in ("backup", "fullmesh")}
            flags = [flag if on else f"no {flag}" for flag, on in asked.items() if on is not None]
            words = f"endpoint {action.address}: {', '.join(flags)}"
        case RemoveEndpoint():
            words = f"endpoint {action.address} goes"
        case SetLimits():
            words = f"limits: {action.subflows} subflows, {action.add_addr_accepted} announcements accepted"
        case SetSysctl():
            words = f"{action.path.replace('/', '.')} = {action.value}"
    return f"{happening.subject}: {words}"
