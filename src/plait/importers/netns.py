"""Convert a shell script of a report that builds a network with `ip netns`, veth pairs and `tc`; nothing is executed.

It reads one command a line, with variables that the script sets. Loops, functions and conditions are beyond it: what it
does not understand becomes a remark of the scenario.
"""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import dataclass, field

from plait.errors import Mistake, ScenarioError
from plait.importers.draft import Draft, node_name

_MOST_LINES = 5000
_ASSIGNED = re.compile(r"(?:local |export |readonly )?(?P<name>\w+)=(?P<value>\S*)")
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")
_RATE = re.compile(r"\d+(?:\.\d+)?[kmg]?bit", re.IGNORECASE)
_TIME = re.compile(r"\d+(?:\.\d+)?(?:us|ms|s)", re.IGNORECASE)
_SHARE = re.compile(r"\d+(?:\.\d+)?%")
_NEUTRAL = {"delay": "0ms", "loss": "0%"}
"""What a direction has where only the other one has a condition."""
_OWN = ("ip", "tc", "sysctl", "iptables", "ip6tables", "nft", "ethtool", "iperf3", "mptcpize")
"""Programs whose commands matter for a network; others, such as echo, are passed over."""
_FORWARDING = re.compile(r"net\.ipv[46]\.(?:conf\.all\.forwarding|ip_forward)=1")


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
    backups: list[tuple[str, str]] = field(default_factory=list)
    """(namespace, interface) of endpoints with the flag backup."""

    def remark(self, words: list[str], reason: str = "") -> None:
        """Note a command that the scenario does not have."""
        self.topology.remarks.append(shlex.join(words) + (f" ({reason})" if reason else ""))


def looks_like(text: str) -> bool:
    """Return whether `text` is a script that makes network namespaces and veth pairs."""
    return bool(re.search(r"\bip\b.*\bnetns\b", text)) and bool(re.search(r"\btype\s+veth\b", text))


def draft(text: str, source: str) -> Draft:
    """Return the network of the script as a scenario (ScenarioError if it has no pair between two namespaces)."""
    network = _Network(Draft(f"{source}, imported from a script of network namespaces"))
    variables: dict[str, str] = {}
    joined = text.replace("\\\n", " ")
    for line in itertools.islice(joined.splitlines(), _MOST_LINES):
        for part in re.split(r"&&|;|\|\|", line.partition(" #")[0]):
            _read(part.strip(), network, variables)
    _build(network)
    if not network.topology.links:
        problem = "the script joins no two namespaces by a veth pair, as far as plait reads it (no loops or functions)"
        raise ScenarioError([Mistake(source, None, None, "", problem)])
    return network.topology


def _read(command: str, network: _Network, variables: dict[str, str]) -> None:
    assigned = _ASSIGNED.fullmatch(command)
    known = _VARIABLE.sub(lambda m: variables.get(m["braced"] or m["plain"], m[0]), command)
    if assigned:
        variables[assigned["name"]] = known.partition("=")[2].strip("\"'")
        return
    try:
        words = shlex.split(known, comments=True)
    except ValueError:
        words = known.split()
    while words[:1] in (["sudo"], ["do"], ["then"]):
        words = words[1:]
    if not words or words[0].rpartition("/")[2] not in _OWN:
        return
    words[0] = words[0].rpartition("/")[2]
    if _VARIABLE.search(" ".join(words)):
        network.remark(words, "it has a variable that the script does not set by a plain assignment")
        return
    space, rest = _space(words)
    if rest[:1] == ["ip"]:
        _ip(space, [word for word in rest[1:] if word not in ("-4", "-6")], words, network)
    elif rest[:2] == ["tc", "qdisc"] and rest[2:3] in (["add"], ["replace"], ["change"]):
        _qdisc(space, rest[3:], words, network)
    elif rest[:1] == ["sysctl"] and any(_FORWARDING.fullmatch(word) for word in rest):
        network.routers.add(space)
    else:
        network.remark(words)


def _space(words: list[str]) -> tuple[str, list[str]]:
    """Return the namespace in which a command acts, and the command without it."""
    if words[:3] == ["ip", "netns", "exec"] and len(words) > 4:
        return words[3], words[4:]
    if len(words) > 3 and words[1] in ("-n", "-netns"):
        return words[2], [words[0], *words[3:]]
    return "", words


def _ip(space: str, rest: list[str], words: list[str], network: _Network) -> None:
    kind, verb, arguments = (rest[0][:4] if rest else ""), rest[1:2], rest[2:]
    if kind == "netn" and verb == ["add"] and arguments:
        network.spaces.append(arguments[0])
    elif kind == "link" and verb == ["add"] and "veth" in arguments:
        network.pairs.append(_pair(space, arguments))
    elif kind in ("link", "l") and verb == ["set"]:
        _set_link(space, arguments, words, network)
    elif kind.startswith("a") and verb == ["add"] and "dev" in arguments[:-1]:
        address = arguments[0].partition("/")[0]
        network.addresses[space, address] = arguments[arguments.index("dev") + 1]
    elif kind == "mptc" and verb == ["endpoint"] and arguments[:1] == ["add"] and "backup" in arguments:
        device = network.addresses.get((space, arguments[1])) if len(arguments) > 1 else None
        network.backups.append((space, _value(arguments, "dev") or device or ""))
    elif not (kind in ("rout", "rule") or (kind == "mptc" and verb == ["endpoint"])):
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
    names = [word for word in arguments if word != "dev"]
    target, mtu = _value(arguments, "netns"), _value(arguments, "mtu")
    if target is not None and names:
        for pair in network.pairs:
            pair[:] = [(target, name) if (of, name) == (space, names[0]) else (of, name) for of, name in pair]
    if mtu is not None and names and mtu.isdecimal():
        network.conditions.setdefault((space, names[0]), {})["mtu"] = mtu
    if target is None and mtu is None and "up" not in arguments:
        network.remark(words)


def _qdisc(space: str, arguments: list[str], words: list[str], network: _Network) -> None:
    device = _value(arguments, "dev") or ""
    conditions = network.conditions.setdefault((space, device), {})
    if "netem" in arguments:
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
            conditions["queue"] = f"{value}pkt"  # netem's limit counts the packets in the delay, too
        else:
            rest.append(option)
            taken = 1
        words = words[taken:]
    return rest


def _value(words: list[str], key: str) -> str | None:
    """Return the word after `key`."""
    return words[words.index(key) + 1] if key in words[:-1] else None


def _build(network: _Network) -> None:
    """Fill the draft: a node for each namespace with a pair, a link for each pair."""
    topology, names = network.topology, dict[str, str]()
    for pair in network.pairs:
        for space, _ in pair:
            names.setdefault(space, node_name(space or "root"))
    for space, name in names.items():
        (topology.routers if space in network.routers else topology.hosts).append(name)
    for first, second in network.pairs:
        (a, device), (b, peer) = first, second
        if a == b:
            topology.remarks.append(
                f"the pair {device} and {peer}: both ends are in {a or 'the root namespace'}"
            )
            continue
        forward, backward = dict(network.conditions.get(first, {})), dict(network.conditions.get(second, {}))
        for conditions in (forward, backward):
            if "queue" in conditions and "rate" not in conditions:
                topology.remarks.append(
                    f"limit of {conditions.pop('queue')} on {device} or {peer}: it has no rate"
                )
        mtu = forward.pop("mtu", None) or backward.get("mtu")
        backward.pop("mtu", None)
        link = topology.link_name(names[a], names[b])
        topology.backups += [
            (names[space], link) for space, name in network.backups if (space, name) in (first, second)
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
