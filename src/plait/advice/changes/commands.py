"""Commands on hosts that several kinds of changes use: sysctls, endpoints, and the interface of a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from plait.advice.changes.model import Candidate, HostCommand
from plait.advice.situation import AccessLine, Situation
from plait.engine.remote.lasting import Change as Lasting
from plait.engine.remote.lasting import LastingEndpoint, LastingSysctl
from plait.errors import shell_command

_FIRST_ID = 217
_CONTROL = "net.ipv4.tcp_congestion_control"


def sysctls(situation: Situation, name: str, words: str, values: Mapping[str, str]) -> Candidate:
    """Return a candidate that sets sysctls on both hosts to `values`."""
    hosts = (situation.client, situation.server)
    settings = {
        f"network.hosts.{host}.sysctls.{key.replace('.', '/')}": value
        for host in hosts
        for key, value in values.items()
    }
    commands = [
        sysctl(host, key, new, situation.sysctl(host, key)) for host in hosts for key, new in values.items()
    ]
    return Candidate(name, words, settings, tuple(commands))


def sysctl(host: str, key: str, new: str, former: str | None, load: str = "") -> HostCommand:
    """Return the change of a sysctl; a value that the scenario does not have (None) is kept in /run for the undo."""
    command, lasting = load + shell_command("sysctl", "-w", f"{key}={new}"), LastingSysctl(key, new)
    if former is not None:
        return HostCommand(host, command, shell_command("sysctl", "-w", f"{key}={former}"), lasting)
    kept = f"/run/plait-former-{key}"
    return HostCommand(
        host, f"test -e {kept} || sysctl {key} >{kept}; {command}", f"sysctl -p {kept} && rm {kept}", lasting
    )


def controls(
    situation: Situation, name: str, words: str, load: str = "", unload: str = ""
) -> Iterator[Candidate]:
    """Yield the congestion control `name` for both hosts, unless both have it.

    `load` is the command that brings it into a kernel. With `unload`, which takes it away, plait only prints commands.
    """
    hosts = (situation.client, situation.server)
    current = {host: situation.congestion_control(host) for host in hosts}
    if {value or "cubic" for value in current.values()} == {name}:
        return
    commands = [
        sysctl(host, _CONTROL, name, current[host], f"{load} && " if load else "")
        for host in hosts
        if current[host] != name
    ]
    if unload:
        commands = [replace(item, undo=f"{item.undo} && {unload}", lasting=None) for item in commands]
    fields = {f"network.hosts.{host}.congestion_control": name for host in hosts}
    yield Candidate(name, words, fields, tuple(commands))


def endpoints(situation: Situation, changed: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the settings for the client's endpoints, with the flags of some links changed."""
    flags = {**situation.endpoints, **changed}
    return {
        f"mptcp.endpoints.{situation.client}": [
            {"link": link, "flags": list(words)} for link, words in flags.items()
        ]
    }


def announced(situation: Situation, line: AccessLine) -> dict[str, Any]:
    """Return the settings by which the server announces its address on a line, if the line ends at it.

    That address stands for the only one of a real server, which needs no change.
    """
    server = situation.server
    present = situation.raw.get("mptcp", {}).get("endpoints", {}).get(server)
    if (
        not is_direct(situation, line)
        or present is None
        or line.link in {item.get("link") for item in present}
    ):
        return {}
    return {f"mptcp.endpoints.{server}": [*present, {"link": line.link, "flags": ["signal"]}]}


def is_direct(situation: Situation, line: AccessLine) -> bool:
    """Return whether a line ends at the server, and at no router before it."""
    ends = line.link.split("#")[0]
    return ends.startswith(f"{situation.server}-") or ends.endswith(f"-{situation.server}")


def address_words(situation: Situation, line: AccessLine) -> str:
    """Return the words of a shell for the first global address of a line's interface, of the scenario's family."""
    families = situation.raw["network"].get("addresses")
    family = {"ipv4": "-4 ", "ipv6": "-6 "}.get(families, "")
    shown = f"ip -o {family}address show dev {interface_of(line)} scope global"
    return f'$({shown} | awk \'{{sub("/.*", "", $4); print $4; exit}}\')'


def changed(situation: Situation, line: AccessLine, flag: str, former: str) -> HostCommand:
    """Return the change of a flag of the client's endpoint on a line."""
    command = f"ip mptcp endpoint change {address_words(situation, line)}"
    flags = ("subflow", "backup") if flag == "backup" else ("subflow",)
    return on_line(
        situation.client,
        line,
        f"{command} {flag}",
        f"{command} {former}",
        lasting_endpoint(situation, line, flags),
    )


def added(situation: Situation, line: AccessLine) -> HostCommand:
    """Return the addition of an endpoint on a line of the client."""
    number = _FIRST_ID + line.number  # an id of its own, so that the undo takes no other endpoint
    words = f"{address_words(situation, line)} dev {interface_of(line)} id {number} subflow"
    return on_line(
        situation.client,
        line,
        f"ip mptcp endpoint add {words}",
        f"ip mptcp endpoint delete id {number}",
        lasting_endpoint(situation, line, ("subflow",)),
    )


def lasting_endpoint(situation: Situation, line: AccessLine, flags: tuple[str, ...]) -> LastingEndpoint:
    """Return the endpoint on a line of the client as `plait.engine.remote.lasting` makes it."""
    version = {"ipv4": 4, "ipv6": 6}.get(situation.raw["network"].get("addresses"))
    return LastingEndpoint(None, flags, line.interface, version)


def on_line(
    host: str, line: AccessLine, command: str, undo: str, lasting: Lasting | None = None
) -> HostCommand:
    """Return a command with the interface of a line; without a known one, it has a note on what to write."""
    if line.interface is not None:
        return HostCommand(host, command, undo, lasting)
    title = re.sub(r"[^\w ().#-]", "?", line.title, flags=re.ASCII)
    note = f"write the interface of {title} for {interface_of(line)}; `ip -brief address` lists them"
    return HostCommand(host, command, undo, None, note)


def interface_of(line: AccessLine) -> str:
    """Return the interface of a line, or a word that stands for it."""
    return line.interface or f"INTERFACE{line.number}"
