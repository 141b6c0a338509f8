"""A second subflow on each line, to a further port of the server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from plait.advice.changes.commands import address_words, interface_of, is_direct, on_line
from plait.advice.changes.model import Candidate, HostCommand
from plait.advice.situation import AccessLine, Situation

PORT = 5011
"""The port of the server to which second subflows go: beyond those that `plait lines` uses."""
_MOST = 8
"""The kernel's bound of its limits."""
_MOST_LINES = 3
"""With more lines, the subflows of the scenario would exceed that bound."""
_FIRST_ID, _SERVER_ID = 217, 227
_KEPT = "/run/plait-former-mptcp-limits"


def second_subflows(situation: Situation) -> Iterator[Candidate]:
    """Yield the change for a client whose lines end at the server.

    The kernel opens a subflow for each pair of an endpoint with `fullmesh` and an announced address with its port.
    """
    first, *others = situation.lines
    used = [first, *(line for line in others if {"subflow", "fullmesh"} & set(_flags(situation, line)))]
    announced = _announced(situation, used)
    if (
        len(used) > _MOST_LINES
        or len(announced) > _MOST
        or not all(is_direct(situation, line) for line in used)
    ):
        return
    flags = {**situation.endpoints, **{line.link: _meshed(situation, line) for line in used}}
    count = 2 * len(used) - 1
    # an address on one line is not reachable over another one here, and what the kernel tries there counts meanwhile
    most = {"subflows": _MOST, "add_addr_accepted": _MOST}
    yield Candidate(
        "two-subflows",
        f"two subflows on each line, the second to port {PORT} of {situation.server}",
        {
            f"mptcp.endpoints.{situation.client}": [
                {"link": link, "flags": list(words)} for link, words in flags.items()
            ],
            f"mptcp.endpoints.{situation.server}": announced,
            f"mptcp.limits.{situation.client}": most,
            f"mptcp.limits.{situation.server}": most,
        },
        (
            _limiting(situation.client, f"subflows {count} add_addr_accepted {len(used)}"),
            *(_meshing(situation, line) for line in used if "fullmesh" not in _flags(situation, line)),
            _limiting(situation.server, f"subflows {count}"),
            *(_announcing(situation, line) for line in used),
        ),
    )


def _announced(situation: Situation, used: Sequence[AccessLine]) -> list[dict[str, Any]]:
    """Return the endpoints of the scenario's server, whose address on each line stands for its only one.

    Without a port, the kernel would take an address for known that has a subflow to another port. So each subflow of a
    further line has a port.
    """
    links = [line.link for line in used]
    given = situation.raw.get("mptcp", {}).get("endpoints", {}).get(situation.server, [])
    ports = [(links[0], PORT), *((link, PORT + number) for link in links[1:] for number in (0, 1))]
    further = [{"link": link, "flags": ["signal"], "port": port} for link, port in ports]
    return [*(item for item in given if item.get("link") not in links), *further]


def _flags(situation: Situation, line: AccessLine) -> tuple[str, ...]:
    return situation.endpoints.get(line.link, ())


def _meshed(situation: Situation, line: AccessLine) -> tuple[str, ...]:
    return ("fullmesh", "backup") if "backup" in _flags(situation, line) else ("fullmesh",)


def _limiting(host: str, words: str) -> HostCommand:
    """Return the command that raises the limits of a host, which the scenario need not know, and keeps them in /run."""
    return HostCommand(
        host,
        f"test -e {_KEPT} || ip mptcp limits show >{_KEPT}; ip mptcp limits set {words}",
        f"ip mptcp limits set $(cat {_KEPT}) && rm {_KEPT}",
    )


def _meshing(situation: Situation, line: AccessLine) -> HostCommand:
    """Return the command by which the endpoint of a line connects to each address that the server announces."""
    address, backup = address_words(situation, line), " backup" * ("backup" in _flags(situation, line))
    if _flags(situation, line):
        # a change sets both flags, so it names the one that stays
        words = (f"change {address} fullmesh{backup}", f"change {address} nofullmesh{backup}")
    else:
        number = _FIRST_ID + line.number
        words = (
            f"add {address} dev {interface_of(line)} id {number} subflow fullmesh",
            f"delete id {number}",
        )
    command, undo = (f"ip mptcp endpoint {text}" for text in words)
    return on_line(situation.client, line, command, undo)


def _announcing(situation: Situation, line: AccessLine) -> HostCommand:
    """Return the command that announces an address of the server with a further port, on which its kernel listens."""
    address, number = f"ADDRESS{line.number}", _SERVER_ID + line.number
    return HostCommand(
        situation.server,
        f"ip mptcp endpoint add {address} id {number} port {PORT} signal",
        f"ip mptcp endpoint delete id {number}",
        note=(
            f"write for {address} the address of {situation.server} to which line {line.number} leads (it must be on "
            f"an interface there), run one command for each address, and open TCP port {PORT}"
        ),
    )
