"""Whether the packets of each line of a hosts file leave by the interface that has the line's address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plait.engine.remote.preflight import route_problem
from plait.engine.remote.ssh import HostSession
from plait.errors import RequestError
from plait.measure.named import NamedLine


def routed_interfaces(lines: Sequence[NamedLine], sessions: Mapping[str, HostSession]) -> dict[str, str]:
    """Return the interface of the client of each line, by the name of the line, where the host shows it.

    Raises RequestError, with a sentence for each reason, if a host lacks an address of a line, or sends packets from it
    through another interface. Raises TrialError if a host does not answer.
    """
    problems, interfaces = [], {}
    for line in lines:
        for end, peer in (line.ends, line.ends[::-1]):
            session = sessions[end.host]
            held, route = session.route(end.address, peer.public or end.address)
            if held is None or route is None:
                continue  # the host has no `ip`; the connections show what it would
            problem = route_problem(end.host, end.address, peer.public, held, route)
            if problem:
                problems.append(f"{line.name}: {problem}")
            elif end is line.client and held:
                interfaces[line.name] = min(held)
    if problems:
        raise RequestError("\n".join(dict.fromkeys(problems)))
    return interfaces
