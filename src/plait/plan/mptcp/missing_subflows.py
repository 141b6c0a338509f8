"""Which subflows of a flow will not come up, and why: what the path manager would open if it were let. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from plait.plan.mptcp.path_manager import PathManager
    from plait.plan.mptcp.pm_state import InitialSubflow, PathManagerState
    from plait.plan.network.model import Port
    from plait.plan.traffic.flows import Entry

    Pair = tuple[Port, Port]


class Reason(StrEnum):
    """Why a subflow does not come up, or an endpoint does nothing."""

    SUBFLOW_LIMIT = "subflow-limit"
    ADD_ADDR_LIMIT = "add-addr-limit"
    NO_ROUTE = "no-route"
    NO_SIGNAL = "no-signal"
    NO_ENDPOINT = "no-endpoint"
    WRONG_SIDE = "wrong-side"
    ONLY_ANNOUNCED = "only-announced"


@dataclass(frozen=True)
class MissingSubflow:
    """Something that will be missing, and the setting that is to blame."""

    reason: Reason
    host: str
    """Whose setting it is."""
    address: str | None
    """Of the endpoint, or of the interface that has none."""
    where: tuple[str | int, ...]
    """The field of the scenario that says so, or would."""
    figures: Mapping[str, int] = field(default_factory=dict)


def absent(manager: PathManager, entry: Entry, entries: Collection[Entry]) -> list[MissingSubflow]:
    """What an MPTCP entry of the traffic will lack; `entries` are all those of MPTCP."""
    ends = entry.ends
    wrong = list(_on_the_wrong_side(manager, ends, entries))
    left_out = [one for one in _left_out(manager, entry) if one.address not in {w.address for w in wrong}]
    limits = [] if manager.is_agent else list(_limits(manager, ends))
    return [*limits, *_without_route(manager, ends), *_behind_announcements(manager, ends), *wrong, *left_out]


def _limits(manager: PathManager, ends: InitialSubflow) -> Iterator[MissingSubflow]:
    def announced(moment: PathManagerState) -> int:
        return len(moment.announced(ends))

    def wanted(moment: PathManagerState) -> int:
        return len(moment.wanted(ends, moment.limits[ends.client][1])) - 1

    yield from _below(manager, ends.client, Reason.ADD_ADDR_LIMIT, announced)
    yield from _below(manager, ends.client, Reason.SUBFLOW_LIMIT, wanted)
    yield from _below(manager, ends.server, Reason.SUBFLOW_LIMIT, wanted)


def _below(
    manager: PathManager, host: str, reason: Reason, needed: Callable[[PathManagerState], int]
) -> Iterator[MissingSubflow]:
    """A limit of a host that is lower than what is needed, at the time when most is."""
    place = int(reason is Reason.ADD_ADDR_LIMIT)
    field = ("subflows", "add_addr_accepted")[place]
    moments = [(needed(moment), moment.limits[host][place]) for moment in manager.undisturbed(host)]
    most, limit = max((one for one in moments if one[1] < one[0]), default=(0, 0))
    if most:
        yield MissingSubflow(
            reason, host, None, ("mptcp", "limits", host, field), {"limit": limit, "needed": most}
        )


def _sides(ends: InitialSubflow) -> tuple[tuple[str, int, set[str], Reason], ...]:
    """Host, place in a pair, the flags by which a subflow comes from or to it, and what it lacks without."""
    return (
        (ends.client, 0, {"subflow", "fullmesh"}, Reason.NO_ENDPOINT),
        (ends.server, 1, {"signal"}, Reason.NO_SIGNAL),
    )


def _without_route(manager: PathManager, ends: InitialSubflow) -> Iterator[MissingSubflow]:
    """Endpoints that were given, and of which no attempt can arrive."""
    attempts = manager.attempts(ends, len(manager.announced(ends)))
    for host, side, flags, _ in _sides(ends):
        for where, own in manager.given(host) or ():
            if flags & set(own.flags) and own.port is not ends.initial[side]:
                mine = [pair for pair in attempts if pair[side] is own.port]
                if not any(map(manager.usable, mine)):
                    yield MissingSubflow(Reason.NO_ROUTE, host, str(own.port.ip), where)


def _behind_announcements(manager: PathManager, ends: InitialSubflow) -> Iterator[MissingSubflow]:
    """Endpoints that come in the course of a connection: the kernel connects them to its first address only.

    Announcements that have arrived by then are not used again, except with `fullmesh` those that a subflow uses.
    """
    for event in manager.events:
        own = event.own
        if own is None or event.host != ends.client or own.port is ends.initial[0]:
            continue
        if {"subflow", "fullmesh"} & set(own.flags) and not manager.usable((own.port, ends.initial[1])):
            yield MissingSubflow(Reason.ONLY_ANNOUNCED, ends.client, str(own.port.ip), event.where)


def _left_out(manager: PathManager, entry: Entry) -> Iterator[MissingSubflow]:
    """Interfaces without an endpoint where endpoints are given, although some links are reached through them alone."""
    ends = entry.ends
    every = manager.wanted(ends, len(manager.announced(ends)))
    crossed = {name for pair in every for name in manager.crossed(pair)}
    for host, side, flags, reason in _sides(ends):
        given = manager.given(host)
        if given is None:
            continue
        named = {ends.initial[side], *(own.port for _, own in given if flags & set(own.flags))}
        lost = {pair[side] for pair in entry.usable if not crossed.issuperset(manager.crossed(pair))}
        for port in sorted(lost - named, key=lambda port: port.ifname):
            yield MissingSubflow(reason, host, str(port.ip), ("mptcp", "endpoints", host))


def _on_the_wrong_side(
    manager: PathManager, ends: InitialSubflow, entries: Collection[Entry]
) -> Iterator[MissingSubflow]:
    """A host that only listens opens no subflow that arrives; one that only connects announces to nobody's use.

    The kernel tries both all the same: the other side has no listener on the port that it would be.
    """
    connect = {entry.ends.client for entry in entries}
    listen = {entry.ends.server for entry in entries}
    for host, flag, initial, others in (
        (ends.server, "subflow", ends.initial[1], connect),
        (ends.client, "signal", ends.initial[0], listen),
    ):
        for where, own in manager.given(host) or ():
            useless = set(own.flags) - {"backup", "fullmesh"} == {flag} and own.port is not initial
            if useless and host not in others:
                yield MissingSubflow(Reason.WRONG_SIDE, host, str(own.port.ip), (*where, "flags"))
