"""Which subflows of a flow will not come up, and why: what the path manager would open if it were let. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from plait.plan.endpoints import Ends, PathManager
    from plait.plan.flows import Entry
    from plait.plan.topology import Port

    Pair = tuple[Port, Port]


class Reason(StrEnum):
    """Why a subflow does not come up, or an endpoint does nothing."""

    SUBFLOW_LIMIT = "subflow-limit"
    ADD_ADDR_LIMIT = "add-addr-limit"
    NO_ROUTE = "no-route"
    NO_SIGNAL = "no-signal"
    NO_ENDPOINT = "no-endpoint"
    WRONG_SIDE = "wrong-side"


@dataclass(frozen=True)
class Absent:
    """Something that will be missing, and the setting that is to blame."""

    reason: Reason
    host: str
    """Whose setting it is."""
    address: str | None
    """Of the endpoint, or of the interface that has none."""
    where: tuple[str | int, ...]
    """The field of the scenario that says so, or would."""
    figures: Mapping[str, int] = field(default_factory=dict)


def absent(manager: PathManager, entry: Entry, entries: Collection[Entry]) -> list[Absent]:
    """What an MPTCP entry of the traffic will lack; `entries` are all those of MPTCP."""
    ends = entry.ends
    wrong = list(_on_the_wrong_side(manager, ends, entries))
    left_out = [one for one in _left_out(manager, entry) if one.address not in {w.address for w in wrong}]
    limits = [] if manager.is_agent else list(_limits(manager, ends))
    return [*limits, *_without_route(manager, ends), *wrong, *left_out]


def _limits(manager: PathManager, ends: Ends) -> Iterator[Absent]:
    subflows, accepted = manager.limits(ends.client)
    announced = len(manager.announced(ends))
    if announced > accepted:
        where = ("mptcp", "limits", ends.client, "add_addr_accepted")
        yield Absent(
            Reason.ADD_ADDR_LIMIT, ends.client, None, where, {"limit": accepted, "needed": announced}
        )
    needed = len(manager.wanted(ends, accepted)) - 1
    for host, limit in ((ends.client, subflows), (ends.server, manager.limits(ends.server)[0])):
        if limit < needed:
            where = ("mptcp", "limits", host, "subflows")
            yield Absent(Reason.SUBFLOW_LIMIT, host, None, where, {"limit": limit, "needed": needed})


def _sides(ends: Ends) -> tuple[tuple[str, int, set[str], Reason], ...]:
    """Host, place in a pair, the flags by which a subflow comes from or to it, and what it lacks without."""
    return (
        (ends.client, 0, {"subflow", "fullmesh"}, Reason.NO_ENDPOINT),
        (ends.server, 1, {"signal"}, Reason.NO_SIGNAL),
    )


def _without_route(manager: PathManager, ends: Ends) -> Iterator[Absent]:
    """Endpoints that were given, and of which no attempt can arrive."""
    attempts = manager.attempts(ends, len(manager.announced(ends)))
    for host, side, flags, _ in _sides(ends):
        for i, own in enumerate(manager.given(host) or ()):
            if flags & set(own.flags) and own.port is not ends.initial[side]:
                mine = [pair for pair in attempts if pair[side] is own.port]
                if not any(map(manager.usable, mine)):
                    yield Absent(Reason.NO_ROUTE, host, str(own.port.ip), ("mptcp", "endpoints", host, i))


def _left_out(manager: PathManager, entry: Entry) -> Iterator[Absent]:
    """Interfaces without an endpoint where endpoints are given, although some links are reached through them alone."""
    ends = entry.ends
    every = manager.wanted(ends, len(manager.announced(ends)))
    crossed = {name for pair in every for name in manager.crossed(pair)}
    for host, side, flags, reason in _sides(ends):
        given = manager.given(host)
        if given is None:
            continue
        named = {ends.initial[side], *(own.port for own in given if flags & set(own.flags))}
        lost = {pair[side] for pair in entry.usable if not crossed.issuperset(manager.crossed(pair))}
        for port in sorted(lost - named, key=lambda port: port.ifname):
            yield Absent(reason, host, str(port.ip), ("mptcp", "endpoints", host))


def _on_the_wrong_side(manager: PathManager, ends: Ends, entries: Collection[Entry]) -> Iterator[Absent]:
    """A host that only listens opens no subflow that arrives; one that only connects announces to nobody's use.

    The kernel tries both all the same: the other side has no listener on the port that it would be.
    """
    connect = {entry.ends.client for entry in entries}
    listen = {entry.ends.server for entry in entries}
    for host, flag, initial, others in (
        (ends.server, "subflow", ends.initial[1], connect),
        (ends.client, "signal", ends.initial[0], listen),
    ):
        for i, own in enumerate(manager.given(host) or ()):
            useless = set(own.flags) - {"backup", "fullmesh"} == {flag} and own.port is not initial
            if useless and host not in others:
                yield Absent(
                    Reason.WRONG_SIDE, host, str(own.port.ip), ("mptcp", "endpoints", host, i, "flags")
                )
