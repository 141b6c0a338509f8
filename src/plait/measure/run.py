"""Connects to the hosts, and measures their lines."""

from __future__ import annotations

import gzip
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plait.binaries import AGENT
from plait.engine.remote.spent import Spent
from plait.engine.remote.ssh import THIS_MACHINE, Connections, HostSession
from plait.measure.measure import Budget, check_lines, measure
from plait.measure.probing import LineProber
from plait.measure.settings import hosts_text, mptcp_text, read_settings, remarks
from plait.measure.summary import summary
from plait.measure.survey import survey
from plait.measure.written import Surroundings, scenario_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from plait.hosts.model import HostsFile
    from plait.measure.model import LineEstimate
    from plait.measure.settings import HostSettings
    from plait.measure.survey import LinesRequest, Survey


def measured_lines(
    hosts: HostsFile, ssh_config: Path | None, notify: Callable[[str], None]
) -> list[LineEstimate]:
    """Return the estimates of all lines of a hosts file (RequestError, MachineError, TrialError)."""
    check_lines(hosts)
    Budget.of(hosts)
    used = {host for ends in hosts.lines().values() for host in ends}
    destinations = {name: hosts.hosts[name].ssh for name in hosts.hosts if name in used}
    with _sessions(destinations, ssh_config) as (sessions, folder):
        return measure(hosts, LineProber(sessions, folder, Spent(hosts.limits)), notify)


@dataclass(frozen=True)
class Measured:
    """The lines from this machine to a server, measured."""

    survey: Survey
    lines: list[LineEstimate]
    settings: Mapping[str, HostSettings]
    """Of both hosts, by name."""

    def scenario(self) -> str:
        """Return the text of the scenario that emulates the lines, with the settings of both hosts."""
        hosts, mptcp = hosts_text(self.settings), mptcp_text(self.survey, self.settings)
        beside = Surroundings(self.survey.labels, self.survey.client, list(hosts), list(mptcp))
        return scenario_text(self.lines, beside)

    def table(self) -> str:
        """Return a row for each line, and remarks on what keeps MPTCP from using them."""
        rows = summary(self.lines, self.survey.labels, self.survey.client)
        return "\n".join([rows, *remarks(self.survey, self.settings)])


def measured_from_here(request: LinesRequest, notify: Callable[[str], None]) -> Measured:
    """Measure the lines from this machine to a server (RequestError, MachineError, TrialError)."""
    surveyed = survey(request)
    interfaces = ", ".join(surveyed.labels.values())
    notify(f"lines to {surveyed.server} ({surveyed.address}): {interfaces}")
    if len(surveyed.lines) == 1:
        notify(
            f"{interfaces} is the only line of this machine, so MPTCP has nothing to combine; connect another one, or "
            "name it with --interfaces"
        )
    destinations = {surveyed.client: THIS_MACHINE, surveyed.server: request.server}
    with _sessions(destinations, request.ssh_config) as (sessions, folder):
        hosts = surveyed.hosts(sessions[surveyed.server])
        check_lines(hosts)
        prober = LineProber(sessions, folder, Spent(hosts.limits))
        settings = {name: read_settings(session) for name, session in sessions.items()}
        return Measured(surveyed, measure(hosts, prober, notify), settings)


@contextmanager
def _sessions(
    destinations: Mapping[str, str], ssh_config: Path | None
) -> Iterator[tuple[dict[str, HostSession], Path]]:
    """Yield sessions that are set up, by the name of the host, and an empty folder."""
    agent = gzip.compress(AGENT.read_bytes(), 6, mtime=0)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plait-lines-")))
        connections = stack.enter_context(Connections(ssh_config))
        sessions = {}
        for name, destination in destinations.items():
            sessions[name] = HostSession(connections, name, destination)
            stack.callback(sessions[name].close)
        for session in sessions.values():
            session.set_up(agent, configure=False)
        yield sessions, folder
