"""Connects to the hosts, and measures their lines."""

from __future__ import annotations

import gzip
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plait.binaries import AGENT
from plait.engine.remote.spent import Spent
from plait.engine.remote.ssh import THIS_MACHINE, Connections, HostSession
from plait.errors import MachineError
from plait.measure.crossing import check_ports, crossing_remarks, crossings, opening_command
from plait.measure.measure import Budget, check_lines, ends_of, full_bytes, measure
from plait.measure.over_tcp import NothingPassesError
from plait.measure.probing import LineProber
from plait.measure.settings import ENABLED, TIMESTAMPS, hosts_text, mptcp_text, read_settings, remarks
from plait.measure.summary import summary
from plait.measure.survey import survey
from plait.measure.together import Bounds, at_once, together_text
from plait.measure.written import Surroundings, scenario_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from plait.hosts.model import HostsFile
    from plait.measure.crossing import Crossing
    from plait.measure.model import LineEstimate
    from plait.measure.settings import HostSettings
    from plait.measure.survey import LinesRequest, Survey
    from plait.measure.together import Together


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
    crossed: Mapping[str, Crossing]
    """By the name of the line."""
    clock_error_us: float = 0.0
    together: Sequence[Together] = ()

    def scenario(self) -> str:
        """Return the text of the scenario that emulates the lines, with the settings of both hosts."""
        hosts, mptcp = hosts_text(self.settings), mptcp_text(self.survey, self.settings)
        clock = f"The clocks of the two hosts were compared to {self.clock_error_us / 1000:.1f} ms."
        comments = [clock, *together_text(self.together, self.survey.labels), *self.remarks()]
        beside = Surroundings(
            self.survey.labels, self.survey.client, list(hosts), list(mptcp), comments, self.crossed
        )
        return scenario_text(self.lines, beside)

    def remarks(self) -> list[str]:
        """Return what does not cross the lines, and what keeps MPTCP from using them, with the remedies."""
        blocked = self.blocked(all_udp=all(line.remark for line in self.lines))
        return [*blocked, *remarks(self.survey, self.settings)]

    def blocked(self, *, all_udp: bool) -> list[str]:
        """Return what does not cross the lines; `all_udp`: no UDP packet passes any of them."""
        labels, ports = self.survey.labels, self.survey.request.ports
        crossed = {labels[name]: crossing for name, crossing in self.crossed.items()}
        udp = (
            f"{self.survey.server}: no UDP packet arrives over any line; if its firewall drops them: "
            f"`{opening_command(ports, 'udp')}`"
        )
        return [*crossing_remarks(crossed, self.survey.server, ports), *([udp] if all_udp else [])]

    def table(self) -> str:
        """Return a row for each line, and the remarks."""
        rows = summary(self.lines, self.survey.labels, self.survey.client)
        return "\n".join([rows, *together_text(self.together, self.survey.labels), *self.remarks()])


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
        check_ports(len(surveyed.lines), hosts.hosts[surveyed.server].port_range)
        notify("all lines: connections, MPTCP, full packets")
        ends = [ends_of(hosts, name) for name in surveyed.names]
        timestamps = all(host.values.get(TIMESTAMPS) != "0" for host in settings.values())
        crossed = dict(zip(surveyed.names, crossings(ends, prober, timestamps=timestamps), strict=True))
        if any(host.values.get(ENABLED) != "1" for host in settings.values()):
            crossed = {name: replace(crossing, mptcp=None) for name, crossing in crossed.items()}
        mtus = {name: crossing.mtu for name, crossing in crossed.items() if crossing.mtu is not None}
        measured = Measured(surveyed, [], settings, crossed)
        try:
            lines = measure(hosts, prober, notify, mtus)
        except NothingPassesError as error:
            raise MachineError("\n".join([str(error), *measured.blocked(all_udp=True)])) from error
        together: list[Together] = []
        if len(lines) > 1 and not any(line.remark for line in lines):
            notify("all lines at once")
            limits = Bounds(float(hosts.limits.rate), int(hosts.limits.bytes))
            payloads = {name: full_bytes(mtus.get(name)) for name in surveyed.names}
            pairs = dict(zip(surveyed.names, ends, strict=True))
            together = at_once(lines, pairs, limits, prober, payloads)
        return replace(measured, lines=lines, clock_error_us=prober.clock_error_us, together=together)


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
