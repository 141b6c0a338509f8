"""What the kernels of both hosts are set to, and the same settings as fields of a scenario.

A twin then has the congestion control, the buffers, and the MPTCP endpoints and limits of the hosts that it stands for.
A value that a host sends is untrusted, so plait writes only values of a known form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plait.errors import shell_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from plait.engine.remote.ssh import HostSession
    from plait.measure.survey import Survey

CONGESTION_CONTROL, SCHEDULER, ENABLED = (
    "net/ipv4/tcp_congestion_control",
    "net/mptcp/scheduler",
    "net/mptcp/enabled",
)
TIMESTAMPS = "net/ipv4/tcp_timestamps"
BUFFERS = ("net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem")
LINUX_DEFAULTS = {
    "net/ipv4/tcp_ecn": "2",
    "net/ipv4/tcp_notsent_lowat": "4294967295",
    "net/ipv4/tcp_sack": "1",
    "net/ipv4/tcp_slow_start_after_idle": "1",
    TIMESTAMPS: "1",
    "net/ipv4/tcp_window_scaling": "1",
    "net/mptcp/add_addr_timeout": "120",
    "net/mptcp/checksum_enabled": "0",
    "net/mptcp/stale_loss_cnt": "4",
}
"""Settings that the scenario has only where a host has changed them."""
LABORATORY_CONTROLS = frozenset(
    (
        *(
            "reno",
            "cubic",
            "bbr",
            "bic",
            "cdg",
            "dctcp",
            "highspeed",
            "htcp",
            "hybla",
            "illinois",
            "lp",
            "nv",
        ),
        *("scalable", "vegas", "veno", "westwood", "yeah"),
    )
)
"""The congestion controls of the laboratory kernel."""
_WORD = re.compile(r"[a-z0-9_-]{1,15}", re.ASCII)
_NUMBERS = re.compile(r"[0-9]{1,10}( [0-9]{1,10}){0,2}", re.ASCII)
_FLAGS = {1: "signal", 2: "subflow", 4: "backup", 8: "fullmesh"}
"""MPTCP_PM_ADDR_FLAG_* of linux/mptcp.h."""
_IMPLICIT = 16
_MOST = 8
"""The kernel's bound of its limits."""


@dataclass(frozen=True)
class HostSettings:
    """The settings of one host."""

    values: Mapping[str, str]
    """By path below /proc/sys."""
    endpoints: Mapping[str, tuple[str, ...]] | None
    """The flags of each MPTCP endpoint by its address; None: this user may not list them."""
    subflows: int | None = None
    add_addr_accepted: int | None = None


def read_settings(session: HostSession) -> HostSettings:
    """Return the settings of the host of `session` (TrialError if it does not answer)."""
    values = session.read((CONGESTION_CONTROL, SCHEDULER, ENABLED, *BUFFERS, *LINUX_DEFAULTS))
    known = {
        path: value
        for path, value in values.items()
        if (_WORD if path in (CONGESTION_CONTROL, SCHEDULER) else _NUMBERS).fullmatch(value)
    }
    state = session.mptcp_state()
    if state is None:
        return HostSettings(known, None)
    endpoints, limits = state
    return HostSettings(known, dict(map(_endpoint, filter(_is_explicit, endpoints))), *limits)


def _is_explicit(endpoint: Mapping[str, Any]) -> bool:
    return not endpoint["flags"] & _IMPLICIT


def _endpoint(endpoint: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    return endpoint["address"], tuple(name for bit, name in _FLAGS.items() if endpoint["flags"] & bit)


def hosts_text(settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield the lines of `network.hosts`."""
    yield "  hosts:"
    for name, host in settings.items():
        control = host.values.get(CONGESTION_CONTROL, "")
        sysctls = {path: host.values[path] for path in BUFFERS if path in host.values}
        sysctls |= {
            path: host.values[path]
            for path, default in LINUX_DEFAULTS.items()
            if host.values.get(path, default) != default
        }
        yield f"    {name}:" if control in LABORATORY_CONTROLS or sysctls else f"    {name}: {{}}"
        if control in LABORATORY_CONTROLS:
            yield f"      congestion_control: {control}"
        elif control:
            yield f"      # congestion_control: {control}, which plait's kernel lacks; its default stands for it"
        if sysctls:
            yield "      sysctls:"
        for path, value in sysctls.items():
            yield f"        {path.replace('/', '.')}: {value!r}".replace("'", '"')


def mptcp_text(surveyed: Survey, settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield the lines of `mptcp`: limits and endpoints of both hosts, if both could be listed.

    The scenario gives the server an address on each line, where the real one has one address. An endpoint that
    announces it takes the place of the join that the client's kernel makes to the server's only address.
    """
    client, server = settings[surveyed.client], settings[surveyed.server]
    if client.endpoints is None or client.subflows is None:
        yield "# MPTCP endpoints and limits: not listed, which needs root; plait derives some that use all lines."
        return
    flags = used_flags(surveyed, client)
    accepted = min(_MOST, max(client.add_addr_accepted or 0, len(flags)))
    yield "mptcp:"
    yield "  limits:"
    yield f"    {surveyed.client}: {{subflows: {min(_MOST, client.subflows)}, add_addr_accepted: {accepted}}}"
    # the server of a home joins nothing, so its own limit counts what it accepts
    if server.subflows is not None:
        yield f"    {surveyed.server}: {{subflows: {min(_MOST, server.subflows)}, add_addr_accepted: 0}}"
    yield "  endpoints:  # those of the server stand for its only address, which all lines reach"
    own = ", ".join(f'{{link: "{name}", flags: [{", ".join(words)}]}}' for name, words in flags.items())
    announced = ", ".join(f'{{link: "{name}", flags: [signal]}}' for name in flags)
    yield f"    {surveyed.client}: [{own}]"
    yield f"    {surveyed.server}: [{announced}]"


def used_flags(surveyed: Survey, client: HostSettings) -> dict[str, tuple[str, ...]]:
    """Return the flags of the client's endpoints that open subflows, by link, without the line of the first subflow."""
    rows = list(zip(surveyed.names, surveyed.lines, strict=True))[1:]
    listed = {name: (client.endpoints or {}).get(line.address, ()) for name, line in rows}
    opening = {name: tuple(flag for flag in flags if flag != "signal") for name, flags in listed.items()}
    return {name: flags for name, flags in opening.items() if {"subflow", "fullmesh"} & set(flags)}


def remarks(surveyed: Survey, settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield what keeps MPTCP of these hosts from using the lines, with the commands that change it."""
    for name, host in settings.items():
        enabled = host.values.get(ENABLED)
        if enabled is None:
            yield f"the kernel of {name} has no MPTCP; it needs Linux 5.6 or later with CONFIG_MPTCP"
        elif enabled != "1":
            yield f"{name} has MPTCP disabled; enable it there: `sudo sysctl -w net.mptcp.enabled=1`"
    client = settings[surveyed.client]
    if client.endpoints is None:
        return
    used = used_flags(surveyed, client)
    for name, line in list(zip(surveyed.names, surveyed.lines, strict=True))[1:]:
        if name not in used:
            yield (
                f"{surveyed.client} has no MPTCP endpoint for {line.interface}, so MPTCP leaves it idle; add one: "
                f"{_endpoint_command(line.address, line.interface)}"
            )
    if client.subflows is not None and client.subflows < len(used):
        yield (
            f"the MPTCP limits of {surveyed.client} allow {client.subflows} additional subflows, and its endpoints "
            f"need {len(used)}: {_limits_command(len(used))}"
        )


def _endpoint_command(address: str, interface: str) -> str:
    command = shell_command("sudo", "ip", "mptcp", "endpoint", "add", address, "dev", interface, "subflow")
    return f"`{command}`"


def _limits_command(subflows: int) -> str:
    command = shell_command("sudo", "ip", "mptcp", "limits", "set", "subflows", str(subflows))
    return f"`{command}`"
