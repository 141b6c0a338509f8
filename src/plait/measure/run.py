"""Connects to the hosts, and measures their lines."""

from __future__ import annotations

import gzip
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from plait.binaries import AGENT
from plait.engine.remote.spent import Spent
from plait.engine.remote.ssh import Connections, HostSession
from plait.measure.measure import Budget, check_lines, measure
from plait.measure.probing import LineProber

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.hosts.model import HostsFile
    from plait.measure.model import LineEstimate


def measured_lines(
    hosts: HostsFile, ssh_config: Path | None, notify: Callable[[str], None]
) -> list[LineEstimate]:
    """Return the estimates of all lines of a hosts file (RequestError, MachineError, TrialError)."""
    check_lines(hosts)
    Budget.of(hosts)
    agent = gzip.compress(AGENT.read_bytes(), 6, mtime=0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plait-measure-")))
        connections = stack.enter_context(Connections(ssh_config))
        used = {host for ends in hosts.lines().values() for host in ends}
        sessions = {}
        for name in hosts.hosts:
            if name in used:
                sessions[name] = HostSession(connections, name, hosts.hosts[name].ssh)
                stack.callback(sessions[name].close)
        for session in sessions.values():
            session.set_up(agent, configure=False)
        return measure(hosts, LineProber(sessions, folder, Spent(hosts.limits)), notify)
