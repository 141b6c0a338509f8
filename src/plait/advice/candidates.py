"""What a person can change on a stock kernel: one record for each kind of change, with what it needs.

Each record turns a situation into candidates: the settings of the scenario that stand for the change, and the commands
that make it and take it back on a host. A candidate that changes nothing of the situation does not occur.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plait.advice.situation import LARGEST_BUFFERS, common_of, queue_s, rate_of, sides_of
from plait.engine.remote.lasting import (
    LastingEndpoint,
    LastingIngress,
    LastingLimits,
    LastingQdisc,
    LastingSysctl,
)
from plait.errors import shell_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from plait.advice.situation import AccessLine, Situation
    from plait.engine.remote.lasting import Change as Lasting

BLOATED_S = 0.05
"""A queue that takes longer to drain is worth a shaper in front of it."""
SHAPED = 0.95
"""The share of a line's rate that a shaper passes, so that the queue forms where the shaper is."""
LARGE_BYTES = 16 * 2**20
_CONTROLS = {"bbr": "tcp_bbr", "cubic": None, "reno": None}
"""Congestion controls of Debian's kernels, and the module that each needs."""
_UNSENT_BYTES = 131_072
_FIRST_ID = 217
_HANDLE = "7a17:"
"""Of plait's queueing disciplines."""


@dataclass(frozen=True)
class HostCommand:
    """A command of root on a host, and the one that takes it back."""

    host: str
    command: str
    undo: str
    lasting: Lasting | None = None
    """The same change for `plait.engine.remote.lasting`; None if plait does not make it itself."""
    note: str = ""
    """What a person must do first."""


@dataclass(frozen=True)
class Candidate:
    """One change, or several together."""

    name: str
    words: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the scenario by path."""
    commands: tuple[HostCommand, ...] = ()
    parts: tuple[str, ...] = ()
    """The names of the changes that it has together; empty for one change."""


NOW = Candidate("now", "the settings as they are")


@dataclass(frozen=True)
class ChangeKind:
    """A kind of change."""

    name: str
    needs: str
    """What a host needs for it."""
    causes: frozenset[str]
    """The causes of `plait explain` against which it may help."""
    candidates: Callable[[Situation], Iterator[Candidate]]


def _controls(situation: Situation) -> Iterator[Candidate]:
    hosts = (situation.client, situation.server)
    current = {host: situation.congestion_control(host) for host in hosts}
    for name, module in _CONTROLS.items():
        if {value or "cubic" for value in current.values()} == {name}:
            continue
        load = f"modprobe {module} && " if module else ""
        yield Candidate(
            name,
            f"congestion control {name} on both hosts",
            {f"network.hosts.{host}.congestion_control": name for host in hosts},
            tuple(
                _sysctl(host, "net.ipv4.tcp_congestion_control", name, current[host], load) for host in hosts
            ),
        )


def _sysctls(situation: Situation, name: str, words: str, values: Mapping[str, str]) -> Candidate:
    """Return a candidate that sets sysctls on both hosts to `values`."""
    hosts = (situation.client, situation.server)
    settings = {
        f"network.hosts.{host}.sysctls": situation.with_host(host, sysctls=dict(values))["sysctls"]
        for host in hosts
    }
    commands = [
        _sysctl(host, key, new, situation.sysctl(host, key)) for host in hosts for key, new in values.items()
    ]
    return Candidate(name, words, settings, tuple(commands))


def _sysctl(host: str, key: str, new: str, former: str | None, load: str = "") -> HostCommand:
    """Return the change of a sysctl; a value that the scenario does not have (None) is kept in /run for the undo."""
    command, lasting = load + shell_command("sysctl", "-w", f"{key}={new}"), LastingSysctl(key, new)
    if former is not None:
        return HostCommand(host, command, shell_command("sysctl", "-w", f"{key}={former}"), lasting)
    kept = f"/run/plait-former-{key}"
    return HostCommand(
        host, f"test -e {kept} || sysctl {key} >{kept}; {command}", f"sysctl -p {kept} && rm {kept}", lasting
    )


def _buffers(situation: Situation) -> Iterator[Candidate]:
    hosts = (situation.client, situation.server)
    values = {}
    for key in LARGEST_BUFFERS:
        first = "131072" if key.endswith("rmem") else "16384"
        if min(situation.largest_buffer(host, key) for host in hosts) < LARGE_BYTES:
            values[key] = f"4096 {first} {LARGE_BYTES}"
    general = {"receive_buffer_max", "send_buffer_max"} & set(situation.raw.get("tcp", {}))
    if not values:
        return
    if general:  # the scenario sets them for all hosts
        settings = {f"tcp.{name}": "16MiB" for name in sorted(general)}
        yield Candidate("buffers", "socket buffers of up to 16 MiB on both hosts", settings,
                        _sysctls(situation, "", "", values).commands)  # fmt: skip
        return
    yield _sysctls(situation, "buffers", "socket buffers of up to 16 MiB on both hosts", values)


def _unsent(situation: Situation) -> Iterator[Candidate]:
    key = "net.ipv4.tcp_notsent_lowat"
    if situation.sysctl(situation.server, key) is None:
        value = {key: str(_UNSENT_BYTES)}
        yield _sysctls(situation, "notsent-lowat", "at most 128 KiB unsent in a socket", value)


def _backups(situation: Situation) -> Iterator[Candidate]:
    for line in situation.lines[1:]:
        flags = situation.endpoints.get(line.link, ())
        if flags and "backup" not in flags:
            yield Candidate(
                f"{line.word}-backup",
                f"{line.title} as a backup",
                _endpoints(situation, {line.link: (*flags, "backup")}),
                (_changed(situation, line, "backup", "nobackup"),),
            )


def _joins(situation: Situation) -> Iterator[Candidate]:
    for line in situation.lines[1:]:
        flags = situation.endpoints.get(line.link, ())
        if flags and "backup" not in flags:
            continue
        settings = _endpoints(situation, {line.link: ("subflow",)})
        commands = [_changed(situation, line, "nobackup", "backup") if flags else _added(situation, line)]
        mptcp = situation.raw.get("mptcp", {})
        announced = mptcp.get("endpoints", {}).get(situation.server)
        is_direct = line.link.startswith(f"{situation.server}-") or line.link.split("#")[0].endswith(
            f"-{situation.server}"
        )
        if is_direct and announced is not None and line.link not in {item.get("link") for item in announced}:
            settings[f"mptcp.endpoints.{situation.server}"] = [
                *announced,
                {"link": line.link, "flags": ["signal"]},
            ]
        count = len(situation.lines)
        for host, limits in mptcp.get("limits", {}).items():
            if min(limits.get("subflows", count), limits.get("add_addr_accepted", count)) < count:
                settings[f"mptcp.limits.{host}"] = {"subflows": count, "add_addr_accepted": count}
                commands.append(
                    HostCommand(
                        host,
                        f"ip mptcp limits set subflows {count}",
                        f"ip mptcp limits set subflows {int(limits.get('subflows', 2))}",
                        LastingLimits(subflows=count),
                    )
                )
        yield Candidate(f"use-{line.word}", f"{line.title} as a full path", settings, tuple(commands))


def _endpoints(situation: Situation, changed: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the settings for the client's endpoints, with the flags of some links changed."""
    flags = {**situation.endpoints, **changed}
    return {
        f"mptcp.endpoints.{situation.client}": [
            {"link": link, "flags": list(words)} for link, words in flags.items()
        ]
    }


def _address(situation: Situation, line: AccessLine) -> str:
    """Return the words of a shell for the first global address of a line's interface, of the scenario's family."""
    families = situation.raw["network"].get("addresses")
    family = {"ipv4": "-4 ", "ipv6": "-6 "}.get(families, "")
    shown = f"ip -o {family}address show dev {_interface(line)} scope global"
    return f'$({shown} | awk \'{{sub("/.*", "", $4); print $4; exit}}\')'


def _changed(situation: Situation, line: AccessLine, flag: str, former: str) -> HostCommand:
    command = f"ip mptcp endpoint change {_address(situation, line)}"
    flags = ("subflow", "backup") if flag == "backup" else ("subflow",)
    return _on_line(
        situation.client, line, f"{command} {flag}", f"{command} {former}", _endpoint(situation, line, flags)
    )


def _added(situation: Situation, line: AccessLine) -> HostCommand:
    number = _FIRST_ID + line.number  # an id of its own, so that the undo takes no other endpoint
    added = f"{_address(situation, line)} dev {_interface(line)} id {number} subflow"
    return _on_line(
        situation.client,
        line,
        f"ip mptcp endpoint add {added}",
        f"ip mptcp endpoint delete id {number}",
        _endpoint(situation, line, ("subflow",)),
    )


def _endpoint(situation: Situation, line: AccessLine, flags: tuple[str, ...]) -> LastingEndpoint:
    version = {"ipv4": 4, "ipv6": 6}.get(situation.raw["network"].get("addresses"))
    return LastingEndpoint(None, flags, line.interface, version)


def _on_line(
    host: str, line: AccessLine, command: str, undo: str, lasting: Lasting | None = None
) -> HostCommand:
    """Return a command with the interface of a line; without a known one, it has a note on what to write."""
    if line.interface is not None:
        return HostCommand(host, command, undo, lasting)
    title = re.sub(r"[^\w ().#-]", "?", line.title, flags=re.ASCII)
    note = f"write the interface of {title} for {_interface(line)}; `ip -brief address` lists them"
    return HostCommand(host, command, undo, None, note)


def _single(situation: Situation) -> Iterator[Candidate]:
    yield Candidate(
        "tcp",
        f"{situation.lines[0].title} alone, without MPTCP",
        {"transport": "tcp"},
        (
            HostCommand(
                situation.client,
                "sysctl -w net.mptcp.enabled=0",
                "sysctl -w net.mptcp.enabled=1",
                LastingSysctl("net.mptcp.enabled", "0"),
            ),
        ),
    )


def _shapers(situation: Situation) -> Iterator[Candidate]:
    for line in situation.lines:
        directions = {"up": line.up, "down": line.down}
        bloated = [name for name, conditions in directions.items() if (queue_s(conditions) or 0) > BLOATED_S]
        if not bloated:
            continue
        link = situation.raw["network"]["links"][line.link] or {}
        sides, commands = sides_of(link), list[HostCommand]()
        for name in bloated:
            rate = rate_of(directions[name]) or 0.0
            side = next(side for side, conditions in sides.items() if conditions == directions[name])
            kept = {key: value for key, value in directions[name].items() if key != "queue"}
            sides[side] = {**kept, "rate": f"{rate * SHAPED / 1000:.0f}kbit", "aqm": "fq_codel"}
            commands.append(_shaper(situation.client, line, name, round(rate * SHAPED / 1000)))
        yield Candidate(
            f"shape-{line.word}",
            f"a shaper (cake) at {SHAPED:.0%} of the rate of {line.title}, {' and '.join(bloated)}".replace(
                "%", " %"
            ),
            {f"network.links.{line.link}": {**common_of(link), **sides}},
            tuple(commands),
        )


def _shaper(host: str, line: AccessLine, direction: str, kbit: int) -> HostCommand:
    """Return a shaper that fails where somebody has set a queueing discipline, and whose undo takes only its own."""
    interface, ifb = _interface(line), f"plait-ifb{line.number}"
    if direction == "up":
        return _on_line(
            host,
            line,
            f"tc qdisc add dev {interface} root handle {_HANDLE} cake bandwidth {kbit}kbit",
            f"tc qdisc delete dev {interface} root handle {_HANDLE}",
            LastingQdisc(interface, "cake", ("bandwidth", f"{kbit}kbit")),
        )
    steps = (
        f"tc qdisc add dev {interface} handle ffff: ingress",
        f"ip link add {ifb} type ifb",
        f"ip link set {ifb} up",
        f"tc filter add dev {interface} parent ffff: matchall action mirred egress redirect dev {ifb}",
        f"tc qdisc add dev {ifb} root cake bandwidth {kbit}kbit ingress",
    )
    return _on_line(
        host,
        line,
        " && ".join(steps),
        f"tc qdisc delete dev {interface} ingress && ip link delete {ifb}",
        LastingIngress(interface, ifb, "cake", ("bandwidth", f"{kbit}kbit", "ingress")),
    )


def _interface(line: AccessLine) -> str:
    return line.interface or f"INTERFACE{line.number}"


CHANGES = (
    ChangeKind(
        "congestion control", "a stock kernel; bbr its module", frozenset({"loss-recovery", "queue-full", "too-short"}),
        _controls,
    ),
    ChangeKind(
        "buffers", "a stock kernel", frozenset({"receive-window", "send-buffer", "head-of-line"}), _buffers
    ),
    ChangeKind("unsent data", "a stock kernel", frozenset({"sender-idle", "queue-full"}), _unsent),
    ChangeKind(
        "backup", "MPTCP, Linux 5.6", frozenset({"head-of-line", "scheduler-idle-path", "last-bytes"}), _backups,
    ),
    ChangeKind("endpoint", "MPTCP, Linux 5.6", frozenset({"subflow-never", "backup"}), _joins),
    ChangeKind("transport", "a stock kernel", frozenset({"head-of-line", "shared-bottleneck"}), _single),
    ChangeKind("shaper", "the qdisc cake (package iproute2)", frozenset({"queue-full", "competing-traffic"}), _shapers),
)  # fmt: skip


def candidates(situation: Situation) -> list[Candidate]:
    """Return all candidates of a situation, after the settings as they are."""
    return [NOW, *(candidate for change in CHANGES for candidate in change.candidates(situation))]


def against_cause(situation: Situation, cause: str) -> list[Candidate]:
    """Return the candidates that may help against a cause of `plait explain`."""
    return [
        candidate
        for change in CHANGES
        if cause in change.causes
        for candidate in change.candidates(situation)
    ]


def together(first: Candidate, second: Candidate) -> Candidate | None:
    """Return two changes at once; None if one would replace the other."""
    merged: dict[str, Any] = dict(first.settings)
    for path, value in second.settings.items():
        if path not in merged:
            merged[path] = value
        elif path.endswith(".sysctls"):
            merged[path] = {**merged[path], **value}
        else:
            return None
    if first is NOW or second is NOW or "transport" in merged:
        return None
    return Candidate(
        f"{first.name}+{second.name}",
        f"{first.words}; {second.words}",
        merged,
        (*first.commands, *second.commands),
        (*(first.parts or (first.name,)), *(second.parts or (second.name,))),
    )
