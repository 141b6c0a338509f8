"""The two hosts of a scenario, the lines of the one that opens connections, and the settings that both have now."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from plait.errors import RequestError
from plait.scenario import Scenario
from plait.scenario.names import read_link_name
from plait.units import Duration, Rate, Size

_DROPPED = (
    "vary",
    "across",
    "baseline",
    "judge",
    "figures",
    "labels",
    "published",
    "measure",
    "pause",
    "traffic",
)
"""Fields of a study that an advice replaces."""
MOST_LINES = 8
_SIDES, _COMMON = ("forward", "backward"), ("label", "mtu", "middlebox")
_INTERFACE = re.compile(
    r"(?:eth|en[opsx]|wlan|wl[opsx]|wwan|ww[opsx]|usb|ppp|tun|wg|bond|veth)[A-Za-z0-9_.]*[0-9][a-z0-9]*"
)
"""A label of one word that only an interface has, as the kernel and systemd name them."""
LARGEST_BUFFERS = {"net.ipv4.tcp_rmem": 6_291_456, "net.ipv4.tcp_wmem": 4_194_304}
"""Linux's largest buffers on machines with several GB, in bytes; the third number of the setting."""


@dataclass(frozen=True)
class AccessLine:
    """One line of the client: the link of the scenario that begins at it."""

    link: str
    title: str
    """What people call it."""
    word: str
    """A short word for it, which no other line has."""
    number: int
    """From 1 on, in the order of the scenario."""
    up: Mapping[str, Any]
    """The conditions from the client, as the scenario writes them."""
    down: Mapping[str, Any]
    interface: str | None = None
    """The client's interface, if the label names it: wwan0 of "lte (wwan0)"; None: the scenario does not say."""


@dataclass(frozen=True)
class Situation:
    """What a person has: two hosts, the lines between them, and their settings."""

    raw: Mapping[str, Any]
    """The scenario without what a study decides; hosts are a mapping."""
    client: str
    server: str
    lines: tuple[AccessLine, ...]
    """The first one carries the first subflow."""

    @classmethod
    def of(cls, scenario: Scenario, interfaces: Sequence[str] = ()) -> Situation:
        """Read a scenario; `interfaces` are those of the lines, in the order of the links.

        Raises RequestError if no flow has two ends, with only one line, or if there are not as many interfaces.
        """
        raw = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
        client, server = _ends(raw)
        hosts = raw["network"].get("hosts", [])
        if isinstance(hosts, list):
            raw["network"]["hosts"] = {name: {} for name in hosts}
        lines = tuple(_lines(raw, client, server))
        if len(lines) < 2:
            raise RequestError(
                f"advising on this scenario: {client} has {len(lines)} line, and an advice compares two or more; "
                "give a scenario with a link for each line, as `plait lines` writes it"
            )
        if len(lines) > MOST_LINES:
            raise RequestError(
                f"advising on this scenario: {client} has {len(lines)} lines, and an advice takes at most "
                f"{MOST_LINES}; leave some out"
            )
        if interfaces:
            lines = _with_interfaces(lines, interfaces)
        kept = {name: value for name, value in raw.items() if name not in _DROPPED}
        return cls({**kept, "transport": "mptcp"}, client, server, lines)

    @property
    def others(self) -> list[str]:
        """The hosts that the advice does not concern."""
        return [host for host in self.raw["network"]["hosts"] if host not in (self.client, self.server)]

    def least_delay_s(self, crossings: int) -> float:
        """Return the least time in s in which data cross the lines once, or there and back; 0 where delays vary."""
        ways = [(line.up, line.down) for line in self.lines]
        if crossings == 0 or any("jitter" in way for pair in ways for way in pair):
            return 0.0
        seconds = [[int(Duration.parse(str(way.get("delay", "0s")))) / 1e9 for way in pair] for pair in ways]
        return min(min(pair) if crossings == 1 else sum(pair) for pair in seconds)

    def sysctl(self, host: str, name: str) -> str | None:
        """Return what the scenario sets `name` to on a host; None if it leaves it to the kernel."""
        own, general = (
            self.raw["network"]["hosts"].get(host, {}).get("sysctls", {}),
            self.raw.get("sysctls", {}),
        )
        value = {**_dotted(general), **_dotted(own)}.get(name)
        return None if value is None else str(value)

    def congestion_control(self, host: str) -> str | None:
        """Return the congestion control of a host; None if the scenario leaves it to the kernel, which has cubic."""
        own = self.raw["network"]["hosts"].get(host, {}).get("congestion_control")
        general = self.raw.get("tcp", {}).get("congestion_control")
        return own or general or self.sysctl(host, "net.ipv4.tcp_congestion_control")

    def largest_buffer(self, host: str, name: str) -> int:
        """Return the third number of tcp_rmem or tcp_wmem of a host, in bytes."""
        tcp = self.raw.get("tcp", {})
        general = tcp.get("receive_buffer_max" if name.endswith("rmem") else "send_buffer_max")
        parts = (self.sysctl(host, name) or "").split()
        if parts and not (len(parts) == 3 and all(part.isdecimal() and len(part) < 12 for part in parts)):
            raise RequestError(
                f"advising on this scenario: {name} of {host} is no three sizes in bytes; write for example "
                f'"4096 131072 {LARGEST_BUFFERS[name]}"'
            )
        if parts:
            return int(parts[2])
        return int(Size.parse(str(general))) if general is not None else LARGEST_BUFFERS[name]

    @cached_property
    def endpoints(self) -> dict[str, tuple[str, ...]]:
        """The flags of the client's endpoints by link: those of the scenario, or those that plait derives."""
        given = self.raw.get("mptcp", {}).get("endpoints", {}).get(self.client)
        if given is None:
            return {line.link: ("subflow",) for line in self.lines[1:]}
        return {item["link"]: tuple(item.get("flags", ("subflow",))) for item in given if "link" in item}


def _dotted(sysctls: Mapping[str, Any]) -> dict[str, Any]:
    """Return sysctls by names with dots; `net/ipv4/tcp_rmem` is another spelling of the same."""
    return {name.replace("/", "."): value for name, value in sysctls.items()}


def _ends(raw: Mapping[str, Any]) -> tuple[str, str]:
    """Return who opens the connections, and to whom."""
    for item in raw.get("traffic", []):
        (flow,) = [value for name, value in item.items() if isinstance(value, dict)] or [{}]
        if "from" in flow and "to" in flow:
            ends = (str(flow["from"]), str(flow["to"]))
            return (ends[1], ends[0]) if flow.get("reverse") else ends
    raise RequestError(
        "advising on this scenario: no flow of its traffic has both from and to, so nothing says which host opens "
        "connections; add for example {bulk: {from: server, to: home, reverse: true, duration: 10s}}"
    )


def _with_interfaces(lines: tuple[AccessLine, ...], interfaces: Sequence[str]) -> tuple[AccessLine, ...]:
    if len(interfaces) != len(lines):
        titles = ", ".join(line.title for line in lines)
        raise RequestError(
            f"--interfaces names {len(interfaces)} of {len(lines)} lines; write one for each, in this order: {titles}"
        )
    for name in interfaces:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}", name, re.ASCII):
            raise RequestError(
                f"--interfaces: {name[:40]!r} is no name of an interface; write for example eth0,wwan0"
            )
    return tuple(replace(line, interface=name) for line, name in zip(lines, interfaces, strict=True))


def _lines(raw: Mapping[str, Any], client: str, server: str) -> list[AccessLine]:
    network = raw["network"]
    others = {name for name in network["hosts"] if name not in (client, server)}
    nodes = {name for kind in ("hosts", "routers", "switches") for name in network.get(kind, ())}
    lines = list[AccessLine]()
    for name, conditions in (network.get("links") or {}).items():
        ends = read_link_name(name, nodes)
        if client not in (ends.a, ends.b) or others & {ends.a, ends.b}:
            continue
        sides = sides_of(conditions or {})
        up, down = (sides[side] for side in (_SIDES if ends.a == client else reversed(_SIDES)))
        title = str((conditions or {}).get("label") or name)
        word = re.sub(r"[^a-z0-9]+", "-", title.split(" (", maxsplit=1)[0].lower()).strip("-")[:20] or "line"
        if word in {line.word for line in lines}:
            word = f"{word}-{len(lines) + 1}"
        lines.append(AccessLine(name, title, word, len(lines) + 1, up, down, _interface(title)))
    return lines


def _interface(title: str) -> str | None:
    """Return the interface that a title names: wwan0 of "lte (wwan0)", and eth0 alone, but not cable."""
    match = re.fullmatch(r"(?:.*\s)?\(([A-Za-z0-9_][A-Za-z0-9_.-]{0,14})\)", title, re.ASCII)
    if match is not None:
        return match[1]
    return title if len(title) <= 15 and _INTERFACE.fullmatch(title) else None


def common_of(link: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a link has of both directions alike, and not of one alone."""
    return {name: link[name] for name in _COMMON if name in link}


def sides_of(link: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the conditions of each direction of a link, `forward` and `backward`."""
    both = {name: value for name, value in link.items() if name not in (*_SIDES, *_COMMON)}
    return {side: {**both, **(link.get(side) or {})} for side in _SIDES}


def rate_of(conditions: Mapping[str, Any]) -> float | None:
    """Return the rate of one direction of a line in bit/s, of a token bucket its baseline; None without one."""
    rate = (conditions.get("bucket") or {}).get("baseline", conditions.get("rate"))
    return None if rate is None else float(Rate.parse(str(rate)))


def shaped(conditions: Mapping[str, Any], rate: str) -> dict[str, Any]:
    """Return the conditions of a direction behind a shaper: its rate is never reached, so nothing else queues."""
    kept = {name: value for name, value in conditions.items() if name not in ("queue", "bucket")}
    return {**kept, "rate": rate, "aqm": "fq_codel"}


def slower(conditions: Mapping[str, Any], part: float) -> dict[str, Any]:
    """Return the conditions of a direction with a part of its rates."""

    def scaled(rate: object) -> str:
        return f"{float(Rate.parse(str(rate))) * part / 1000:.0f}kbit"

    bucket = conditions.get("bucket")
    changed = {**conditions, "rate": scaled(conditions["rate"])}
    if bucket and "baseline" in bucket:
        changed["bucket"] = {**bucket, "baseline": scaled(bucket["baseline"])}
    return changed


def queue_s(conditions: Mapping[str, Any]) -> float | None:
    """Return how long a full drop-tail queue in bytes takes to drain, in s; None if it is active, or not in bytes."""
    rate, queue = rate_of(conditions), conditions.get("queue")
    if rate is None or queue is None or conditions.get("aqm") is not None:
        return None
    if not isinstance(queue, str) or not queue.endswith("B"):
        return None
    return int(Size.parse(queue)) * 8 / rate
