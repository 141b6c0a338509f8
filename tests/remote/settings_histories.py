"""A host's settings after a session equal those before it, wherever a process dies: histories that hypothesis draws.

    unshare -Urnm python settings_histories.py COUNT

The program runs the keeper as ssh starts it, in a network namespace that is its own. A history has endpoints, limits
and sysctls of the host, connections of a user, settings that plait wants, and the death of one process: plait (or ssh,
which closes the pipes), the keeper, the janitor, the watcher, or the agent at its Nth system call. Two deaths leave the
rest to the next session. The program prints a line of JSON with what the histories did.
"""

from __future__ import annotations

import ctypes
import gzip
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from plait.binaries import AGENT
from plait.engine.remote.ssh import KEEPER

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = (1, 2, 3)
PORT = 5001
SOL_MPTCP, MPTCP_INFO = 284, 1
PEER = """
import os, socket, sys
server = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("", 5001))
server.listen(16)
print("ready", flush=True)
while True:
    accepted, _ = server.accept()
    if os.fork() == 0:
        while data := accepted.recv(4096):
            accepted.send(data)
        os._exit(0)  # the last connection stays half open
"""
ADDRESSES = [*(f"10.1.{line}.1" for line in LINES), "10.9.9.1", "fd00::1"]
FLAGS = [["signal"], ["subflow"], ["signal", "subflow"], ["backup", "subflow"], ["fullmesh", "subflow"]]
SYSCTLS = {
    "net/mptcp/enabled": ["0", "1"],
    "net/mptcp/add_addr_timeout": ["1", "120"],
    "net/mptcp/stale_loss_cnt": ["1", "4"],
    "net/ipv4/tcp_sack": ["0", "1"],
    "net/ipv4/tcp_rmem": ["4096 131072 6291456", "8192 65536 1000000"],
    "net/ipv4/tcp_no_metrics_save": ["0", "1"],
}
VICTIMS = ("nobody", "plait", "keeper", "janitor", "watcher", "agent", "janitor and keeper", "everybody")
RARELY = st.sampled_from([False, False, False, True])
STEPS = ("configure", "trial", "restore", "bye")


@dataclass(frozen=True)
class Endpoint:
    id: int
    address: str
    flags: tuple[str, ...]


@dataclass
class History:
    endpoints: list[Endpoint]
    limits: tuple[int, int]
    sysctls: dict[str, str]
    earlier: bool
    """A connection of the user's before the session made an implicit endpoint."""
    live: bool
    """A connection of the user's lives through the session."""
    joins: bool
    """The session's trial makes the kernel make an implicit endpoint."""
    wanted: list[tuple[str, list[str]]]
    wanted_limits: tuple[int, int]
    wanted_sysctls: dict[str, str]
    victim: str
    step: str
    call: int
    """The system call of the agent at which it dies, for the victim `agent`."""


@st.composite
def histories(draw: st.DrawFn) -> History:
    addresses = draw(st.lists(st.sampled_from(ADDRESSES), unique=True, max_size=len(ADDRESSES)))
    ids = draw(st.lists(st.integers(1, 255), unique=True, min_size=len(addresses), max_size=len(addresses)))
    flags = st.sampled_from(FLAGS)
    pair = st.tuples(st.integers(0, 8), st.integers(0, 8))
    values = st.fixed_dictionaries({}, optional={name: st.sampled_from(v) for name, v in SYSCTLS.items()})
    wanted = draw(st.lists(st.sampled_from(ADDRESSES[:3]), unique=True, max_size=3))
    return History(
        [
            Endpoint(number, address, tuple(draw(flags)))
            for number, address in zip(ids, addresses, strict=True)
        ],
        draw(pair),
        draw(values),
        draw(RARELY),
        draw(RARELY),
        draw(st.booleans()),
        [(address, draw(flags)) for address in wanted],
        draw(pair),
        draw(values),
        draw(st.sampled_from(VICTIMS)),
        draw(st.sampled_from(STEPS)),
        draw(st.integers(1, 160)),
    )


def run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return done.stdout


def in_peer(pid: int, *command: str) -> str:
    return run("nsenter", "-t", str(pid), "-n", *command)


@contextmanager
def peer() -> Iterator[None]:
    """Make the namespace at the other end of the lines, which echoes and announces its addresses."""
    command = ["unshare", "-n", sys.executable, "-c", f"import os; os.read(0, 1)\n{PEER}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        wait_until(
            lambda: Path(f"/proc/{process.pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
        )
        pid = process.pid
        run("ip", "link", "set", "lo", "up")
        for line in LINES:
            run(
                "ip", "link", "add", f"l{line}", "type", "veth", "peer", "name", f"l{line}", "netns", str(pid)
            )
            run("ip", "addr", "add", f"10.1.{line}.1/24", "dev", f"l{line}")
            run("ip", "link", "set", f"l{line}", "up")
            in_peer(pid, "ip", "addr", "add", f"10.1.{line}.2/24", "dev", f"l{line}")
            in_peer(pid, "ip", "link", "set", f"l{line}", "up")
            in_peer(pid, "ip", "mptcp", "endpoint", "add", f"10.1.{line}.2", "signal")
        in_peer(pid, "ip", "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
        process.stdin.write(b"1")
        process.stdin.flush()
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
        finally:
            process.kill()


def connection() -> socket.socket:
    """Open an MPTCP connection, and exchange data until it may have more subflows."""
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    client.settimeout(300)
    client.bind(("10.1.1.1", 0))
    client.connect(("10.1.1.2", PORT))
    client.sendall(b"x" * 100)
    client.recv(100)
    return client


def connection_over_all_lines() -> socket.socket:
    """Open a connection whose subflows leave from addresses without endpoints, which makes implicit ones."""
    run("ip", "mptcp", "limits", "set", "subflows", "8", "add_addr_accepted", "8")
    client = connection()
    wait_until(lambda: client.getsockopt(SOL_MPTCP, MPTCP_INFO, 1) == bytes([len(LINES) - 1]))
    return client


def wait_until(holds: Any) -> None:
    deadline = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < deadline, "a process did not end"
        time.sleep(0.005)  # the pace of looking, not a guess of how long it takes


def snapshot() -> dict[str, Any]:
    """Return every endpoint, the limits, and all sysctls of MPTCP and TCP."""
    state: dict[str, Any] = json.loads(run(str(AGENT), "--settings", "show"))
    root = Path("/proc/sys/net")
    for path in [*root.glob("mptcp/*"), *root.glob("ipv4/tcp_*")]:
        with suppress(OSError):
            state["sysctls"][str(path)] = path.read_text(encoding="utf-8")
    return state


def set_up(history: History) -> socket.socket | None:
    """Make the state of the history, and return the connection of a user that lives through the session."""
    run("ip", "mptcp", "endpoint", "flush")
    for name, values in SYSCTLS.items():
        Path("/proc/sys", name).write_text(values[-1], encoding="utf-8")
    if history.earlier:
        connection_over_all_lines().close()
    live = connection_over_all_lines() if history.live else None
    for endpoint in history.endpoints:
        with suppress(subprocess.CalledProcessError):  # an implicit endpoint has its address or id
            run("ip", "mptcp", "endpoint", "add", endpoint.address, "id", str(endpoint.id), *endpoint.flags)
    subflows, accepted = map(str, history.limits)
    run("ip", "mptcp", "limits", "set", "subflows", subflows, "add_addr_accepted", accepted)
    for name, value in history.sysctls.items():
        Path("/proc/sys", name).write_text(value, encoding="utf-8")
    return live


def die_at_call(number: int, program: str, *arguments: str) -> int:
    """Run a program, and kill it at its system call `number`; return its exit code otherwise."""
    libc = ctypes.CDLL(None, use_errno=True)
    trace_me, trace_calls = 0, 24
    child = os.fork()
    if child == 0:
        libc.ptrace(trace_me, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.execv(program, [program, *arguments])  # noqa: S606 - a tracer starts it this way
    stops = 0
    while True:
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            return os.waitstatus_to_exitcode(status)
        stops += 1
        if stops >= 2 * number:  # a call stops at its begin and its end
            os.kill(child, signal.SIGKILL)
        libc.ptrace(trace_calls, child, None, None)


class Session:
    """A keeper, as ssh starts it."""

    def __init__(self, folder: Path, agent: bytes) -> None:
        keeper = {"KEEPER": KEEPER.read_text(encoding="utf-8"), "TMPDIR": str(folder)}
        self.process = subprocess.Popen(
            ["sh", "-c", 'eval "$KEEPER"', "keeper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **keeper},
            bufsize=0,
        )
        hello = self.line().split()
        assert hello[:2] == ["hello", "1"], hello
        self.folder = Path(hello[2])
        packed = gzip.compress(agent, 1)
        assert self.order(f"agent {len(packed)} {hashlib.sha256(packed).hexdigest()}", packed) == "ok"
        self.watchers = self.children()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def order(self, order: str, data: bytes = b"", then: Any = lambda: None) -> str:
        """Give an order, let `then` happen, and return the answer; empty if the keeper has gone."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.write(f"{order}\n".encode())
            if data and self.line() == "send":
                self.process.stdin.write(data)
        then()
        return self.line()

    def children(self) -> dict[str, int]:
        """Return the janitor and the watcher by name."""
        guards = {}
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
                if str(self.folder).encode() in words and b"janitor" in words:
                    guards["janitor"] = int(entry.name)
                if str(self.folder).encode() in words and b"watch" in words:
                    guards["watcher"] = int(entry.name)
        return guards

    def kill(self, victim: str) -> None:
        children = self.children()
        victims = {
            "plait": [],
            "keeper": [self.process.pid],
            "janitor and keeper": [children.get("janitor"), self.process.pid],
            "everybody": [*children.values(), self.process.pid],
        }.get(victim, [children.get(victim)])
        for pid in victims:
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if victim == "plait":
            self.close()

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def end(self) -> None:
        """Wait until no process of the session is left."""
        self.close()
        self.process.wait(300)
        wait_until(lambda: not processes_of(self.folder))


def processes_of(folder: Path) -> list[int]:
    """Return the processes that hold the pipe of a session, or have its folder in their command line."""
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if any(word.startswith(str(folder).encode()) for word in words):
                pids.append(int(entry.name))
                continue
            if any(str(fd.readlink()).startswith(str(folder)) for fd in (entry / "fd").iterdir()):
                pids.append(int(entry.name))
    return pids


COUNTS: Counter[str] = Counter()
"""What the histories did."""


def agent_for(history: History, folder: Path) -> bytes:
    """Return the agent, or a program that kills it at a system call of the history's step."""
    if history.victim != "agent" or history.step not in ("configure", "restore"):
        return AGENT.read_bytes()
    done = folder / "died"
    return (
        f"#!{sys.executable}\nimport os, sys\n"
        f"if sys.argv[2] == {history.step!r} and not os.path.exists({str(done)!r}):\n"
        f"    open({str(done)!r}, 'w').close()\n"
        f"    sys.path[:0] = {[str(Path(__file__).parent)]!r}\n"
        f"    from settings_histories import die_at_call\n"
        f"    code = die_at_call({history.call}, {str(AGENT)!r}, *sys.argv[1:])\n"
        f"    os._exit(code % 256)\n"
        f"os.execv({str(AGENT)!r}, [{str(AGENT)!r}, *sys.argv[1:]])\n"
    ).encode()


def act(history: History, session: Session) -> None:
    """Carry out the session, with the death of the history."""
    wanted = {
        "sysctls": history.wanted_sysctls,
        "limits": dict(zip(("subflows", "add_addr_accepted"), history.wanted_limits, strict=True)),
        "endpoints": [{"address": address, "flags": flags} for address, flags in history.wanted],
    }
    for step in STEPS:
        death = (lambda: session.kill(history.victim)) if step == history.step else (lambda: None)
        if step == "trial":
            death()
            if history.joins:
                with suppress(OSError):
                    connection().close()
            continue
        data = json.dumps(wanted).encode() if step == "configure" else b""
        answer = session.order(f"{step} {len(data)}" if data else step, data, death)
        if step == "configure":
            COUNTS["configured" if answer == "ok" else "refused" if answer else "cut"] += 1
        if not answer.startswith("ok"):
            return


@given(histories())
def check(history: History) -> None:
    with tempfile.TemporaryDirectory(prefix="histories-") as name:
        folder = Path(name)
        users = set_up(history)
        before = snapshot()
        COUNTS["histories"] += 1
        COUNTS[f"{history.victim} at {history.step}"] += 1
        COUNTS["with implicit endpoints"] += any(e["flags"] & 16 for e in before["endpoints"])
        session = Session(folder, agent_for(history, folder))
        with suppress(ValueError):  # plait has closed the pipes
            act(history, session)
        session.end()
        if history.victim == "everybody":  # the next session restores
            following = Session(folder, AGENT.read_bytes())
            nothing: dict[str, Any] = {"sysctls": {}, "limits": None, "endpoints": []}
            data = json.dumps(nothing).encode()
            assert following.order(f"configure {len(data)}", data) == "ok"
            following.order("bye")
            following.end()
        after = snapshot()
        if users is not None:
            users.close()
        assert after == before, differences(before, after)
        left = [path.name for path in folder.glob("plait-*")]
        assert not left or history.victim in ("everybody", "janitor and keeper"), left


def differences(before: dict[str, Any], after: dict[str, Any]) -> str:
    parts = [f"{key}: {before[key]} -> {after[key]}" for key in ("endpoints", "limits")]
    names = [n for n in before["sysctls"] if before["sysctls"][n] != after["sysctls"].get(n)]
    return "; ".join([*parts, *names])


def main() -> None:
    run("mount", "-t", "tmpfs", "none", "/run")
    count = int(sys.argv[1])
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    limited = settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=slow,
        phases=[Phase.explicit, Phase.generate],  # a history takes a second, and shrinking hundreds of them
    )
    with peer():
        limited(check)()
    sys.stdout.write(json.dumps(dict(sorted(COUNTS.items()))) + "\n")


if __name__ == "__main__":
    main()
