"""Convert a shell script of a report that builds a network with `ip netns`, veth pairs and `tc`; nothing is executed.

`commands` reads the script. What plait does not understand becomes a remark of the scenario.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

from plait.errors import Mistake, ScenarioError
from plait.importers.commands import commands
from plait.importers.draft import Draft, node_name
from plait.units import Duration, Rate

_RATE = re.compile(r"\d+(?:\.\d+)?[kmg]?bit", re.IGNORECASE)
_TIME = re.compile(r"\d+(?:\.\d+)?(?:us|ms|s)", re.IGNORECASE)
_SHARE = re.compile(r"\d+(?:\.\d+)?%")
_NEUTRAL = {"delay": "0ms", "loss": "0%"}
"""What a direction has where only the other one has a condition."""
_OWN = ("ip", "tc", "sysctl", "iptables", "ip6tables", "nft", "ethtool", "iperf3", "mptcpize")
"""Programs whose commands matter for a network; others, such as echo, are passed over."""
_FORWARDING = re.compile(r"net\.ipv[46]\.(?:conf\.all\.forwarding|ip_forward)=1")
_SETTING = re.compile(r"(?P<name>net\.(?:ipv4\.tcp_|mptcp\.)\w+)=(?P<value>.+)")
_OBJECTS = ("address", "route", "rule", "neighbor", "link", "netns", "mptcp")
"""Those of `ip`, which takes the beginning of a name."""
_NETEM_LIMIT = 1000
"""Packets, in the delay and in the queue; netem's default."""
_PACKET_BITS = 8 * 1500
_IPERF = {"--client": "-c", "--time": "-t", "--parallel": "-P", "--reverse": "-R", "--congestion": "-C"}
_FLOW = {
    "duration": ("-t", r"(?P<value>[1-9]\d{0,5})", "s"),
    "count": ("-P", r"(?P<value>[1-9]\d{0,2})", ""),
    "congestion_control": ("-C", r"(?P<value>\w+)", ""),
}
"""By the field of a flow: iperf3's option, its values, and the unit."""


@dataclass
class _Network:
    """The state of the network as far as the script was read; interfaces by (namespace, name), "" the root."""

    topology: Draft
    spaces: list[str] = field(default_factory=list)
    pairs: list[list[tuple[str, str]]] = field(default_factory=list)
    conditions: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    addresses: dict[tuple[str, str], str] = field(default_factory=dict)
    """The namespace and interface of each address."""
    routers: set[str] = field(default_factory=set)
    bridged: set[str] = field(default_factory=set)
    """Namespaces with a bridge."""
    endpoints: list[tuple[str, str, list[str]]] = field(default_factory=list)
    """(namespace, interface, flags)"""

    def remark(self, words: list[str], reason: str = "") -> None:
        """Note a command that the scenario does not have."""
        self.topology.remarks.append(shlex.join(words) + (f" ({reason})" if reason else ""))


def looks_like(text: str) -> bool:
    """Return whether `text` is a script that makes network namespaces and veth pairs."""
    return bool(re.search(r"\bip\b.*\bnetns\b", text)) and bool(re.search(r"\btype\s+veth\b", text))


def draft(text: str, source: str) -> Draft:
    """Return the network of the script as a scenario (ScenarioError if it has no pair between two namespaces)."""
    network = _Network(Draft(f"{source}, imported from a script of network namespaces"))
    for words in commands(text, network.topology.remarks):
        _read(words, network)
    _build(network)
    if not network.topology.links:
        problem = "the script joins no two namespaces by a veth pair, as far as plait reads it (no functions)"
        raise ScenarioError([Mistake(source, None, None, "", problem)])
    return network.topology


def _read(words: list[str], network: _Network) -> None:
    program = words[0].rpartition("/")[2]
    if program not in _OWN:
        return
    words = [program, *words[1:]]
    if any("$" in word for word in words):
        network.remark(words, "it has a variable that the script does not set by a plain assignment")
        if "iperf3" not in words:
            return
    space, rest = _space(words)
    if rest[:1] == ["ip"]:
        _ip(space, [word for word in rest[1:] if word not in ("-4", "-6")], words, network)
    elif rest[:2] == ["tc", "qdisc"] and rest[2:3] in (["add"], ["replace"], ["change"]):
        _qdisc(space, rest[3:], words, network)
    elif rest[:1] == ["sysctl"]:
        _sysctl(space, rest[1:], words, network)
    elif rest[:1] in (["bash"], ["sh"]) and rest[1:2] == ["-c"]:
        for inner in commands(" ".join(rest[2:]), network.topology.remarks):
            _read(["ip", "netns", "exec", space, *inner], network)
    elif not _iperf(space, [word for word in rest if word not in ("mptcpize", "run")], network):
        network.remark(words)


def _space(words: list[str]) -> tuple[str, list[str]]:
    """Return the namespace in which a command acts, and the command without it."""
    if len(words) > 4 and words[0] == "ip" and _full(words[1]) == "netns" and "exec".startswith(words[2]):
        return words[3], words[4:]
    if len(words) > 3 and words[1] in ("-n", "-net", "-netns"):
        return words[2], [words[0], *words[3:]]
    return "", words


def _full(word: str) -> str:
    """Return the object of `ip` whose name begins so."""
    return next((name for name in _OBJECTS if name.startswith(word)), word)


def _sysctl(space: str, arguments: list[str], words: list[str], network: _Network) -> None:
    settings = [match for word in arguments if (match := _SETTING.fullmatch(word))]
    if any(_FORWARDING.fullmatch(word) for word in arguments):
        network.routers.add(space)
    elif settings and space:
        name = node_name(space)
        network.topology.sysctls.setdefault(name, {}).update(
            (match["name"], match["value"]) for match in settings
        )
    else:
        network.remark(words)


def _iperf(space: str, arguments: list[str], network: _Network) -> bool:
    """Take the traffic of the script's first iperf3 client, and return whether this was it."""
    rest = [_IPERF.get(word, word) for word in arguments]
    address = _value(rest, "-c")
    server = next((of for of, known in network.addresses if known == address), None)
    if rest[:1] != ["iperf3"] or server is None or "-u" in rest or network.topology.traffic:
        return False
    ends = {"from": node_name(space or "root"), "to": node_name(server or "root")}
    if "-R" in rest:
        ends = {"from": ends["to"], "to": ends["from"], "reverse": "true"}
    entry = {**ends, "duration": "10s"}
    for key, (option, values, unit) in _FLOW.items():
        if match := re.fullmatch(values, _value(rest, option) or ""):
            entry[key] = match["value"] + unit
    network.topology.traffic = f"bulk: {{{', '.join(f'{key}: {value}' for key, value in entry.items())}}}"
    return True


def _ip(space: str, rest: list[str], words: list[str], network: _Network) -> None:
    kind, verb, arguments = (_full(rest[0]) if rest else ""), " ".join(rest[1:2]), rest[2:]
    if kind == "netns" and verb == "add" and arguments:
        network.spaces.append(arguments[0])
    elif kind == "link" and verb == "add" and "veth" in arguments:
        network.pairs.append(_pair(space, arguments))
    elif kind == "link" and verb == "add" and "bridge" in arguments:
        network.bridged.add(space)
    elif kind == "link" and verb and "set".startswith(verb):
        _set_link(space, arguments, words, network)
    elif kind == "address" and verb and "add".startswith(verb) and "dev" in arguments[:-1]:
        address = arguments[0].partition("/")[0]
        network.addresses[space, address] = _value(arguments, "dev") or ""
    elif kind == "mptcp" and verb and "endpoint".startswith(verb) and arguments[:1] == ["add"]:
        device = _value(arguments, "dev") or network.addresses.get((space, " ".join(arguments[1:2])))
        flags = [word for word in arguments if word in ("subflow", "signal", "backup", "fullmesh")]
        network.endpoints.append((space, device or "", flags))
    elif not (kind in ("route", "rule") or (kind == "netns" and verb in ("del", "delete"))):
        network.remark(words)


def _pair(space: str, arguments: list[str]) -> list[tuple[str, str]]:
    """Return both ends of `ip link add A [netns X] type veth peer [name] B [netns Y]`."""
    middle = arguments.index("veth")
    peer = [word for word in arguments[middle + 1 :] if word not in ("peer", "name")]
    first = [word for word in arguments[:middle] if word not in ("name", "dev", "type")]
    other = f"{first[0]}-peer" if first else "veth-peer"
    return [
        (_value(arguments[:middle], "netns") or space, first[0] if first else "veth"),
        (_value(peer, "netns") or space, peer[0] if peer else other),
    ]


def _set_link(space: str, arguments: list[str], words: list[str], network: _Network) -> None:
    names = [word for word in arguments if word not in ("dev", "up", "down")]
    target, mtu = _value(arguments, "netns"), _value(arguments, "mtu")
    if not names:
        return
    if target is not None:
        for pair in network.pairs:
            pair[:] = [(target, name) if (of, name) == (space, names[0]) else (of, name) for of, name in pair]
    if mtu is not None and mtu.isdecimal():
        network.conditions.setdefault((space, names[0]), {})["mtu"] = mtu
    if target is None and mtu is None and "up" not in arguments and "master" not in arguments:
        network.remark(words)


def _qdisc(space: str, arguments: list[str], words: list[str], network: _Network) -> None:
    device = _value(arguments, "dev") or ""
    conditions = network.conditions.setdefault((space, device), {})
    if "netem" in arguments:
        conditions.setdefault("limit", str(_NETEM_LIMIT))
        rest = _netem(arguments[arguments.index("netem") + 1 :], conditions)
        if rest:
            network.remark(words, f"without: {' '.join(rest)}")
    elif "tbf" in arguments and _RATE.fullmatch(rate := (_value(arguments, "rate") or "").lower()):
        conditions["rate"] = rate
        network.remark(words, "its rate is in the scenario; its burst and latency are not")
    else:
        network.remark(words)


def _netem(words: list[str], conditions: dict[str, str]) -> list[str]:
    """Add the options of netem to the conditions, and return those that are not carried over."""
    rest: list[str] = []
    while words:
        option, value = words[0], (words[1].lower() if len(words) > 1 else "")
        taken = 2
        if option in ("delay", "latency") and _TIME.fullmatch(value):
            conditions["delay"] = value
            if len(words) > 2 and _TIME.fullmatch(words[2].lower()):
                conditions["jitter"], taken = words[2].lower(), 3
        elif option == "loss" and value == "random" and len(words) > 2 and _SHARE.fullmatch(words[2]):
            conditions["loss"], taken = words[2], 3
        elif option in ("loss", "duplicate", "corrupt") and _SHARE.fullmatch(value):
            conditions[option] = value
        elif option == "rate" and _RATE.fullmatch(value):
            conditions["rate"] = value
        elif option == "limit" and value.isdecimal():
            conditions["limit"] = value
        else:
            rest.append(option)
            taken = 1
        words = words[taken:]
    return rest


def _value(words: list[str], key: str) -> str | None:
    """Return the word after `key`."""
    return words[words.index(key) + 1] if key in words[:-1] else None


def _set_queue(conditions: dict[str, str], device: str, topology: Draft) -> None:
    """Replace netem's limit by what it leaves for a queue: it also counts the packets in the delay."""
    limit = int(conditions.pop("limit", "0"))
    if not limit or "rate" not in conditions:
        if limit not in (0, _NETEM_LIMIT):
            topology.remarks.append(f"limit of {limit} packets on {device}: it has no rate")
        return
    try:
        rate_bps = int(Rate.parse(conditions["rate"]))
        delay_ns = int(Duration.parse(conditions.get("delay", "0s")))
    except ValueError:
        return  # the scenario's own check names the value
    delayed = rate_bps * delay_ns // (10**9 * _PACKET_BITS)
    if limit > delayed:
        conditions["queue"] = f"{limit - delayed}pkt"
        return
    most_mbit = limit * _PACKET_BITS * 1000 / delay_ns
    topology.remarks.append(
        f"netem on {device}: its limit of {limit} packets counts those in the delay of {conditions['delay']}, so "
        f"packets of 1500 bytes get {most_mbit:.3g} Mbit/s instead of {conditions['rate']}. Only packets that "
        f"segmentation offload makes larger get more. {conditions['rate']} needs a limit above {delayed}"
    )


def _build(network: _Network) -> None:
    """Fill the draft: a node for each namespace with a pair, a link for each pair."""
    topology, names = network.topology, dict[str, str]()
    for pair in network.pairs:
        for space, _ in pair:
            names.setdefault(space, node_name(space or "root"))
    for space, name in names.items():
        nodes = (
            topology.routers
            if space in network.routers
            else topology.switches
            if space in network.bridged
            else topology.hosts
        )
        nodes.append(name)
    chosen = {space for space, _, flags in network.endpoints if {"backup", "fullmesh"} & set(flags)}
    for first, second in network.pairs:
        (a, device), (b, peer) = first, second
        if a == b:
            topology.remarks.append(
                f"the pair {device} and {peer}: both ends are in {a or 'the root namespace'}"
            )
            continue
        forward, backward = dict(network.conditions.get(first, {})), dict(network.conditions.get(second, {}))
        _set_queue(forward, f"{device} of {names[a]}", topology)
        _set_queue(backward, f"{peer} of {names[b]}", topology)
        mtu = forward.pop("mtu", None) or backward.get("mtu")
        backward.pop("mtu", None)
        link = topology.link_name(names[a], names[b])
        topology.endpoints += [
            (names[space], link, flags)
            for space, name, flags in network.endpoints
            if (space, name) in (first, second) and space in chosen
        ]
        asked = {**forward, **({"mtu": mtu} if mtu else {})}
        differing = {
            key: backward.get(key, _NEUTRAL.get(key, "null"))
            for key in dict.fromkeys([*forward, *backward])
            if forward.get(key) != backward.get(key)
        }
        if differing:
            asked["backward"] = f"{{{', '.join(f'{key}: {value}' for key, value in differing.items())}}}"
        topology.links.append((names[a], names[b], asked, f"{device}, {peer}"))
    topology.remarks.append(
        "addresses and routes: plait assigns its own, and each address has its own routing table"
    )
