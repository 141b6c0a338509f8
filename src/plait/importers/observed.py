"""Read what a report shows of connections: sockets printed by `ss -M` and `ss -ti`, and counters printed by `nstat`.

Sockets alone give a network, with a link for each address of the connection with the most bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from plait.analysis.cautions.mptcp import FALLBACK_REASONS, JOIN_REFUSALS
from plait.errors import Mistake, ScenarioError
from plait.importers.draft import DURATION, Draft, number

_SOCKET = re.compile(
    r"^(?:(?P<kind>tcp|mptcp)\s+)?(?:ESTAB|CLOSE-WAIT|FIN-WAIT-[12]|LAST-ACK|CLOSING)\s+\d+\s+\d+\s+"
    r"(?P<local>\S+):(?P<local_port>\d+)\s+(?P<peer>\S+):(?P<peer_port>\d+)(?=\s|$)"
)
_COUNTER = re.compile(
    r"(?<![\w$])(?P<name>(?:MPTcpExt|TcpExt|Tcp)[A-Z]\w{1,60})\s+(?P<count>\d{1,19})\s+\d+\.\d+\s*$"
)
_SUBFLOW = re.compile(
    r"tcp-ulp-mptcp flags:(?P<flags>\w*) token:[0-9a-f]+\(id:\d+\)/(?P<token>[0-9a-f]+)\(id:\d+\)"
)
_FIGURE = {
    "minrtt": r"\bminrtt:(?P<value>\d{1,9}(?:\.\d{1,9})?)",
    "rate": r"\bdelivery_rate (?P<value>\d{1,15})bps",
    "mtu": r"\bpmtu:(?P<value>\d{1,6})\b",
    "sent": r"\bbytes_sent:(?P<value>\d{1,19})\b",
    "received": r"\bbytes_received:(?P<value>\d{1,19})\b",
    "resent": r"\bretrans:\d+/(?P<value>\d{1,19})\b",
}
_CONGESTION_CONTROL = re.compile(r"(?P<value>\w+) wscale:")
_STATE = re.compile(
    r"(?:subflows|subflows_max|subflows_total|add_addr_\w+|retransmits):\d{1,9}|fallback|csum_enabled"
)
"""The figures of an MPTCP socket that a sentence repeats."""
_MOST_SOCKETS = 64
_MEANINGS = {
    **FALLBACK_REASONS,
    **JOIN_REFUSALS,
    "RcvPruned": "MPTCP dropped segments that subflows had acknowledged: small buffers",
    "MPFailRx": "the other side reported a wrong checksum: something on the way changes the data",
    "SubflowStale": "a subflow did not progress, and others took its data over",
    "MPRstRx": "the other side reset a subflow",
    "MPFastcloseRx": "the other side aborted a connection",
}
"""By the kernel's counter of MPTCP, what happened."""


@dataclass
class _Socket:
    local: tuple[str, str]
    peer: tuple[str, str]
    figures: dict[str, float] = field(default_factory=dict)
    congestion_control: str = ""
    flags: str = ""
    connection: str = ""
    """Its token of MPTCP at this end, the same for all subflows."""
    words: str = ""

    @property
    def is_backup(self) -> bool:
        """Whether either end asked for it."""
        return bool({"b", "B"} & set(self.flags))

    @property
    def ends(self) -> str:
        """Both addresses and ports."""
        return f"{':'.join(self.local)} to {':'.join(self.peer)}"


def looks_like(text: str) -> bool:
    """Return whether `text` has sockets of `ss` or counters of `nstat`."""
    return any(_SOCKET.match(line) or _COUNTER.search(line) for line in text.splitlines())


def observe(text: str, draft: Draft) -> None:
    """Add to the draft what the sockets and counters of a report show."""
    sockets = _sockets(text)
    draft.observations += [_sentence(socket) for socket in sockets]
    draft.observations += [f"nstat: {sentence}" for sentence in _counters(text)]
    subflows = _subflows(sockets)
    names = dict.fromkeys(socket.congestion_control for socket in subflows if socket.congestion_control)
    if names.keys() - {"cubic"}:
        draft.congestion_control = next(name for name in names if name != "cubic")
    if any("csum_enabled" in socket.words.split() for socket in sockets):
        for host in draft.hosts:
            draft.sysctls.setdefault(host, {})["net.mptcp.checksum_enabled"] = "1"


def draft(text: str, source: str) -> Draft:
    """Return a network with a link for each address of the subflows (ScenarioError if no socket has an RTT)."""
    made = Draft(f"{source}, imported from sockets", hosts=["client", "server"])
    sockets = _sockets(text)
    subflows = [socket for socket in _subflows(sockets) if "minrtt" in socket.figures]
    if not subflows:
        problem = (
            "no socket has a `minrtt`; add the output of `ss -tinM` at the sender, or a script of namespaces"
        )
        raise ScenarioError([Mistake(source, None, None, "", problem)])
    for address, members in _by_address(subflows).items():
        conditions = {"delay": f"{number(min(socket.figures['minrtt'] for socket in members) / 2)}ms"}
        if rate := sum(socket.figures.get("rate", 0) for socket in members):
            conditions = {"rate": f"{number(rate / 1e6)}mbit", **conditions}
        if (mtu := min(socket.figures.get("mtu", 1500) for socket in members)) != 1500:
            conditions["mtu"] = f"{mtu:.0f}"
        link = made.link_name("client", "server")
        made.links.append(("client", "server", conditions, address))
        backup = all(socket.is_backup for socket in members)
        made.endpoints.append(("client", link, ["subflow", "backup"] if backup else ["subflow"]))
    if not any("backup" in flags for _, _, flags in made.endpoints):
        made.endpoints = []
    made.remarks += [
        "rates are what subflows delivered (delivery_rate), so a link may be faster; a link without one has no limit",
        "delays are half of the smallest RTT (minrtt); both directions are alike; queues and loss are not known",
        "subflows of one address share a link",
    ]
    if others := len({socket.connection for socket in sockets} - {"", subflows[0].connection}):
        made.remarks.append(
            f"{others} further MPTCP connections: the scenario has the one with the most bytes"
        )
    sends = sum(socket.figures.get("sent", 0) - socket.figures.get("received", 0) for socket in subflows) >= 0
    connects = int(subflows[0].local[1]) > int(
        subflows[0].peer[1]
    )  # a client's port is above that of a service
    if sends != connects:
        made.traffic = f"bulk: {{from: server, to: client, reverse: true, duration: {DURATION}}}"
    return made


def _by_address(subflows: list[_Socket]) -> dict[str, list[_Socket]]:
    """Group subflows by their addresses at the end that has more of them."""
    groups: list[dict[str, list[_Socket]]] = [{}, {}]
    for socket in subflows:
        for group, (address, _) in zip(groups, (socket.local, socket.peer), strict=True):
            group.setdefault(address, []).append(socket)
    return max(groups, key=len)


def _sockets(text: str) -> list[_Socket]:
    """Return the TCP and MPTCP sockets. A line that is indented belongs to the socket before it."""
    sockets: list[_Socket] = []
    continues = False
    for line in text.splitlines():
        if match := _SOCKET.match(line):
            local, peer = (
                (re.sub(r"^\[?(.*?)(?:%\w+)?\]?$", r"\1", match[name]), match[f"{name}_port"])
                for name in ("local", "peer")
            )
            sockets.append(_Socket(local, peer, words=line[match.end() :]))
            continues = True
        elif continues and line[:1] in (" ", "\t"):
            sockets[-1].words += f" {line.strip()}"
        else:
            continues = False
        if len(sockets) > _MOST_SOCKETS:
            break
    for socket in sockets:
        for name, pattern in _FIGURE.items():
            if found := re.search(pattern, socket.words):
                socket.figures[name] = float(found["value"])
        if found := _CONGESTION_CONTROL.search(socket.words):
            socket.congestion_control = found["value"]
        if found := _SUBFLOW.search(socket.words):
            socket.flags, socket.connection = found["flags"], found["token"]
    return sockets[:_MOST_SOCKETS]


def _subflows(sockets: list[_Socket]) -> list[_Socket]:
    """Return those of the MPTCP connection with the most bytes, the initial one first, or else the first TCP socket."""
    volumes: dict[str, float] = {}
    for socket in sockets:
        volume = socket.figures.get("sent", 0) + socket.figures.get("received", 0)
        volumes[socket.connection] = volumes.get(socket.connection, 0) + volume
    volumes.pop("", None)
    largest = max(volumes, key=volumes.__getitem__, default=None)
    mine = [socket for socket in sockets if socket.connection == largest]
    plain = [socket for socket in sockets if "minrtt" in socket.figures]
    return sorted(mine, key=lambda socket: "M" not in socket.flags) or plain[:1]


def _sentence(socket: _Socket) -> str:
    """Return what is worth knowing of a socket."""
    figures = socket.figures
    parts = []
    if "minrtt" in figures:
        parts.append(f"smallest RTT {number(figures['minrtt'])} ms")
    if figures.get("rate"):
        parts.append(f"delivered {number(figures['rate'] / 1e6)} Mbit/s")
    if figures.get("resent"):
        parts.append(f"{figures['resent']:.0f} retransmissions")
    parts += [word for word in socket.words.split() if _STATE.fullmatch(word)]
    parts += ["backup"] if socket.is_backup else []
    return f"ss: {socket.ends}: {', '.join(parts) or 'no figures'}"


def _counters(text: str) -> list[str]:
    """Return a sentence for each counter that has a meaning and counted, with the largest count of the report."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        if match := _COUNTER.search(line):
            counts[match["name"]] = max(counts.get(match["name"], 0), int(match["count"]))
    sentences = [
        f"MPTcpExt{name} {count}: {meaning}"
        for name, meaning in _MEANINGS.items()
        if (count := counts.get(f"MPTcpExt{name}"))
    ]
    return sentences + _retransmitted(counts)


def _retransmitted(counts: Mapping[str, int]) -> list[str]:
    sent, resent = counts.get("TcpOutSegs", 0), counts.get("TcpRetransSegs", 0)
    return (
        [f"TcpRetransSegs {resent}: {100 * resent / sent:.2g} % of the segments sent"]
        if sent and resent
        else []
    )
