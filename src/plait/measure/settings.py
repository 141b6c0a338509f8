"""What the kernels of both hosts are set to, and the same settings as fields of a scenario.

A twin then has the congestion control, the buffers, and the MPTCP endpoints and limits of the hosts that it stands for.
A value that a host sends is untrusted, so plait writes only values of a known form.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from plait.engine.remote.ssh import HostSession

CONGESTION_CONTROL, SCHEDULER, ENABLED = (
    "net/ipv4/tcp_congestion_control",
    "net/mptcp/scheduler",
    "net/mptcp/enabled",
)
PATH_MANAGER_TYPE, PATH_MANAGER = "net/mptcp/pm_type", "net/mptcp/path_manager"
"""0 and `kernel`: the kernel opens subflows by its endpoints. Linux has the second one since 6.15."""
_WORDS, _PROGRAM = (CONGESTION_CONTROL, SCHEDULER, PATH_MANAGER), "userspace"
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
    "net/mptcp/allow_join_initial_addr_port": "1",
    "net/mptcp/checksum_enabled": "0",
    "net/mptcp/stale_loss_cnt": "4",
}
"""Settings that the scenario has only where a host has changed them."""
_CONTROLS = """
reno cubic bbr bic cdg dctcp highspeed htcp hybla illinois lp nv scalable vegas veno westwood yeah lia olia balia wvegas
"""
LABORATORY_CONTROLS = frozenset(_CONTROLS.split())
"""The congestion controls of the laboratory kernel."""
LABORATORY_SCHEDULERS = frozenset(
    ("default", "balanced", "blest", "capped", "ecf", "minrtt", "redundant", "roundrobin")
)
"""The MPTCP schedulers of the laboratory kernel."""
_WORD = re.compile(r"[a-z0-9_-]{1,15}", re.ASCII)
_NUMBERS = re.compile(r"[0-9]{1,10}( [0-9]{1,10}){0,2}", re.ASCII)
_FLAGS = {1: "signal", 2: "subflow", 4: "backup", 8: "fullmesh"}
"""MPTCP_PM_ADDR_FLAG_* of linux/mptcp.h."""
_IMPLICIT = 16


@dataclass(frozen=True)
class HostSettings:
    """The settings of one host."""

    values: Mapping[str, str]
    """By path below /proc/sys."""
    endpoints: Mapping[str, tuple[str, ...]] | None
    """The flags of each MPTCP endpoint by its address; None: this user may not list them."""
    subflows: int | None = None
    add_addr_accepted: int | None = None

    @property
    def has_program_for_paths(self) -> bool:
        """Whether a program such as mptcpd opens the subflows, and not the kernel."""
        named = self.values.get(PATH_MANAGER)
        return named == _PROGRAM if named is not None else self.values.get(PATH_MANAGER_TYPE) == "1"


def read_settings(session: HostSession) -> HostSettings:
    """Return the settings of the host of `session` (TrialError if it does not answer)."""
    values = session.read((*_WORDS, ENABLED, PATH_MANAGER_TYPE, *BUFFERS, *LINUX_DEFAULTS))
    known = {
        path: value
        for path, value in values.items()
        if (_WORD if path in _WORDS else _NUMBERS).fullmatch(value)
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


def common_scheduler(settings: Mapping[str, HostSettings]) -> str | None:
    """Return the MPTCP scheduler of all hosts that have MPTCP; None if they differ, or none has it."""
    schedulers = {host.values[SCHEDULER] for host in settings.values() if SCHEDULER in host.values}
    return schedulers.pop() if len(schedulers) == 1 else None


def hosts_text(settings: Mapping[str, HostSettings]) -> Iterator[str]:
    """Yield the lines of `network.hosts`."""
    yield "  hosts:"
    is_common = common_scheduler(settings) is not None
    for name, host in settings.items():
        scheduler = None if is_common else host.values.get(SCHEDULER)
        control = host.values.get(CONGESTION_CONTROL, "")
        sysctls = {path: host.values[path] for path in BUFFERS if path in host.values}
        sysctls |= {
            path: host.values[path]
            for path, default in LINUX_DEFAULTS.items()
            if host.values.get(path, default) != default
        }
        has_fields = control in LABORATORY_CONTROLS or scheduler in LABORATORY_SCHEDULERS or sysctls
        yield f"    {name}:" if has_fields else f"    {name}: {{}}"
        if scheduler in LABORATORY_SCHEDULERS:
            yield f"      scheduler: {scheduler}"
        elif scheduler:
            yield f"      # scheduler: {scheduler}, which plait's kernel lacks; its default stands for it"
        if control in LABORATORY_CONTROLS:
            yield f"      congestion_control: {control}"
        elif control:
            yield f"      # congestion_control: {control}, which plait's kernel lacks; its default stands for it"
        if sysctls:
            yield "      sysctls:"
        for path, value in sysctls.items():
            yield f"        {path.replace('/', '.')}: {value!r}".replace("'", '"')
