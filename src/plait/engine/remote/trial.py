"""The engine that runs plans on real hosts, over their own links and in real time.

It needs no root, changes nothing on the hosts unless `configure` allows it, and leaves nothing behind. It sends only to
hosts of the hosts file, and only within its limits.
"""

from __future__ import annotations

import gzip
import json
import weakref
from contextlib import ExitStack
from hashlib import sha256
from typing import TYPE_CHECKING

from plait.binaries import AGENT
from plait.engine.engine import Clock, EngineIdentity, Interrupted
from plait.engine.remote import merge
from plait.engine.remote.channel import StoppedError
from plait.engine.remote.configure import planned_sysctls, settings_of
from plait.engine.remote.exchange import Exchange
from plait.engine.remote.mapping import mapping, nodes_of, plan_of
from plait.engine.remote.spent import Spent
from plait.engine.remote.ssh import Connections, HostSession
from plait.engine.remote.support import features, missing, prototype_nodes, python, sockets
from plait.errors import MachineError, RequestError, TrialError
from plait.hosts.read import read_hosts

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from plait.engine.engine import Job
    from plait.engine.inventory import Inventory, Setting
    from plait.engine.remote.clocks import Zero
    from plait.engine.request import EngineRequest
    from plait.engine.support import Unsupported
    from plait.hosts.model import HostsFile
    from plait.plan.model.plan import LinksAs, Plan


class RemoteEngine:
    """The engine `remote`."""

    name = "remote"
    repeatable = False
    clock: Clock = "real"
    max_jobs: int | None = 1
    emulated_links: LinksAs | None = None

    def __init__(
        self,
        hosts: HostsFile,
        connections: Connections,
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
        self._connections = self._stack.enter_context(connections)
        self._sessions: dict[str, HostSession] = {}
        self._agent = gzip.compress(AGENT.read_bytes(), 6, mtime=0)
        self._finalizer = weakref.finalize(self, _close, self._sessions, self._stack)

    def close(self) -> None:
        """End all sessions; the hosts restore their settings and remove what plait brought."""
        self._finalizer()

    def identity(self) -> EngineIdentity:
        """Return the hosts' kernels and the agent (MachineError if a host cannot be reached)."""
        kernels = {name: values.get("kernel", "unknown") for name, values in self._facts().items()}
        return EngineIdentity(
            "remote",
            sha256(json.dumps(sorted(kernels.items())).encode()).hexdigest(),
            ", ".join(f"{kernel} ({name})" for name, kernel in kernels.items()),
            sha256(AGENT.read_bytes()).hexdigest(),
        )

    def inventory(self, settings: Iterable[Setting] = ()) -> Inventory | None:  # noqa: ARG002
        """Return None: the hosts' kernels differ, and the agents report what theirs refuse."""
        return None

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """Return what in `plan` needs a network that plait builds, or hosts that the file lacks (see Engine).

        Asks the hosts of prototype flows for their Python (MachineError if one cannot be reached).
        """
        lacks = [*features(plan), *missing(mapping(plan, self._hosts)), *sockets(plan)]
        nodes = prototype_nodes(plan)
        if lacks or not nodes:
            return lacks
        facts = self._facts()
        return list(python({node: facts[node].get("python", "") for node in nodes}))

    def _facts(self) -> dict[str, dict[str, str]]:
        """Return what each host says of itself, by node (MachineError if one cannot be reached)."""
        try:
            return {name: session.facts for name, session in self._connected(self._hosts.hosts).items()}
        except TrialError as error:
            raise MachineError(f"connecting to the hosts of --hosts: {error}") from error

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
        (job.folder / "console.log").touch()
        real = mapping(job.plan, self._hosts)
        nodes = nodes_of(job.plan)
        end_us = self._spent.check(job.plan)
        sessions = {name: session for name, session in self._connected(nodes).items() if name in nodes}
        plans = {node: plan_of(job.plan, node, real, end_us) for node in nodes}
        for name, session in sessions.items():
            for change in settings_of(job.plan, name, real) if self._configure else ():
                session.order("change", *change)
            self._compare(job, session)
        exchange = Exchange(sessions, job.folder, self._spent.arguments())
        try:
            zeros = exchange.run(plans, job.progress)
            self._keep(job, zeros, exchange.sent_bytes())
        except (TrialError, StoppedError):
            self._spent.add_failed(exchange.sent_bytes(), exchange.lasted_s())
            raise
        finally:
            _join_logs(job.folder, nodes)
        if self._configure:
            for session in sessions.values():
                session.order("restore")

    def _keep(self, job: Job, zeros: Mapping[str, Zero], sent_bytes: int | None) -> None:
        """Write the tables and the status of the trial, and note the facts."""
        first = next(iter(zeros.values()))
        hosts = [
            merge.read_host(name, job.folder / name, zero.after_us(first)) for name, zero in zeros.items()
        ]
        tables = merge.merged(job.plan, mapping(job.plan, self._hosts), hosts)
        merge.write(tables, job.folder / "data")
        self._spent.add(tables, job.plan, sent_bytes)
        statuses = [json.loads((job.folder / name / "status.json").read_bytes()) for name in zeros]
        longest = max(statuses, key=lambda status: int(status["virtual_us"]))
        (job.folder / "status.json").write_text(json.dumps(longest), encoding="utf-8")
        for name, zero in zeros.items():
            error_us = (zero.error_ns + first.error_ns) / 1000 if zero is not first else 0.0
            job.note(f"{name}.kernel", self._sessions[name].facts.get("kernel"))
            job.note(f"{name}.load_1min", self._sessions[name].facts.get("load"))
            job.note(f"{name}.clock_error_us", round(error_us, 1))
            job.note(f"{name}.started_later_us", zero.after_us(first))

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
            self._sessions[name] = HostSession(self._connections, name, destination, lambda: self._stop)
            opened.append(self._sessions[name])
        try:
            for session in opened:
                session.set_up(self._agent, configure=self._configure)
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


def _join_logs(folder: Path, nodes: Iterable[str]) -> None:
    """Write what the agents printed to the trial's console log."""
    with (folder / "console.log").open("ab") as console:
        for node in nodes:
            log = folder / node / "console.log"
            if log.is_file():
                console.writelines(
                    f"{node}: ".encode() + line for line in log.read_bytes().splitlines(keepends=True)
                )


def make(request: EngineRequest) -> RemoteEngine:
    """Return the engine for the hosts that the request names (RequestError without any)."""
    if request.hosts is None:
        raise RequestError(
            "--engine remote: plait needs to know the hosts; name their file with --hosts hosts.yaml"
        )
    return RemoteEngine(
        read_hosts(request.hosts),
        Connections(request.ssh_config),
        configure=request.configure,
        warn=request.warn,
    )
