"""Settings of a host that stay after plait has ended: `apply` makes them, and `undo` restores what it found.

The agent on the host writes a journal before each change (`agent/src/settings/record.rs`). A reboot ends both the
settings and the journal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from plait.engine.remote.answers import LARGEST_LIMIT, global_address, objects_in
from plait.engine.remote.ssh import THIS_MACHINE, HostSession, connected
from plait.errors import MachineError, RequestError, TrialError, shell_command
from plait.hosts.model import HostsFile, is_destination

_NAME = re.compile(r"net[./](mptcp[./]|ipv4[./]tcp_|core[./](rmem|wmem)_(max|default)$)[a-z0-9_]*", re.ASCII)
_VALUE = re.compile(r"[A-Za-z0-9_. \t-]{1,100}", re.ASCII)
_DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.%/-]{0,39}", re.ASCII)
_FLAGS = frozenset({"signal", "subflow", "backup", "fullmesh"})
_CHANGE_S = 120
"""The agent gives subflows that connect 8 s, and each program `tc` 20 s."""


@dataclass(frozen=True)
class LastingSysctl:
    """A setting of TCP, MPTCP or socket buffers, such as `net.ipv4.tcp_congestion_control`."""

    name: str
    value: str


@dataclass(frozen=True)
class LastingEndpoint:
    """An MPTCP endpoint; flags: signal, subflow, backup, fullmesh."""

    address: str | None
    """None: the first global address of `device`."""
    flags: tuple[str, ...]
    device: str | None = None
    """The interface through which its subflows leave; None: the one that the routes name."""
    version: int | None = None
    """The IP version of an address that is None: 4 or 6; None: either, IPv4 first."""


@dataclass(frozen=True)
class LastingLimits:
    """MPTCP limits from 0 to 8; None: the limit stays."""

    subflows: int | None = None
    add_addr_accepted: int | None = None


@dataclass(frozen=True)
class LastingQdisc:
    """A queueing discipline of an interface, with options in the words of `tc`."""

    device: str
    kind: str
    options: tuple[str, ...] = ()
    through: str | None = None
    """The name of a device `ifb` that plait adds, for what the interface receives; None: for what it sends."""


Change = LastingSysctl | LastingEndpoint | LastingLimits | LastingQdisc


@dataclass(frozen=True)
class RemoteHost:
    """A host by its name, and how ssh reaches it."""

    name: str
    destination: str
    ssh_config: Path | None = None

    @classmethod
    def named(cls, name: str, hosts: HostsFile | None = None, ssh_config: Path | None = None) -> RemoteHost:
        """Return the host `name` of `hosts`; without `hosts`, the one that ssh knows. `localhost` is this machine.

        Raises RequestError: `hosts` has no such host, or the name is no destination of ssh.
        """
        if name == "localhost":
            return cls(name, THIS_MACHINE, ssh_config)
        if hosts is None:
            if not is_destination(name):
                raise RequestError(f"{name[:60]!r} is not a destination of ssh; write USER@HOST")
            return cls(name, name, ssh_config)
        if name not in hosts.hosts:
            raise RequestError(f"the hosts file has no host {name}; it has {', '.join(hosts.hosts)}")
        return cls(name, hosts.hosts[name].ssh, ssh_config)


@dataclass(frozen=True)
class Applied:
    """What changed on a host, one line for each change; and what `undo` left as somebody else had set it."""

    host: str
    changed: tuple[str, ...]
    left: tuple[str, ...] = ()


def apply(host: RemoteHost, changes: Sequence[Change]) -> Applied:
    """Make changes on a host that stay until `undo` or a reboot. What is there already does not change.

    Raises:
        RequestError: a change is none that plait makes.
        MachineError: the host cannot be reached, or refuses a change; `undo` takes back those before it.
    """
    for change in changes:
        _check(change)
    with _session(host) as session:
        try:
            wanted = json.dumps(_wanted([_addressed(session, change) for change in changes])).encode()
            lines = session.order("apply", str(len(wanted)), data=wanted, timeout_s=_CHANGE_S)
        except TrialError as error:
            undoing = shell_command("plait", "undo", host.name)
            raise MachineError(
                f"changing settings: {error}; `{undoing}` takes back what was changed"
            ) from error
        return _answer(host, lines)


def _addressed(session: HostSession, change: Change) -> Change:
    """Return a change in which an endpoint has the address that its interface has now. Raises MachineError."""
    if not isinstance(change, LastingEndpoint) or change.address is not None:
        return change
    address = global_address(
        objects_in("".join(session.order("addresses", str(change.device)))) or [], change.version
    )
    if address is None:
        family = "global" if change.version is None else f"global IPv{change.version}"
        raise MachineError(
            f"changing settings: {session.name} has no {family} address on {change.device}; connect that line, or "
            "name another interface"
        )
    return replace(change, address=address)


def undo(host: RemoteHost, *, preview: bool = False) -> Applied:
    """Restore what `apply` found on a host, except what somebody else has changed since.

    `preview` changes nothing, and returns what would. Raises MachineError: the host cannot be reached, or a setting
    cannot be restored; the journal stays, so `undo` may run again.
    """
    with _session(host) as session:
        try:
            return _answer(host, session.order("preview" if preview else "undo", timeout_s=_CHANGE_S))
        except TrialError as error:
            raise MachineError(f"undoing settings: {error}; run it again once that is solved") from error


def _answer(host: RemoteHost, lines: Sequence[str]) -> Applied:
    said = [line.removeprefix("said ") for line in lines if line.startswith("said ")]
    left = tuple(line.removeprefix("left ") for line in said if line.startswith("left "))
    return Applied(host.name, tuple(line for line in said if not line.startswith("left ")), left)


@contextmanager
def _session(host: RemoteHost) -> Iterator[HostSession]:
    """Yield a session with the agent on a host where plait may be root."""
    with ExitStack() as stack:
        try:
            sessions = stack.enter_context(connected({host.name: host.destination}, host.ssh_config))
        except TrialError as error:
            raise MachineError(f"connecting to {host.name}: {error}") from error
        session = sessions[host.name]
        if session.facts.get("root") != "yes":
            raise MachineError(
                f"{host.name}: changing settings needs root, or `sudo -n` without a password, there; allow it"
            )
        yield session


def _wanted(changes: Sequence[Change]) -> dict[str, Any]:
    """Return the changes as the agent reads them."""
    wanted: dict[str, Any] = {
        "sysctls": {},
        "subflows": None,
        "add_addr_accepted": None,
        "endpoints": [],
        "qdiscs": [],
        "ingress": [],
    }
    for change in changes:
        match change:
            case LastingSysctl(name, value):
                wanted["sysctls"][name.replace(".", "/")] = " ".join(value.split())
            case LastingLimits():
                wanted |= {name: value for name, value in asdict(change).items() if value is not None}
            case LastingEndpoint(address, flags, device):
                wanted["endpoints"].append(
                    {"address": str(ip_address(str(address))), "flags": flags, "device": device}
                )
            case LastingQdisc(through=None):
                wanted["qdiscs"].append(
                    {"device": change.device, "kind": change.kind, "options": change.options}
                )
            case LastingQdisc():
                wanted["ingress"].append(asdict(change))
    return wanted


def _check(change: Change) -> None:
    """Raise RequestError if plait does not make such a change."""
    match change:
        case LastingSysctl(name, value):
            is_good = bool(_NAME.fullmatch(name) and _VALUE.fullmatch(value) and value.strip())
            remedy = "plait sets sysctls of net.mptcp and net.ipv4.tcp_, and the sizes of net.core"
        case LastingEndpoint(address, flags, device):
            is_placed = _is_device(device) if address is None else _is_address(address)
            is_placed = is_placed and (device is None or _is_device(device))
            is_good = is_placed and bool(flags) and _FLAGS.issuperset(flags)
            remedy = f"write an IP address or an interface, and flags of {', '.join(sorted(_FLAGS))}"
        case LastingLimits(subflows, add_addr_accepted):
            is_good = all(n is None or 0 <= n <= LARGEST_LIMIT for n in (subflows, add_addr_accepted))
            remedy = f"a limit is at most {LARGEST_LIMIT}"
        case LastingQdisc(device, kind, options, through):
            is_placed = _is_device(device) and (through is None or _is_device(through))
            is_good = is_placed and all(_WORD.fullmatch(word) for word in (kind, *options))
            remedy = "write an interface, and a queueing discipline in the words of tc"
    if not is_good:
        raise RequestError(f"{change} is no change that plait makes on a host: {remedy}")


def _is_device(name: str | None) -> bool:
    return name is not None and _DEVICE.fullmatch(name) is not None


def _is_address(text: str) -> bool:
    try:
        return "%" not in text and bool(ip_address(text))
    except ValueError:
        return False
