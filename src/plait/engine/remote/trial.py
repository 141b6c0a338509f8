"""The engine that runs plans on real hosts, over their own links and in real time.

It needs no root, changes nothing on the hosts unless `configure` allows it, and leaves nothing behind. It sends only to
hosts of the hosts file, and only within its limits.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path

import polars as pl

from plait.cache import temporary
from plait.dataset.trial import making_sense
from plait.engine.engine import Engine, EngineIdentity, Interrupted, Job
from plait.engine.remote import merge
from plait.engine.remote.channel import StoppedError
from plait.engine.remote.clocks import Zero, errors_us
from plait.engine.remote.configure import planned_sysctls, wanted
from plait.engine.remote.exchange import Exchange, longest_status
from plait.engine.remote.mapping import Mapping as RealAddresses
from plait.engine.remote.mapping import mapping, nodes_of, plan_of
from plait.engine.remote.preflight import problems as lacks_of_hosts
from plait.engine.remote.preflight import programs_to_bring
from plait.engine.remote.probe import LineProbe, unconnected
from plait.engine.remote.probe import probes as probes_for
from plait.engine.remote.probe import problems as blocked
from plait.engine.remote.spent import Spent
from plait.engine.remote.ssh import HostSession, identity_of, sockets
from plait.engine.remote.support import features, missing, unsupported_sockets
from plait.engine.request import EngineRequest
from plait.engine.support import Unsupported
from plait.errors import MachineError, PlaitError, RequestError, TrialError
from plait.files import Folder
from plait.hosts.model import HostsFile
from plait.hosts.read import read_hosts
from plait.plan.identity import plan_bytes
from plait.plan.model.plan import Plan


class RemoteEngine(Engine):
    """The engine `remote`."""

    name = "remote"

    def __init__(
        self,
        hosts: HostsFile,
        ssh_config: Path | None = None,
        *,
        configure: bool = False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Connect to nothing yet. `configure` allows changes of settings as root, which the engine restores."""
        self._hosts = hosts
        self._configure = configure
        self._warn = warn
        self._warned: set[str] = set()
        self._spent = Spent(hosts.limits)
        self._stop: threading.Event | None = None
        self._stack = ExitStack()
        self._sockets = self._stack.enter_context(sockets())
        self._ssh_config = ssh_config
        self._sessions: dict[str, HostSession] = {}
        self._passed: set[bytes] = set()
        """The bytes that hosts and lines have carried before the first trial."""
        self._finalizer = weakref.finalize(self, _close, self._sessions, self._stack)

    def close(self) -> None:
        """End all sessions; the hosts restore their settings and remove what plait brought."""
        self._finalizer()

    def identity(self) -> EngineIdentity:
        """Return the hosts' kernels and the agent (MachineError if a host cannot be reached)."""
        try:
            return identity_of(self.name, self._connected(self._hosts.hosts))
        except TrialError as error:
            raise MachineError(f"connecting to the hosts of --hosts: {error}") from error

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """Return what in `plan` needs a network that plait builds, or hosts that the file lacks (see Engine).

        If it is nothing, this asks the hosts, and tries each line with short connections. Raises MachineError if a host
        cannot be reached, or lacks something, or if a line is blocked.
        """
        lacks = [*features(plan), *missing(mapping(plan, self._hosts)), *unsupported_sockets(plan)]
        if not lacks:
            self._refuse_what_is_blocked(plan)
        return lacks

    def _refuse_what_is_blocked(self, plan: Plan) -> None:
        """Raise MachineError, with a sentence for each reason, if hosts or lines cannot carry `plan`."""
        real = mapping(plan, self._hosts)
        probes = list(probes_for(plan, real))
        settings = [wanted(plan, node, real) for node in nodes_of(plan)]
        needs = sha256(b"".join([*(plan_bytes(probe.plan) for probe in probes), *settings])).digest()
        if needs in self._passed:
            return
        try:
            sessions = self._connected(nodes_of(plan))
            problems = list(lacks_of_hosts(plan, real, sessions, configure=self._configure))
            if not problems:
                problems = self._blocked(plan, real, probes)
        except TrialError as error:
            self._drop_sessions()
            raise MachineError(f"trying the lines before the first trial: {error}") from error
        if problems:
            raise MachineError("\n".join(dict.fromkeys(problems)))
        self._passed.add(needs)

    def _blocked(self, plan: Plan, real: RealAddresses, probes: Iterable[LineProbe]) -> list[str]:
        """Run probes with the settings of `plan`, and return what is blocked."""
        problems: list[str] = []
        with self._configured(plan, real, self._sessions), temporary("probe") as folder:
            for number, probe in enumerate(probes):
                if problems and probe.joins:
                    break
                out = folder / str(number)
                out.mkdir()
                tables = self._exchange(probe.plan, real, out, lambda _: None)[0]
                problems += blocked(probe, tables, real)
        return problems

    @contextmanager
    def _configured(
        self, plan: Plan, real: RealAddresses, sessions: Mapping[str, HostSession]
    ) -> Iterator[None]:
        """Give the hosts the settings of `plan`, if the user allows it. A session that ends restores them itself."""
        if not self._configure:
            yield
            return
        nodes = nodes_of(plan)
        for node in nodes:
            sessions[node].configure(wanted(plan, node, real), programs_to_bring(plan, sessions[node]))
        yield
        for node in nodes:
            sessions[node].order("restore")

    def execute(self, job: Job) -> None:
        """Run one trial (see Engine)."""
        self._stop = job.stop
        try:
            self._run(job)
        except StoppedError as stopped:
            self._drop_sessions()
            raise Interrupted from stopped
        except TrialError:
            self._drop_sessions()  # agents that still run end with their sessions
            raise
        finally:
            self._stop = None

    def _run(self, job: Job) -> None:
        Folder(job.folder).append("console.log", b"")
        real = mapping(job.plan, self._hosts)
        nodes = nodes_of(job.plan)
        self._spent.check(job.plan)
        sessions = self._connected(nodes)
        with self._configured(job.plan, real, sessions):
            for node in nodes:
                self._compare(job, sessions[node])
            try:
                tables, zeros = self._exchange(job.plan, real, job.folder, job.progress)
            finally:
                merge.join_logs(job.folder, nodes)
        if not_connected := list(unconnected(job.plan, tables, real)):
            raise MachineError("\n".join(not_connected))
        self._keep(job, tables, zeros)

    def _exchange(
        self, plan: Plan, real: RealAddresses, folder: Path, progress: Callable[[int], None]
    ) -> tuple[dict[str, pl.DataFrame], dict[str, Zero]]:
        """Let the hosts carry out `plan`; return the tables, and when each host began. Counts what they send."""
        nodes = nodes_of(plan)
        end_us = self._spent.check(plan)
        exchange = Exchange({node: self._sessions[node] for node in nodes}, folder, self._spent.arguments())
        try:
            zeros = exchange.run({node: plan_of(plan, node, real, end_us) for node in nodes}, progress)
            with making_sense(folder):
                tables = merge.merged(plan, real, merge.read_hosts(folder, zeros))
                ended_us = tables["flows"].select(pl.col("end_us").max()).item()
            self._spent.add(plan, exchange.sent_bytes(), ended_us, exchange.lasted_s())
        except (PlaitError, StoppedError):
            self._spent.add_failed(exchange.sent_bytes(), exchange.lasted_s())
            raise
        return tables, zeros

    def _keep(self, job: Job, tables: Mapping[str, pl.DataFrame], zeros: Mapping[str, Zero]) -> None:
        """Write the tables and the status of the trial, and note the facts."""
        first = next(iter(zeros.values()))
        merge.write(tables, job.folder / "data")
        Folder(job.folder).write("status.json", longest_status(job.folder, zeros))
        for name, error_us in errors_us(zeros).items():
            job.note(f"{name}.kernel", self._sessions[name].facts.get("kernel"))
            job.note(f"{name}.load_1min", self._sessions[name].facts.get("load"))
            job.note(f"{name}.clock_error_us", error_us)
            job.note(f"{name}.started_later_us", zeros[name].after_us(first))

    def _compare(self, job: Job, session: HostSession) -> None:
        """Note, and warn of, settings of TCP and MPTCP that differ from those of the scenario."""
        planned = planned_sysctls(job.plan, session.name)
        differing = [
            f"{path.replace('/', '.')} = {value} (scenario: {planned[path]})"
            for path, value in session.read(planned).items()
            if value != planned.get(path, value)
        ]
        job.note(f"{session.name}.settings", "; ".join(differing) or None)
        if differing and session.name not in self._warned:
            self._warned.add(session.name)
            self._warn(
                f"{session.name} keeps its own settings: {'; '.join(differing)}. Flows use them unless the "
                "scenario sets them for a flow; --configure sets them for the trial"
            )

    def _connected(self, names: Iterable[str]) -> dict[str, HostSession]:
        """Return a session for each host, and open those that are missing or have ended."""
        opened = []
        for name in names:
            session = self._sessions.get(name)
            if session is not None and session.is_alive():
                continue
            destination = self._hosts.hosts[name].ssh
            self._sessions[name] = HostSession(
                name, destination, self._sockets, self._ssh_config, lambda: self._stop
            )
            opened.append(self._sessions[name])
        try:
            for session in opened:
                session.set_up(configure=self._configure)
        except (TrialError, StoppedError):
            self._drop_sessions()
            raise
        return dict(self._sessions)

    def _drop_sessions(self) -> None:
        for session in self._sessions.values():
            session.end()
        self._sessions.clear()


def _close(sessions: dict[str, HostSession], stack: ExitStack) -> None:
    for session in sessions.values():
        session.close()
    sessions.clear()
    stack.close()


def create(request: EngineRequest) -> RemoteEngine:
    """Return the engine for the hosts that the request names (RequestError without any)."""
    if request.hosts is None:
        raise RequestError(
            "--engine remote: plait needs to know the hosts; name their file with --hosts hosts.yaml"
        )
    return RemoteEngine(
        read_hosts(request.hosts),
        request.ssh_config,
        configure=request.configure,
        warn=request.warn,
    )
