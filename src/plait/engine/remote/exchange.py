"""One trial on real hosts: their agents get ready, start together, and report their tables."""

from __future__ import annotations

import contextlib
import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plait.engine.remote.answers import whole_number
from plait.engine.remote.clocks import Zero, offset
from plait.engine.remote.merge import FETCHED
from plait.engine.remote.ssh import HostSession
from plait.errors import TrialError, printable
from plait.plan.identity import plan_bytes
from plait.plan.model.plan import Plan

HEARTBEAT_S = 15
"""How long an agent waits for a sign of plait before it ends itself."""
_BEAT_S = 2.0
_READY_S, _GRACE_S = 60.0, 30.0
_AFTER_FAILURE_S = 5.0
_ROUNDS = 8
"""Round trips before the start, from which plait estimates the offset of a clock."""
_LEAD_S = 0.2
"""How long before the common start plait sends the first order."""
_QUIET_S = 1.0
"""How long nothing happens after a trial, because packets on the way still arrive."""
_MOST_BYTES = 512 << 20
"""Maximum size of a table."""
_LINES = 100_000
"""Maximum number of lines of an agent."""


@dataclass
class Participant:
    """A host in a trial."""

    session: HostSession
    offsets: list[tuple[float, float]] = field(default_factory=list)
    asked_ns: list[int] = field(default_factory=list)
    """When plait asked for the time; the host answers in order."""
    zero_ns: int | None = None
    done: bool = False
    """Whether its tables are written, and its connections still open."""
    ended: bool = False
    failed: bool = False
    """Whether the agent ended with an error."""
    lines: int = 0

    @property
    def name(self) -> str:
        """The node."""
        return self.session.name

    def ask_time(self) -> None:
        """Ask the agent for its time, which also is a heartbeat."""
        self.asked_ns.append(time.monotonic_ns())
        self.session.channel.send(b"time\n", _READY_S)

    def take_line(self, timeout_s: float) -> str:
        """Read a line of the agent, note what it says, and return its first word."""
        word, _, rest = self.session.channel.line(timeout_s).partition(" ")
        now_ns = time.monotonic_ns()
        self.lines += 1
        if self.lines > _LINES:
            raise TrialError(f"{self.name}: the agent sent more than {_LINES} lines")
        if word == "time" and self.asked_ns:
            self.offsets.append(offset(self.asked_ns.pop(0), self._number(rest), now_ns))
        elif word == "zero":
            self.zero_ns = self._number(rest)
        elif word == "done":
            self.done = True
        elif word == "ended":
            self.ended, self.failed = True, rest != "0"
        elif word == "failed":
            raise TrialError(f"{self.name}: {rest}")
        return word

    def _number(self, text: str) -> int:
        number = whole_number(text)
        if number is None:
            raise TrialError(f"{self.name}: the agent sent {text[:40]!r} instead of a time")
        return number

    def wait_for(self, word: str, timeout_s: float) -> None:
        """Read lines until one begins with `word`; TrialError if the agent ends before."""
        deadline = time.monotonic() + timeout_s
        while not self.ended:
            left_s = deadline - time.monotonic()
            if left_s < 0:
                raise TrialError(f"{self.name}: the agent did not say {word!r} within {timeout_s:.0f} s")
            if self.take_line(left_s) == word:
                return

    def zero(self) -> Zero:
        """Return when the trial began on this host (TrialError if it never did)."""
        if self.zero_ns is None or not self.offsets:
            raise TrialError(f"{self.name}: the agent did not start the trial")
        return Zero.reported(self.zero_ns, min(self.offsets))


class Exchange:
    """A trial between plait and the agents of its hosts."""

    def __init__(
        self,
        sessions: Mapping[str, HostSession],
        folder: Path,
        arguments: tuple[str, ...],
        *,
        tables: Iterable[str] = FETCHED,
        over: threading.Event | None = None,
    ) -> None:
        """`arguments` are further ones for all agents, and `over` ends the trial early, with complete tables."""
        self._hosts = {name: Participant(session) for name, session in sessions.items()}
        self._folder = folder
        self._arguments = arguments
        self._tables, self._over = tables, over
        self.started_s: float | None = None
        """When plait ordered the start, on its monotonic clock; None: it did not."""
        self._closed_s: float | None = None
        """When the hosts dropped their connections, on that clock; None: they did not yet."""
        self._failed: Participant | None = None
        """The first host whose agent failed."""

    def run(self, plans: Mapping[str, Plan], progress: Callable[[int], None]) -> dict[str, Zero]:
        """Run the trial, copy its tables to `folder/NODE`, and return when each host began.

        Raises TrialError with the first failure, or StoppedError.
        """
        for name, plan in plans.items():
            data = plan_bytes(plan)
            words = ("--node", name, "--heartbeat", str(HEARTBEAT_S), *self._arguments)
            self._hosts[name].session.start_order("trial", str(len(data)), *words, data=data)
        for host in self._hosts.values():
            host.wait_for("ready", _READY_S)
        self._synchronise()
        self._start()
        self._follow(max(plan.end_us for plan in plans.values()), progress)
        if self._failed is not None:
            self._raise(self._failed)
        for host in self._hosts.values():
            self._fetch(host)
        if self._closed_s is not None and any(_connects(plan) for plan in plans.values()):
            next(iter(self._hosts.values())).session.channel.rest_until(self._closed_s + _QUIET_S)
        return {name: host.zero() for name, host in self._hosts.items()}

    def _synchronise(self) -> None:
        for _ in range(_ROUNDS):
            for host in self._hosts.values():
                if not host.ended:
                    host.ask_time()
                    host.wait_for("time", _READY_S)

    def _start(self) -> None:
        """Order the start so that it arrives at all hosts at nearly the same time."""
        one_way_s = {name: min(host.offsets)[0] / 1e9 for name, host in self._hosts.items() if host.offsets}
        if len(one_way_s) < len(self._hosts):
            return  # an agent has ended; `_fetch` reports why
        self.started_s = time.monotonic()
        at = self.started_s + _LEAD_S + max(one_way_s.values())
        for name in sorted(one_way_s, key=lambda name: -one_way_s[name]):
            channel = self._hosts[name].session.channel
            channel.rest_until(at - one_way_s[name])
            channel.send(b"start\n", _READY_S)

    def _follow(self, end_us: int, progress: Callable[[int], None]) -> None:
        """Wait until all agents have ended.

        After the first failure plait stops the others.
        """
        started = time.monotonic()
        deadline = started + end_us / 1e6 + _GRACE_S
        beat = started
        while not all(host.ended for host in self._hosts.values()):
            now = time.monotonic()
            if self._failed is None:
                self._failed = next((host for host in self._hosts.values() if host.failed), None)
                if self._failed is not None:
                    deadline = now + _AFTER_FAILURE_S
                    self._order(b"stop\n")
            if self._over is not None and self._over.is_set():
                self._over = None
                deadline = now + _GRACE_S
                self._order(b"end\n")
            self._close(now)
            if now > deadline and self._failed is not None:
                break
            if now > deadline:
                running = ", ".join(host.name for host in self._hosts.values() if not host.ended)
                raise TrialError(f"{running}: the agent did not end in time; plait ended the session")
            if now >= beat:
                beat = now + _BEAT_S
                for host in self._hosts.values():
                    if host.ended:
                        host.session.beat()  # its keeper waits for orders again
                    else:
                        host.ask_time()
                progress(math.floor((now - started) * 1e6))
            for host in self._hosts.values():
                if not host.ended:
                    self._listen(host)
        self._close(time.monotonic())

    def _close(self, now: float) -> None:
        """Let the agents drop their connections once no host measures any more."""
        if self._closed_s is None and all(host.done or host.ended for host in self._hosts.values()):
            self._closed_s = now
            self._order(b"close\n")

    def _order(self, order: bytes) -> None:
        """Give an order to the agents that still run."""
        for host in self._hosts.values():
            if not host.ended:
                host.session.channel.send(order, _READY_S)

    @staticmethod
    def _listen(host: Participant) -> None:
        """Read the agent's lines that have arrived, after a short wait."""
        wait_until = time.monotonic() + 0.05
        while not host.ended:
            if host.session.channel.has_line():
                host.take_line(_READY_S)
            elif time.monotonic() >= wait_until:
                return
            else:
                host.session.channel.pause(0.05)

    def _raise(self, failed: Participant) -> None:
        """Raise TrialError with the reason of the first failure; keep what each host knows of what it has sent."""
        for host in self._hosts.values():
            if host.ended and host is not failed:
                with contextlib.suppress(TrialError):  # it was stopped
                    self._fetch_status(host)
        self._fetch_status(failed)
        raise TrialError(f"{failed.name}: the agent failed without a reason")

    def _fetch(self, host: Participant) -> None:
        """Copy the tables, the log and the status of a host; TrialError if its agent failed."""
        self._fetch_status(host)
        tables = {f"data/{name}.arrow": _MOST_BYTES for name in self._tables}
        host.session.fetch(tables, self._folder / host.name)

    def _fetch_status(self, host: Participant) -> None:
        """Copy the log and the status of a host; TrialError if its agent failed."""
        folder = self._folder / host.name
        folder.mkdir()
        host.session.fetch({"status.json": 1 << 20, "console.log": 8 << 20}, folder)
        status = read_status(folder / "status.json", host.name)
        if status.get("ok") is not True:
            reason = f"{status.get('phase')}: {status.get('error')}"
            raise TrialError(printable(f"{host.name}: {reason}"[:1000]))

    def lasted_s(self) -> float:
        """Return for how long hosts may have sent: until all had measured, or a lost connection ended their agents."""
        if self.started_s is None:
            return 0.0
        if self._closed_s is not None:
            return self._closed_s - self.started_s
        return time.monotonic() - self.started_s + (HEARTBEAT_S if self._failed is None else 0)

    def sent_bytes(self) -> int | None:
        """Return how many bytes the host has sent that sent most; None if a host did not report it."""
        sent = [_sent_bytes(self._folder / name / "status.json", name) for name in self._hosts]
        known = [count for count in sent if count is not None]
        return max(known) if len(known) == len(sent) else None


def _connects(plan: Plan) -> bool:
    return any(flow.transport != "udp" for flow in plan.flows)


def _sent_bytes(path: Path, name: str) -> int | None:
    try:
        count = read_status(path, name).get("sent_bytes")
    except TrialError:
        return None
    return count if isinstance(count, int) and count >= 0 else None


def read_status(path: Path, name: str) -> dict[str, object]:
    """Return the status that a host has sent (TrialError without one)."""
    try:
        status = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        status = None
    if not isinstance(status, dict):
        log = path.with_name("console.log")
        text = log.read_bytes()[-500:].decode("utf-8", errors="replace") if log.exists() else ""
        last = f": {text.strip().splitlines()[-1]}" if text.strip() else ""
        raise TrialError(printable(f"{name}: the agent ended without a report{last}"))
    return status


def longest_status(folder: Path, names: Iterable[str]) -> bytes:
    """Return the status of the host on which the trial lasted longest (TrialError if one reports no time)."""
    statuses = {name: read_status(folder / name / "status.json", name) for name in names}
    lasted_us = {}
    for name, status in statuses.items():
        time_us = status.get("virtual_us")
        if not isinstance(time_us, int) or not 0 <= time_us < 1 << 63:
            raise TrialError(f"{name}: the agent does not report how long the trial lasted")
        lasted_us[name] = time_us
    return json.dumps(statuses[max(lasted_us, key=lambda name: lasted_us[name])]).encode()
