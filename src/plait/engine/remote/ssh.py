"""Sessions on real hosts: the system's `ssh`, and the keeper that it starts (`keeper.sh`).

plait adds nothing to the way in: keys, ProxyJump and known hosts are those of the user's own configuration. ssh runs
in batch mode, so it never asks. All sessions of a host share one connection, whose socket is in a private folder.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any

from plait.binaries import agent_bytes, agent_sha256
from plait.bpf.programs import object_of
from plait.cache import temporary
from plait.engine.engine import EngineIdentity
from plait.engine.remote.answers import (
    interface_of,
    interfaces_with,
    mptcp_in,
    whole_number,
)
from plait.engine.remote.channel import Channel, LastWords, StoppedError
from plait.errors import MachineError, TrialError
from plait.files import Folder

THIS_MACHINE = "this machine"
"""The destination for a keeper here, without ssh; no destination of ssh has a space."""
KEEPER = Path(__file__).with_name("keeper.sh")
CONNECT_S, ANSWER_S, UPLOAD_S, PIECE_S = 20, 30, 300, 60
_GREETING_LINES = 200
"""Lines that a login script may print before the keeper's."""
_OPTIONS = (
    *("BatchMode=yes", f"ConnectTimeout={CONNECT_S}", "ServerAliveInterval=5", "ServerAliveCountMax=3"),
    *(
        "ControlMaster=auto",
        "ControlPersist=no",
        "ForwardAgent=no",
        "ForwardX11=no",
        "ClearAllForwardings=yes",
    ),
    *("EscapeChar=none", "RequestTTY=no", "RemoteCommand=none", "PermitLocalCommand=no", "LogLevel=ERROR"),
)

_WORD = re.compile(r"[!-~]+")
"""A word of an order. The keeper divides an order at blanks and ends it at a newline."""
_LONGEST_PLACE = 107 - len("/plait-1234567890-ssh-12345678/") - 40 - len(".1234567890123456")
"""Of a Unix socket's 107 bytes, those before plait's folder, the hash `%C`, and what ssh appends while it binds."""


def _place() -> Path:
    """Return a folder for temporary files whose path is short enough for ssh's sockets."""
    place = tempfile.gettempdir()
    return Path(place if len(os.fsencode(place)) <= _LONGEST_PLACE else "/tmp")  # noqa: S108 - for a private folder


def sockets() -> AbstractContextManager[Path]:
    """Return a private folder for the sockets of ssh, which exists during a block."""
    return temporary("ssh", _place())


def keeper_command(destination: str, folder: Path, config: Path | None = None) -> list[str]:
    """Return the command that starts the keeper at `destination` (MachineError without ssh).

    `folder` is that of `sockets`, and `config` a configuration file for ssh instead of the user's own.
    """
    keeper = f"KEEPER={KEEPER.read_text(encoding='utf-8')}"
    start = ["env", keeper, "sh", "-c", 'eval "$KEEPER"', "keeper"]
    if destination == THIS_MACHINE:
        return start
    if shutil.which("ssh") is None:
        raise MachineError("this machine has no ssh; install it (apt-get install openssh-client)")
    options = [word for option in (*_OPTIONS, f"ControlPath={folder}/%C") for word in ("-o", option)]
    from_file = [] if config is None else ["-F", str(config)]
    return ["ssh", *from_file, *options, "-T", "--", destination, shlex.join(["exec", *start])]


@contextlib.contextmanager
def connected(
    destinations: Mapping[str, str], config: Path | None = None
) -> Iterator[dict[str, HostSession]]:
    """Yield sessions that are set up, by the name of the host (MachineError, TrialError); they end with the block."""
    with sockets() as folder, contextlib.ExitStack() as stack:
        sessions = {}
        for name, destination in destinations.items():
            sessions[name] = HostSession(name, destination, folder, config)
            stack.callback(sessions[name].close)
        for session in sessions.values():
            session.set_up()
        yield sessions


def identity_of(engine: str, sessions: Mapping[str, HostSession]) -> EngineIdentity:
    """Return the identities of the hosts' kernels and of the agent."""
    kernels = {name: session.facts.get("kernel", "unknown") for name, session in sessions.items()}
    return EngineIdentity(
        engine,
        sha256(json.dumps(sorted(kernels.items())).encode()).hexdigest(),
        ", ".join(f"{kernel} ({name})" for name, kernel in kernels.items()),
        agent_sha256(),
    )


@functools.cache
def _packed_agent() -> bytes:
    return gzip.compress(agent_bytes(), 6, mtime=0)


class HostSession:
    """A keeper on the host `name`. Orders raise TrialError with the host's reason if they fail."""

    def __init__(
        self,
        name: str,
        destination: str,
        folder: Path,
        config: Path | None = None,
        stop: Callable[[], threading.Event | None] = lambda: None,
    ) -> None:
        """Start ssh (see `keeper_command`); `set_up` waits for the keeper. `stop`: the event that ends every wait."""
        self.name = name
        self.facts: dict[str, str] = {}
        self.destination = destination
        self.process = subprocess.Popen(
            keeper_command(destination, folder, config),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C must reach plait alone, which ends the session in order
        )
        self._errors = LastWords(self.process)
        self.channel = Channel(self.process, f"{name} ({destination})", stop, self._reason)

    def is_alive(self) -> bool:
        """Return whether the keeper still answers."""
        try:
            self.order("alive")
        except (TrialError, StoppedError):
            return False
        return True

    def set_up(self, *, configure: bool = False) -> None:
        """Wait for the keeper, ask for facts, and bring the agent.

        Raises TrialError, also if `configure` and the host allows no changes.
        """
        self._greet()
        for line in self.order("facts"):
            name, _, value = line.partition(" ")
            self.facts[name] = value[:200]
        if self.facts.get("machine") != platform.machine():
            raise TrialError(
                f"{self.name} is a {self.facts.get('machine')}; plait's agent is for {platform.machine()}"
            )
        if configure and self.facts.get("root") != "yes":
            raise TrialError(
                f"{self.name}: --configure needs `sudo -n` without a password there; allow it, or leave out --configure"
            )
        agent = _packed_agent()
        self.order("agent", str(len(agent)), sha256(agent).hexdigest(), data=agent, timeout_s=UPLOAD_S)

    def _greet(self) -> None:
        """Wait for the keeper."""
        deadline = time.monotonic() + CONNECT_S + ANSWER_S
        for _ in range(_GREETING_LINES):
            words = self.channel.line(max(0.0, deadline - time.monotonic())).split(maxsplit=2)
            if words[:2] == ["hello", "1"] and len(words) == 3:
                return
        raise TrialError(
            f"{self.name} ({self.destination}) is no host that plait can use: the keeper did not start"
        )

    def order(self, *words: str, data: bytes | None = None, timeout_s: float = ANSWER_S) -> list[str]:
        """Give an order, with `data` if it has some, and return the lines of the answer before `ok`."""
        self.start_order(*words, data=data)
        lines = []
        deadline = time.monotonic() + timeout_s
        while (line := self.channel.line(max(0.0, deadline - time.monotonic()))) != "ok":
            if line.startswith("failed"):
                reason = line.removeprefix("failed").strip() or "it gave no reason"
                raise TrialError(f"{self.name}: {words[0]}: {reason.removeprefix('plait-agent: ')}")
            lines.append(line)
            if len(lines) > _GREETING_LINES:
                raise TrialError(f"{self.name}: the answer to {words[0]} is too long")
        return lines

    def read(self, settings: Iterable[str]) -> dict[str, str]:
        """Return the values of settings (paths below /proc/sys) that the host has."""
        lines = self.order("read", *settings)
        return {name: " ".join(value.split()) for name, _, value in (line.partition(" ") for line in lines)}

    def configure(self, settings: bytes, programs: Iterable[str] = ()) -> None:
        """Make settings (see `plait.engine.remote.configure`), until `restore` or the session's end.

        `programs` are the algorithms whose BPF objects the host needs. Raises MachineError if one is missing.
        """
        for name in programs:
            content = object_of(name)
            self.order("program", name, str(len(content)), data=content)
        self.order("configure", str(len(settings)), data=settings)

    def route(self, local: str, remote: str) -> tuple[set[str] | None, str | None]:
        """Return the interfaces with the address `local`, and the interface of packets from there to `remote`.

        The route is empty if the host has none; both are None if it has no `ip`.
        """
        answer = [*self.order("route", local, remote), "", ""]
        return interfaces_with(local, answer[0]), interface_of(answer[1])

    def mptcp_state(self) -> tuple[list[dict[str, Any]], tuple[int, int]] | None:
        """Return the MPTCP endpoints, and the limits of subflows and announcements; None if plait may not list them."""
        answer = self.order("endpoints")
        if not answer:
            return None
        return mptcp_in(answer[0], self.name)

    def start_order(self, *words: str, data: bytes | None = None) -> None:
        """Give an order, with `data` if it has some, without waiting for its answer."""
        for word in words:
            if not _WORD.fullmatch(word):  # another host may have sent it, with an order in it
                raise TrialError(f"{self.name}: {words[0]}: {word[:40]!r} is not one word")
        self.channel.send((" ".join(words) + "\n").encode(), ANSWER_S)
        if data is not None:
            if (line := self.channel.line(ANSWER_S)) != "send":
                raise TrialError(
                    f"{self.name}: {words[0]}: the host answered {line[:100]!r} instead of 'send'"
                )
            self.channel.send(data, UPLOAD_S)

    def fetch(self, files: Mapping[str, int], folder: Path) -> None:
        """Copy those files of the trial that there are into `folder`; `files` has the most bytes that each may have."""
        sizes = {}
        for line in self.order("fetch", *files):
            number, _, name = line.strip().partition(" ")
            sizes[name] = whole_number(number)
        for name in (name for name in files if name in sizes):
            size = sizes[name]
            if size is None:
                raise TrialError(f"{self.name}: the host did not send {name}")
            if size > files[name]:
                raise TrialError(f"{self.name}: {name} has {size} bytes; plait accepts {files[name]}")
            with os.fdopen(Folder(folder).new(Path(name).name), "wb") as file:
                for piece in self.channel.chunks(size, PIECE_S):
                    file.write(piece)

    def beat(self) -> None:
        """Show the keeper that plait is there."""
        self.channel.send(b"beat\n", ANSWER_S)

    def close(self) -> None:
        """End the session in order; if that fails, the keeper ends by itself when its input does."""
        with contextlib.suppress(TrialError, OSError):
            self.order("bye")
        self.end()

    def end(self) -> None:
        """End ssh. The host then cleans up alone."""
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        for ask, patience_s in ((self.process.terminate, 2.0), (self.process.kill, 5.0)):
            try:
                self.process.wait(timeout=patience_s)
            except subprocess.TimeoutExpired:
                ask()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)

    def _reason(self) -> str:
        """Return what ssh reported, for messages."""
        deadline = time.monotonic() + 1  # ssh may write its reason a moment after it closed its output
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=0.2)
        text = self._errors.last_line(max(0.0, deadline - time.monotonic()))
        return f": {text}" if text else ""
