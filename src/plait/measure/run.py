"""Connects to the hosts, and measures their lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plait.cache import temporary
from plait.engine.remote.preflight import route_problem
from plait.engine.remote.spent import Spent
from plait.engine.remote.ssh import THIS_MACHINE, HostSession, connected
from plait.errors import MachineError, RequestError
from plait.hosts.model import HostsFile
from plait.measure.crossing import Crossing, check_ports, crossing_remarks, crossings, udp_remarks
from plait.measure.measure import Budget, check_lines, full_bytes, measure
from plait.measure.model import LineEstimate
from plait.measure.mptcp import mptcp_text, remarks
from plait.measure.named import NamedLine, named_lines
from plait.measure.over_tcp import NothingPassesError
from plait.measure.probing import LineProber
from plait.measure.settings import ENABLED, TIMESTAMPS, HostSettings, hosts_text, read_settings
from plait.measure.summary import summary
from plait.measure.survey import LinesRequest, survey
from plait.measure.together import Together, at_once, not_together_text, together_text
from plait.measure.written import scenario_text


@dataclass(frozen=True)
class Measured:
    """The lines of a machine or of a hosts file, measured."""

    named: Sequence[NamedLine]
    lines: Sequence[LineEstimate]
    settings: Mapping[str, HostSettings]
    """By host."""
    crossed: Mapping[str, Crossing]
    """By the name of the line."""
    client: str | None = None
    """The machine on which plait runs, if it opens all flows; a hosts file has no such machine."""
    clock_error_us: float = 0.0
    together: Sequence[Together] = ()
    not_together: Sequence[str] = ()
    """Sentences about lines and directions of which the measurement does not show whether they share a bottleneck."""

    @property
    def labels(self) -> dict[str, str]:
        """What messages call each line, by its name."""
        return {line.name: line.label for line in self.named}

    def scenario(self) -> str:
        """Return the text of the scenario that emulates the lines, with the settings of all hosts."""
        clock = f"The clocks of the hosts were compared to {self.clock_error_us / 1000:.1f} ms."
        return scenario_text(
            self.lines,
            hosts=hosts_text(self.settings),
            mptcp=mptcp_text(self.named, self.settings),
            comments=[clock, *together_text(self.together, self.labels), *self.remarks()],
            labels=self.labels if self.client is not None else {},
            client=self.client,
            crossed=self.crossed,
        )

    def remarks(self) -> list[str]:
        """Return what does not cross the lines, and what keeps MPTCP from using them, with the remedies."""
        without_udp = [line.name for line in self.lines if line.remark]
        return [*self.not_together, *self.blocked(without_udp), *remarks(self.named, self.settings)]

    def blocked(self, without_udp: Sequence[str]) -> list[str]:
        """Return what does not cross the lines; no UDP packet passes the lines `without_udp`."""
        return [*crossing_remarks(self.named, self.crossed), *udp_remarks(self.named, without_udp)]

    def table(self) -> str:
        """Return a row for each line, and the remarks."""
        labels = self.labels if self.client is not None else None
        rows = summary(self.lines, labels, self.client)
        return "\n".join([rows, *together_text(self.together, self.labels), *self.remarks()])


def measured_between(hosts: HostsFile, ssh_config: Path | None, notify: Callable[[str], None]) -> Measured:
    """Measure the lines of a hosts file (RequestError, MachineError, TrialError)."""
    check_lines(hosts)
    Budget.within(hosts)
    used = {host for ends in hosts.lines().values() for host in ends}
    destinations = {name: hosts.hosts[name].ssh for name in hosts.hosts if name in used}
    check_ports(named_lines(hosts))
    with temporary("lines") as folder, connected(destinations, ssh_config) as sessions:
        named = named_lines(hosts, routed_interfaces(named_lines(hosts), sessions))
        named = [replace(line, label=line.name) for line in named]
        return _measured(named, None, hosts, (sessions, folder), notify)


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
    with temporary("lines") as folder, connected(destinations, request.ssh_config) as sessions:
        hosts = surveyed.hosts(sessions[surveyed.server])
        check_lines(hosts)
        named = named_lines(hosts, surveyed.labels)
        check_ports(named)
        return _measured(named, surveyed.client, hosts, (sessions, folder), notify)


def _measured(
    named: Sequence[NamedLine],
    client: str | None,
    hosts: HostsFile,
    connected: tuple[dict[str, HostSession], Path],
    notify: Callable[[str], None],
) -> Measured:
    """Measure lines one after the other, and then those of each pair of hosts at once."""
    sessions, folder = connected
    prober = LineProber(sessions, folder, Spent(hosts.limits))
    settings = {name: read_settings(session) for name, session in sessions.items()}
    pairs: dict[frozenset[str], list[NamedLine]] = {}
    for line in named:
        pairs.setdefault(frozenset((line.client.host, line.server.host)), []).append(line)
    notify("all lines: connections, MPTCP, full packets")
    crossed: dict[str, Crossing] = {}
    for pair, between in pairs.items():
        values = [settings[host].values for host in pair]
        timestamps = all(value.get(TIMESTAMPS) != "0" for value in values)
        mptcp = all(value.get(ENABLED) == "1" for value in values)
        crossed |= crossings(between, prober, timestamps=timestamps, mptcp=mptcp)
    mtus = {name: crossing.mtu for name, crossing in crossed.items() if crossing.mtu is not None}
    measured = Measured(named, [], settings, crossed, client)
    try:
        lines = measure(hosts, prober, notify, mtus)
    except NothingPassesError as error:
        every = [line.name for line in named]
        raise MachineError("\n".join([str(error), *measured.blocked(every)])) from error
    together: list[Together] = []
    not_together: list[str] = []
    for between in pairs.values():
        estimates = [line for line in lines if line.name in {other.name for other in between}]
        seen: list[Together] = []
        if len(between) > 1 and not any(line.remark for line in estimates):
            notify("all lines at once")
            payloads = {line.name: full_bytes(mtus.get(line.name)) for line in between}
            ends = {line.name: line.ends for line in between}
            seen = at_once(estimates, ends, hosts.limits, prober, payloads, named=client is None)
        together += seen
        not_together += not_together_text(estimates, measured.labels, {result.way for result in seen})
    return replace(
        measured,
        lines=lines,
        clock_error_us=prober.clock_error_us,
        together=together,
        not_together=not_together,
    )


def routed_interfaces(lines: Sequence[NamedLine], sessions: Mapping[str, HostSession]) -> dict[str, str]:
    """Return the interface by which the packets of each line leave the client, by line, where the host shows it.

    Raises RequestError, with a sentence for each reason, if a host lacks an address of a line, or sends packets from it
    through another interface. Raises TrialError if a host does not answer.
    """
    problems, interfaces = [], {}
    for line in lines:
        for end, peer in (line.ends, line.ends[::-1]):
            session = sessions[end.host]
            held, route = session.route(end.address, peer.public or end.address)
            if held is None or route is None:
                continue  # the host has no `ip`; the connections show what it would
            problem = route_problem(end.host, end.address, peer.public, held, route)
            if problem:
                problems.append(f"{line.name}: {problem}")
            elif end is line.client and held:
                interfaces[line.name] = min(held)
    if problems:
        raise RequestError("\n".join(dict.fromkeys(problems)))
    return interfaces
