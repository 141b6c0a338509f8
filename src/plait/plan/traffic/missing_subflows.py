"""Predict which subflows of a flow will not be established, and why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from plait.cautions import Code
from plait.plan.mptcp.path_manager import PathManager
from plait.plan.mptcp.pm_state import InitialSubflow, PathManagerState
from plait.plan.traffic.entries import Entry


class Reason(StrEnum):
    """Why a subflow is not established, or an endpoint has no effect; most are codes of cautions, too."""

    SUBFLOW_LIMIT = Code.SUBFLOW_LIMIT
    ADD_ADDR_LIMIT = Code.ADD_ADDR_LIMIT
    NO_ROUTE = Code.NO_ROUTE
    NO_SIGNAL = Code.NO_SIGNAL
    NO_ENDPOINT = Code.NO_ENDPOINT
    WRONG_SIDE = Code.WRONG_SIDE
    ONLY_ANNOUNCED = "only-announced"


@dataclass(frozen=True)
class MissingSubflow:
    """A subflow that will be missing, and the setting that causes it."""

    reason: Reason
    host: str
    """The host that has this setting."""
    address: str | None
    """The address of the endpoint, or of the interface without one."""
    where: tuple[str | int, ...]
    """The field of the scenario that has the setting, or could have it."""
    figures: Mapping[str, int] = field(default_factory=dict)


def absent(manager: PathManager, entry: Entry, entries: Collection[Entry]) -> list[MissingSubflow]:
    """Return what an MPTCP entry of the traffic will lack; `entries` are all MPTCP entries."""
    initial = entry.initial
    wrong = list(_on_the_wrong_side(manager, initial, entries))
    left_out = [
        missing
        for missing in _without_endpoint(manager, entry)
        if missing.address not in {other.address for other in wrong}
    ]
    limits = [] if manager.is_agent else list(_limits(manager, initial))
    return [
        *limits,
        *_without_route(manager, initial),
        *_behind_announcements(manager, initial),
        *wrong,
        *left_out,
    ]


def _limits(manager: PathManager, initial: InitialSubflow) -> Iterator[MissingSubflow]:
    def announced(state: PathManagerState) -> int:
        return len(state.announced(initial))

    def wanted(state: PathManagerState) -> int:
        return len(state.wanted(initial, state.limits[initial.client][1])) - 1

    yield from _limit_below(manager, initial.client, Reason.ADD_ADDR_LIMIT, announced)
    yield from _limit_below(manager, initial.client, Reason.SUBFLOW_LIMIT, wanted)
    yield from _limit_below(manager, initial.server, Reason.SUBFLOW_LIMIT, wanted)


def _limit_below(
    manager: PathManager, host: str, reason: Reason, needed: Callable[[PathManagerState], int]
) -> Iterator[MissingSubflow]:
    """Yield a limit of a host that is lower than the need, at the time of the greatest need."""
    place = int(reason is Reason.ADD_ADDR_LIMIT)
    field = ("subflows", "add_addr_accepted")[place]
    moments = [(needed(state), state.limits[host][place]) for state in manager.states_before_new_limits(host)]
    most, limit = max((pair for pair in moments if pair[1] < pair[0]), default=(0, 0))
    if most:
        yield MissingSubflow(
            reason, host, None, ("mptcp", "limits", host, field), {"limit": limit, "needed": most}
        )


def _sides(initial: InitialSubflow) -> tuple[tuple[str, int, set[str], Reason], ...]:
    """Return for each side: host, index in a pair, the flags that make a subflow there, the reason without them."""
    return (
        (initial.client, 0, {"subflow", "fullmesh"}, Reason.NO_ENDPOINT),
        (initial.server, 1, {"signal"}, Reason.NO_SIGNAL),
    )


def _without_route(manager: PathManager, initial: InitialSubflow) -> Iterator[MissingSubflow]:
    """Yield given endpoints from which no attempt can arrive."""
    attempts = manager.attempts(initial, len(manager.announced(initial)))
    for host, side, flags, _ in _sides(initial):
        for where, endpoint in manager.given(host) or ():
            if flags & set(endpoint.flags) and endpoint.port is not initial.pair[side]:
                mine = [pair for pair in attempts if pair[side] is endpoint.port]
                if not any(map(manager.usable, mine)):
                    yield MissingSubflow(Reason.NO_ROUTE, host, str(endpoint.port.ip), where)


def _behind_announcements(manager: PathManager, initial: InitialSubflow) -> Iterator[MissingSubflow]:
    """Yield endpoints that events add: the kernel connects them to the peer's first address only.

    It does not use earlier announcements again; with `fullmesh` it uses those that already have a subflow.
    """
    for event in manager.events:
        endpoint = event.endpoint
        if endpoint is None or event.host != initial.client or endpoint.port is initial.pair[0]:
            continue
        if {"subflow", "fullmesh"} & set(endpoint.flags) and not manager.usable(
            (endpoint.port, initial.pair[1])
        ):
            yield MissingSubflow(Reason.ONLY_ANNOUNCED, initial.client, str(endpoint.port.ip), event.where)


def _without_endpoint(manager: PathManager, entry: Entry) -> Iterator[MissingSubflow]:
    """Yield interfaces without an endpoint on hosts with given endpoints, if only they reach some links."""
    initial = entry.initial
    every = manager.wanted(initial, len(manager.announced(initial)))
    crossed = {name for pair in every for name in manager.crossed(pair)}
    for host, side, flags, reason in _sides(initial):
        given = manager.given(host)
        if given is None:
            continue
        named = {initial.pair[side], *(endpoint.port for _, endpoint in given if flags & set(endpoint.flags))}
        lost = {pair[side] for pair in entry.usable if not crossed.issuperset(manager.crossed(pair))}
        for port in sorted(lost - named, key=lambda port: port.ifname):
            yield MissingSubflow(reason, host, str(port.ip), ("mptcp", "endpoints", host))


def _on_the_wrong_side(
    manager: PathManager, initial: InitialSubflow, entries: Collection[Entry]
) -> Iterator[MissingSubflow]:
    """Yield endpoints without effect on their side.

    A host that only accepts connections opens no subflow that arrives, and no peer uses the announcements of a
    host that only connects. The kernel tries both nevertheless: the peer has no listener on the port in
    question.
    """
    connect = {entry.initial.client for entry in entries}
    listen = {entry.initial.server for entry in entries}
    for host, flag, first_port, others in (
        (initial.server, "subflow", initial.pair[1], connect),
        (initial.client, "signal", initial.pair[0], listen),
    ):
        for where, endpoint in manager.given(host) or ():
            useless = (
                set(endpoint.flags) - {"backup", "fullmesh"} == {flag} and endpoint.port is not first_port
            )
            if useless and host not in others:
                yield MissingSubflow(Reason.WRONG_SIDE, host, str(endpoint.port.ip), (*where, "flags"))
