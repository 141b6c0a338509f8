"""The engine that observes connections on hosts of hosts.yaml: on one, or on both ends. It changes nothing there."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl

from plait.dataset.model import ALL_TABLES, TABLES, Tables
from plait.dataset.trial import making_sense
from plait.engine.engine import Engine, EngineIdentity, Job
from plait.engine.remote.answers import unicast
from plait.engine.remote.clocks import errors_us
from plait.engine.remote.exchange import Exchange, longest_status
from plait.engine.remote.merge import join_logs, read_hosts, write
from plait.engine.remote.ssh import HostSession, connected, identity_of
from plait.errors import MachineError, RequestError, TrialError
from plait.files import Folder
from plait.hosts.model import HostsFile
from plait.observe.watching import Selection, observing_plan

_TABLES = (*TABLES, "program_flows", "programs", "program_figures")
ROWS_LEFT_OUT = "rows_left_out"
"""The fact of a host in the provenance: how many of its samples of subflows are not between two addresses."""
_OF_SENDER = ("congestion_control", "sent_bytes")
_OF_RECEIVER = ("start_us", "first_byte_us", "end_us", "received_bytes")


class HostsObserver(Engine):
    """The engine `observed` for one host or two. Use `open_hosts`."""

    name = "observed"

    def __init__(
        self, sessions: Mapping[str, HostSession], selection: Selection, over: threading.Event
    ) -> None:
        """`over` ends the observation early. Raises MachineError if the kernel of a host has no MPTCP."""
        self._sessions, self._selection, self._over = sessions, selection, over
        self.interfaces: dict[str, str] = {}
        """The interfaces of addresses of the first host; `execute` fills it."""
        for name, session in sessions.items():
            if "net/mptcp/enabled" not in session.facts:
                raise MachineError(
                    f"observing MPTCP on {name}: its kernel ({session.facts.get('kernel')}) has no MPTCP "
                    "(CONFIG_MPTCP); observe a host with Linux 5.6 or later whose kernel has it"
                )

    @property
    def node(self) -> str:
        """The name of the first host."""
        return next(iter(self._sessions))

    def identity(self) -> EngineIdentity:
        """Return the identities of the hosts' kernels and of the agent."""
        return identity_of(self.name, self._sessions)

    def execute(self, job: Job) -> None:
        """Observe on all hosts until the end of the plan, or until `over` is set (see Engine)."""
        plans = {
            name: observing_plan(
                name, self._selection, job.plan.end_us / 1e6, job.plan.sample_interval_us / 1e6
            )
            for name in self._sessions
        }
        exchange = Exchange(self._sessions, job.folder, (), tables=_TABLES, over=self._over)
        try:
            zeros = exchange.run(plans, job.progress)
        finally:
            join_logs(job.folder, self._sessions)
        for name, error_us in errors_us(zeros).items():
            job.note(f"{name}.clock_error_us", error_us)
        with making_sense(job.folder):
            hosts = read_hosts(job.folder, zeros, _TABLES)
            for name, reported in hosts.items():
                hosts[name] = {**reported, "subflows": _between_addresses(reported["subflows"])}
                left_out = reported["subflows"].height - hosts[name]["subflows"].height
                job.note(f"{name}.{ROWS_LEFT_OUT}", left_out)
            tables = joined(hosts)
        self._find_interfaces(tables["subflows"])
        write(tables, job.folder / "data")
        Folder(job.folder).write("status.json", longest_status(job.folder, zeros))

    def _find_interfaces(self, subflows: pl.DataFrame) -> None:
        """Ask the first host which interfaces have the addresses of its subflows."""
        session = next(iter(self._sessions.values()))
        pairs = subflows.select("local_address", "remote_address").unique(maintain_order=True)
        for local, remote in pairs.rows()[:64]:
            found, _ = session.route(local, remote)
            if found is not None and len(found) == 1 and local not in self.interfaces:
                self.interfaces[local] = next(iter(found))


@contextmanager
def open_hosts(
    hosts: HostsFile,
    names: Iterable[str],
    ssh_config: Path | None,
    selection: Selection,
    over: threading.Event,
) -> Iterator[HostsObserver]:
    """Connect to the hosts called `names`, and yield the engine that observes there.

    Nothing is left on the hosts afterwards. Raises RequestError for unknown names, MachineError if a host cannot be
    reached or used.
    """
    wanted = list(dict.fromkeys(names))
    if unknown := [name for name in wanted if name not in hosts.hosts]:
        raise RequestError(
            f"--host {unknown[0]}: the hosts file has no such host; it has {', '.join(hosts.hosts)}"
        )
    if not 1 <= len(wanted) <= 2:
        raise RequestError("--host: observe one host, or the two ends of connections")
    if selection.namespace is not None or (selection.processes and len(wanted) > 1):
        raise RequestError("--netns and --pid mean those of one machine; leave them out with --host")
    with ExitStack() as stack:
        try:
            destinations = {name: hosts.hosts[name].ssh for name in wanted}
            sessions = stack.enter_context(connected(destinations, ssh_config))
        except TrialError as error:
            raise MachineError(f"connecting to the hosts of --host: {error}") from error
        yield HostsObserver(sessions, selection, over)


def _between_addresses(subflows: pl.DataFrame) -> pl.DataFrame:
    """Return the samples of subflows between two addresses: a host may report anything else in their place."""
    ends = [pl.col(name) for name in ("local_address", "remote_address")]
    texts = {text for name in ("local_address", "remote_address") for text in subflows[name].unique()}
    known = [text for text in texts if unicast(text) is not None]
    return subflows.filter(end.is_in(known) & end.is_not_null() for end in ends)


def joined(hosts: Mapping[str, Tables]) -> dict[str, pl.DataFrame]:
    """Return the tables of a trial from those of its hosts: the connections of the first one, with both sides.

    The receiver of a connection decides what arrived and when, its sender what was sent.
    """
    (here, tables), *others = hosts.items()
    if not others:
        return dict(tables)
    (there, other), *_ = others
    numbers = _common_numbers(tables["program_flows"], other["program_flows"])
    theirs = {name: _renumbered(frame, numbers) for name, frame in other.items()}
    merged = {
        name: pl.concat([tables[name], theirs[name]])
        for name in ("connections", "subflows", "events", "counters")
    }
    for name in ("connections", "subflows", "events"):
        merged[name] = merged[name].sort("t_us", maintain_order=True)
    flows = {row["flow"]: row for row in theirs["flows"].iter_rows(named=True)}
    about = {row["flow"]: row for row in theirs["program_flows"].iter_rows(named=True)}
    rows, abouts = [], []
    for row, mine in zip(
        tables["flows"].iter_rows(named=True), tables["program_flows"].iter_rows(named=True), strict=True
    ):
        far, its = flows.get(row["flow"]), about.get(row["flow"])
        if far is None or its is None:
            rows.append(row)
            abouts.append(mine)
            continue
        side = "client" if mine["client"] == here else "server"
        sends = mine["sender"] == side
        sender, receiver = (row, far) if sends else (far, row)
        fallbacks = [item["fallback"] for item in (row, far) if item["fallback"] is not None]
        rows.append(
            row
            | {name: sender[name] for name in _OF_SENDER}
            | {name: receiver[name] for name in _OF_RECEIVER}
            | {"fallback": any(fallbacks) if fallbacks else None}
        )
        opposite = "server" if side == "client" else "client"
        program = "server_program" if opposite == "server" else "program"
        abouts.append(mine | {opposite: there, program: its[program] or mine[program]})
    merged["flows"] = pl.DataFrame(rows, schema=ALL_TABLES["flows"])
    merged["program_flows"] = pl.DataFrame(abouts, schema=ALL_TABLES["program_flows"])
    return {**tables, **merged}


def _common_numbers(ours: pl.DataFrame, theirs: pl.DataFrame) -> dict[int, int]:
    """Return our number of each connection of the other host that is ours too: by its ends.

    Behind address translation addresses differ; there the ports show it, if no second connection has the same ones.
    """
    ends = ("client_address", "client_port", "server_address", "server_port")
    numbers: dict[int, int] = {}
    for names in (ends, ("client_port", "server_port")):
        left = ours.filter(~pl.col("flow").is_in(list(numbers.values()))).select("flow", *names).rows()
        right = theirs.filter(~pl.col("flow").is_in(list(numbers))).select("flow", *names).rows()
        counts = Counter(key for _, *key_parts in (*left, *right) for key in [tuple(key_parts)])
        by_ends = {tuple(key): flow for flow, *key in left}
        numbers |= {
            flow: by_ends[tuple(key)]
            for flow, *key in right
            if tuple(key) in by_ends and counts[tuple(key)] == 2
        }
    return numbers


def _renumbered(frame: pl.DataFrame, numbers: Mapping[int, int]) -> pl.DataFrame:
    """Give rows the numbers of our connections, and leave out those of others."""
    if "flow" not in frame.columns:
        return frame
    number = pl.col("flow").replace_strict(numbers, default=None, return_dtype=pl.Int64)
    return frame.filter(pl.col("flow").is_null() | pl.col("flow").is_in(list(numbers))).with_columns(number)
