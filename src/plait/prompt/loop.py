"""The prompt: runs commands in the nodes of a running network, with the command names of Mininet."""

from __future__ import annotations

import cmd
import contextlib
import os
import readline
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from plait.cache import cache_root
from plait.engine.interactive import END, ProgramEnd, ProgramStart, TerminalSize
from plait.engine.virtual.foreground import raw, terminal_size
from plait.errors import printable
from plait.prompt.live import Run
from plait.prompt.view import NetworkView
from plait.scenario.fields.programs import SHELL

_BASH = ("/bin/bash", "--norc", "--noprofile")
_IPERF_S = 5
_HISTORY = 1000
_UNTIL_IPERF_LISTENS = "until ss -Hltn sport = :5001 | grep -q .; do sleep 0.1; done"


class Prompt(cmd.Cmd):
    """Read commands from standard input until `exit` or its end."""

    prompt = "plait> "
    intro = (
        "Commands: NODE COMMAND, NODE (a shell in the node), nodes, links, net, dump, pingall,\n"
        "iperf, link, help, exit."
    )
    doc_header = (
        "Commands (NODE COMMAND runs COMMAND in NODE, with the addresses of nodes instead of their names):"
    )

    def __init__(self, view: NetworkView, path: Path, environment: Sequence[tuple[str, str]]) -> None:
        """`path`: the socket of the network; `view`: the view of its plan."""
        super().__init__()
        self._view = view
        self._path = path
        self._environment = environment
        self._background: list[Run] = []
        self.directory = str(Path.cwd())
        """The working directory of commands."""
        self._at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        if not self._at_terminal:
            self.use_rawinput = False
            self.prompt = self.intro = ""

    # --- programs in nodes -----------------------------------------------------------------------------

    def run_in(self, node: str | None, argv: Sequence[str]) -> ProgramEnd:
        """Run a program in `node` (None: outside the nodes) in this terminal, and return the record of its end."""
        size = terminal_size(sys.stdin.fileno()) if self._at_terminal else None
        run = Run(self._path, self._start(node, argv, size))
        sys.stdout.flush()
        if not self._at_terminal:
            try:
                return run.finish(1)
            except KeyboardInterrupt:
                run.signal(signal.SIGINT)
                return run.finish(1)
        with raw(0), _resized(run):
            while True:
                ready, _, _ = select.select([run.fileno(), 0], [], [])
                if 0 in ready:
                    run.feed(os.read(0, 4096))
                if run.fileno() not in ready:
                    continue
                for kind, content in run.frames():
                    if kind == END:
                        run.close()
                        return ProgramEnd.read(content)
                    os.write(1, content)

    def shell(self, node: str) -> int:
        """Run a shell in `node`, and return its exit code."""
        end = self.run_in(node, _BASH)
        return 1 if end.code is None else end.code

    def _start(
        self, node: str | None, argv: Sequence[str], terminal: TerminalSize | None = None
    ) -> ProgramStart:
        environment = [*self._environment, ("PS1", f"{node or 'guest'}# ")]
        return ProgramStart(0, argv, environment, directory=self.directory, netns=node, terminal=terminal)

    def _exit_code(self, node: str, argv: Sequence[str]) -> int:
        """Run a program in `node` without output, and return its exit code."""
        code = Run(self._path, self._start(node, argv)).finish().code
        return 1 if code is None else code

    def default(self, line: str) -> None:
        """Run NODE COMMAND."""
        node, _, command = line.partition(" ")
        if line == "EOF":
            return
        if node not in self._view.roles:
            self._print(f"there is no command or node {node}; list them with `help` and `nodes`")
            return
        self._in_node(node, command.strip())

    def _in_node(self, node: str | None, command: str) -> None:
        if not command:
            end = self.run_in(node, _BASH)
        elif command.endswith("&"):
            line = self._view.with_addresses(command[:-1].strip())
            self._background.append(Run(self._path, self._start(node, [*SHELL, f"exec {line}"]), behind=True))
            return
        else:
            end = self.run_in(node, [*SHELL, self._view.with_addresses(command)])
        if end.error:
            self._print(printable(end.error))

    def _print(self, text: str) -> None:
        self.stdout.write(text + "\n")

    # --- commands -----------------------------------------------------------------------------------------

    def do_nodes(self, _: str) -> None:
        """List the nodes."""
        self._print(" ".join(self._view.roles))

    def do_links(self, _: str) -> None:
        """List the links with their ends and conditions."""
        self._print("\n".join(self._view.links))

    def do_net(self, _: str) -> None:
        """List the neighbour of each interface, for each node."""
        self._print("\n".join(self._view.net()))

    def do_dump(self, _: str) -> None:
        """List the role, interfaces and addresses of each node."""
        self._print("\n".join(self._view.dump()))

    def do_intfs(self, _: str) -> None:
        """List the interfaces of each node."""
        for node, interfaces in self._view.interfaces.items():
            self._print(f"{node}: {','.join(interface.name for interface in interfaces)}")

    def do_sh(self, line: str) -> None:
        """Run a command in the guest, outside the nodes: sh COMMAND."""
        self._in_node(None, line)

    def do_pingall(self, _: str) -> None:
        """Ping every host from every other, once."""
        hosts = self._view.hosts()
        lost = 0
        for source in hosts:
            answers = []
            for target in (host for host in hosts if host != source):
                address = self._view.address(target)
                answered = (
                    address is not None and self._exit_code(source, ["ping", "-c1", "-W1", address]) == 0
                )
                lost += not answered
                answers.append(target if answered else "X")
            self._print(f"{source} -> {' '.join(answers)}")
        pairs = len(hosts) * (len(hosts) - 1)
        if pairs:
            self._print(f"{100 * lost / pairs:.0f}% lost ({pairs - lost}/{pairs} answered)")

    def do_iperf(self, line: str) -> None:
        """Measure TCP between two hosts: iperf [H1 H2 [SECONDS]] (default: first and last host, 5 s)."""
        arguments = line.split() or [self._view.hosts()[0], self._view.hosts()[-1]]
        if len(arguments) < 2 or any(node not in self._view.roles for node in arguments[:2]):
            self._print("write the names of two hosts: iperf H1 H2")
            return
        seconds = arguments[2] if len(arguments) > 2 else str(_IPERF_S)
        server = Run(self._path, self._start(arguments[1], ["iperf", "-s"]), behind=True)
        address = self._view.address(arguments[1]) or arguments[1]
        self._exit_code(arguments[1], [*SHELL, _UNTIL_IPERF_LISTENS])
        self.run_in(arguments[0], ["iperf", "-c", address, "-t", seconds])
        server.signal(signal.SIGKILL)
        server.finish()

    def do_link(self, line: str) -> None:
        """Take a link down or up: link N1 N2 down|up, or link NAME down|up."""
        arguments = line.split()
        if len(arguments) not in {2, 3} or arguments[-1] not in {"down", "up"}:
            self._print("write link N1 N2 down|up, or link NAME down|up for one of several links")
            return
        *names, state = arguments
        nodes = set(names)
        ends = self._view.ends.get(names[0], ()) if len(names) == 1 else [
            end for pair in self._view.ends.values() if {node for node, _ in pair} == nodes for end in pair
        ]  # fmt: skip
        if not ends:
            self._print(f"there is no link {'-'.join(names)}; list the links with `links`")
        for node, name in ends:
            interface = next(entry for entry in self._view.interfaces[node] if entry.name == name)
            commands = f"ip link set {name} down"
            if state == "up":  # an interface that is up keeps its configuration
                commands = f'[ -n "$(ip link show up dev {name})" ] || {{ {" && ".join(interface.up)}; }}'
            if self._exit_code(node, [*SHELL, commands]) != 0:
                self._print(f"taking {name} of {node} {state} failed")

    def do_exit(self, _: str) -> bool:
        """End the prompt and the network."""
        return True

    do_quit = do_exit

    def do_EOF(self, _: str) -> bool:  # noqa: N802 - the name in cmd
        """End the prompt."""
        if self._at_terminal:
            self._print("")
        return True

    # --- the terminal -------------------------------------------------------------------------------------

    def emptyline(self) -> bool:
        """Ignore an empty line."""
        return False

    def completenames(self, text: str, *ignored: object) -> list[str]:
        """Return names of commands and nodes."""
        return super().completenames(text, *ignored) + [
            node for node in self._view.roles if node.startswith(text)
        ]

    def completedefault(self, text: str, *_: object) -> list[str]:
        """Return names of nodes, for later words of a line."""
        return [node for node in self._view.roles if node.startswith(text)]

    def read(self) -> None:
        """Read and run commands to the end; Ctrl-C clears the line."""
        history = cache_root() / "shell-history"
        with contextlib.suppress(OSError):  # there is none at first
            readline.read_history_file(history)
        readline.set_history_length(_HISTORY)
        while True:
            try:
                self.cmdloop()
                break
            except KeyboardInterrupt:
                self.intro = ""
                self._print("^C")
        with contextlib.suppress(OSError):  # the history is a convenience, not a result
            readline.write_history_file(history)

    def hang_up(self) -> None:
        """Hang up on the programs in the background."""
        for run in self._background:
            run.close()


@contextlib.contextmanager
def _resized(run: Run) -> Iterator[None]:
    before = signal.signal(signal.SIGWINCH, lambda *_: run.resize(terminal_size(0)))
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
