"""Predict which subflows of a flow will not be established, and why, as findings of the lint."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from plait.cautions import Code
from plait.plan.finding import LintFinding
from plait.plan.mptcp.path_manager import PathManager
from plait.plan.mptcp.pm_state import PathManagerState
from plait.plan.network.model import Pair, Port
from plait.plan.traffic.entries import Entry
from plait.scenario.mistakes import Where

_WORDS = {
    Code.SUBFLOW_LIMIT: (
        "its limit is {limit} further subflows, but the endpoints lead to {needed}: the kernel refuses the rest",
        "raise mptcp.limits.{host}.subflows to {needed} (the kernel's maximum is 8), or leave it out",
    ),
    Code.ADD_ADDR_LIMIT: (
        "it accepts {limit} announced addresses, but the peer announces {needed}: it ignores the rest",
        "raise mptcp.limits.{host}.add_addr_accepted to {needed}, or leave it out",
    ),
    Code.NO_ROUTE: (
        "no packets travel both ways between its endpoint {address} and the peer: no subflow can be established there",
        "connect them by links, or leave the endpoint out",
    ),
    Code.NO_SIGNAL: (
        "it does not announce its address {address}: no subflow will use the links that lead only there",
        "add an endpoint for {address} with flags: [signal] under mptcp.endpoints.{host}",
    ),
    Code.NO_ENDPOINT: (
        "it has no endpoint with the flag subflow for {address}: no subflow will leave from there",
        "add an endpoint for {address} with flags: [subflow] under mptcp.endpoints.{host}",
    ),
    Code.WRONG_SIDE: (
        "the flags of its endpoint {address} have no effect on its side: no listener accepts the resulting subflows",
        "signal is for the host that is connected to, subflow for the one that connects (see reverse)",
    ),
}
_ONLY_ANNOUNCED = (
    (
        "no packets travel both ways between its endpoint {address} and the peer's first address, and the kernel "
        "does not reuse announcements from before the endpoint: no subflow will be established there"
    ),
    "let the peer announce its address again: add its endpoint by an event at the same time or later",
)


def _finding(
    code: Code,
    host: str,
    where: Where,
    port: Port | None = None,
    *,
    figures: Mapping[str, float] | None = None,
    words: tuple[str, str] | None = None,
) -> LintFinding:
    """Return the finding of a host that has, or could have, the setting in the field `where`."""
    address = None if port is None else port.ip
    message, remedy = (
        text.format(host=host, address=address, **(figures or {})) for text in words or _WORDS[code]
    )
    return LintFinding(code, host, message, remedy, where, figures or {})


def absent(manager: PathManager, entry: Entry, entries: Collection[Entry]) -> list[LintFinding]:
    """Return what an MPTCP entry of the traffic will lack; `entries` are all MPTCP entries."""
    initial = entry.initial
    wrong = list(_on_the_wrong_side(manager, initial, entries))
    return [
        *([] if manager.is_agent else _limits(manager, initial)),
        *_without_route(manager, initial),
        *_behind_announcements(manager, initial),
        *(_finding(Code.WRONG_SIDE, host, where, port) for host, where, port in wrong),
        *_without_endpoint(manager, entry, {port for _, _, port in wrong}),
    ]


def _limits(manager: PathManager, initial: Pair) -> Iterator[LintFinding]:
    client, server = (port.node for port in initial)

    def announced(state: PathManagerState) -> int:
        return len(state.announced(initial))

    def wanted(state: PathManagerState) -> int:
        return len(state.wanted(initial, state.limits[client][1])) - 1

    yield from _limit_below(manager, client, Code.ADD_ADDR_LIMIT, announced)
    yield from _limit_below(manager, client, Code.SUBFLOW_LIMIT, wanted)
    yield from _limit_below(manager, server, Code.SUBFLOW_LIMIT, wanted)


def _limit_below(
    manager: PathManager, host: str, code: Code, needed: Callable[[PathManagerState], int]
) -> Iterator[LintFinding]:
    """Yield a limit of a host that is lower than the need, at the time of the greatest need."""
    place = int(code is Code.ADD_ADDR_LIMIT)
    field = ("subflows", "add_addr_accepted")[place]
    moments = [(needed(state), state.limits[host][place]) for state in manager.states_before_new_limits(host)]
    most, limit = max((pair for pair in moments if pair[1] < pair[0]), default=(0, 0))
    if most:
        yield _finding(code, host, ("mptcp", "limits", host, field), figures={"limit": limit, "needed": most})


def _sides(initial: Pair) -> tuple[tuple[str, int, set[str], Code], ...]:
    """Return for each side: host, index in a pair, the flags that make a subflow there, the reason without them."""
    return (
        (initial[0].node, 0, {"subflow", "fullmesh"}, Code.NO_ENDPOINT),
        (initial[1].node, 1, {"signal"}, Code.NO_SIGNAL),
    )


def _without_route(manager: PathManager, initial: Pair) -> Iterator[LintFinding]:
    """Yield given endpoints from which no attempt can arrive."""
    announced = len(manager.at_some_time(lambda state: state.announced(initial)))
    attempts = manager.at_some_time(lambda state: state.attempts(initial, announced))
    for host, side, flags, _ in _sides(initial):
        for where, endpoint in manager.given(host) or ():
            if flags & set(endpoint.flags) and endpoint.port is not initial[side]:
                mine = [pair for pair in attempts if pair[side] is endpoint.port]
                if not any(map(manager.usable, mine)):
                    yield _finding(Code.NO_ROUTE, host, where, endpoint.port)


def _behind_announcements(manager: PathManager, initial: Pair) -> Iterator[LintFinding]:
    """Yield endpoints that events add: the kernel connects them to the peer's first address only.

    It does not use earlier announcements again; with `fullmesh` it uses those that already have a subflow.
    """
    for event in manager.events:
        endpoint = event.endpoint
        if endpoint is None or event.host != initial[0].node or endpoint.port is initial[0]:
            continue
        if {"subflow", "fullmesh"} & set(endpoint.flags) and not manager.usable((endpoint.port, initial[1])):
            yield _finding(Code.NO_ROUTE, event.host, event.where, endpoint.port, words=_ONLY_ANNOUNCED)


def _without_endpoint(manager: PathManager, entry: Entry, wrong: set[Port]) -> Iterator[LintFinding]:
    """Yield interfaces without an endpoint on hosts with given endpoints, if only they reach some links.

    Those in `wrong` have an endpoint, on the wrong side.
    """
    initial = entry.initial
    announced = len(manager.at_some_time(lambda state: state.announced(initial)))
    every = manager.at_some_time(lambda state: state.wanted(initial, announced))
    crossed = {name for pair in every for name in manager.crossed(pair)}
    for host, side, flags, code in _sides(initial):
        given = manager.given(host)
        if given is None:
            continue
        named = {initial[side], *(endpoint.port for _, endpoint in given if flags & set(endpoint.flags))}
        lost = {pair[side] for pair in entry.usable if not crossed.issuperset(manager.crossed(pair))}
        for port in sorted(lost - named - wrong, key=lambda port: port.ifname):
            yield _finding(code, host, ("mptcp", "endpoints", host), port)


def _on_the_wrong_side(
    manager: PathManager, initial: Pair, entries: Collection[Entry]
) -> Iterator[tuple[str, Where, Port]]:
    """Yield the host, the field and the interface of endpoints without effect on their side.

    A host that only accepts connections opens no subflow that arrives, and no peer uses the announcements of a
    host that only connects. The kernel tries both nevertheless: the peer has no listener on the port in
    question.
    """
    connect = {entry.initial[0].node for entry in entries}
    listen = {entry.initial[1].node for entry in entries}
    client, server = initial
    for first_port, flag, others in ((server, "subflow", connect), (client, "signal", listen)):
        host = first_port.node
        for where, endpoint in manager.given(host) or ():
            useless = (
                set(endpoint.flags) - {"backup", "fullmesh"} == {flag} and endpoint.port is not first_port
            )
            if useless and host not in others:
                yield host, (*where, "flags"), endpoint.port
