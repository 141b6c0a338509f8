"""Hosts that a test makes: network namespaces with an sshd each, and lines between them that tc shapes.

    control (plait)  ==10.99.1.0/24==  h1 (sshd)
                     ==10.99.2.0/24==  h2 (sshd)
    h1  ==10.1.N.0/24==  [bridge in wire]  ==  h2    line N; the ends in wire shape what leaves through them
    h1  ==192.168.N.0/24==  [router in wire]  ==10.2.N.0/24==  h2    a line with address translation:
        the router hides h1 (a home), and gives h2 the public address 10.1.N.2 (a cloud's 1:1 NAT)

What plait does on a host needs neither Python nor tshark there, so commands over sshd find none.
It needs root: that of this machine, or that of a guest (`plait exec`). All of it ends with the `with` block.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

SSHD = "/usr/sbin/sshd"
HOSTS = ("h1", "h2")
DEADLINE_S = 300.0
_HIDDEN = ("python*", "tshark", "dumpcap")
_WITHOUT = (
    'n=$1; shift; while [ "$n" -gt 0 ]; do mount --bind /dev/null "$1"; n=$((n - 1)); shift; done; exec "$@"'
)
"""Hides programs in the namespace of mounts that `ip netns exec` makes, and starts another one."""


def hidden_programs() -> list[str]:
    """Return the files that run Python or read captures on this machine, and that its hosts lack."""
    folders = {
        *map(Path, os.get_exec_path()),
        Path(sys.executable).parent,
        *map(Path, ("/usr/bin", "/usr/local/bin")),
    }
    hidden = {path.resolve() for folder in folders for name in _HIDDEN for path in folder.glob(name)}
    return sorted(str(path) for path in hidden if path.is_file())


@dataclass(frozen=True)
class PlantedLine:
    """What `tc` does in the middle of a line to what goes to h2 and to h1: arguments of qdiscs, the outer one first."""

    name: str
    there: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    translated: bool = False
    """Whether h1 is behind a router that hides it, and h2 behind one that gives it a public address."""

    def addresses(self, number: int) -> tuple[str, str]:
        """Return what hosts.yaml says of the addresses of h1 and h2; `number` is that of the line."""
        if self.translated:
            h1 = f"{{local: 192.168.{number}.1, public: none}}"
            return h1, f"{{local: 10.2.{number}.2, public: 10.1.{number}.2}}"
        return f"10.1.{number}.1", f"10.1.{number}.2"


@dataclass
class RealHosts:
    """Two hosts, h1 and h2, and the lines between them."""

    folder: Path
    lines: list[PlantedLine]
    prefix: str = field(default_factory=lambda: f"pt{secrets.token_hex(3)}")
    _daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def namespaces(self) -> tuple[str, ...]:
        """What `netns` accepts."""
        return "control", "wire", *HOSTS

    @property
    def ssh_addresses(self) -> dict[str, str]:
        """The address on which the sshd of each host listens."""
        return {host: f"10.99.{number}.1" for number, host in enumerate(HOSTS, 1)}

    def netns(self, host: str) -> str:
        return f"{self.prefix}{host}"

    def run(self, host: str, *command: str) -> str:
        """Run a command in the namespace of `host` (or `control`), and return what it prints."""
        line = ["ip", "netns", "exec", self.netns(host), *command]
        return subprocess.run(line, check=True, capture_output=True, text=True, timeout=DEADLINE_S).stdout

    def __enter__(self) -> Self:
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for daemon in self._daemons:
            daemon.terminate()
            daemon.wait(timeout=DEADLINE_S)
        for host in self.namespaces:
            # a session of sshd whose link is gone would wait for hours
            command = ["ip", "netns", "pids", self.netns(host)]
            for process in subprocess.run(
                command, check=False, capture_output=True, text=True
            ).stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", self.netns(host)], check=False, stderr=subprocess.DEVNULL)

    def _make(self) -> None:
        self._make_namespaces()
        for number, host in enumerate(HOSTS, 1):
            self._wire(
                ("control", f"m{number}", f"10.99.{number}.254/24"), (host, "m0", f"10.99.{number}.1/24")
            )
        for number, line in enumerate(self.lines, 1):
            (self._make_routed if line.translated else self._make_bridged)(number)
            for host, qdiscs in (("h1", line.back), ("h2", line.there)):
                self._shape("wire", f"p{number}{host}", qdiscs)
        self._start_daemons()

    def _make_namespaces(self) -> None:
        for host in self.namespaces:
            ip("netns", "add", self.netns(host))
            ip("-n", self.netns(host), "link", "set", "lo", "up")

    def _make_bridged(self, number: int) -> None:
        bridge = f"b{number}"
        ip("-n", self.netns("wire"), "link", "add", bridge, "up", "type", "bridge", "mcast_snooping", "0")
        for end, host in enumerate(HOSTS, 1):
            port = f"p{number}{host}"
            self._wire((host, f"l{number}", f"10.1.{number}.{end}/24"), ("wire", port, ""))
            ip("-n", self.netns("wire"), "link", "set", port, "master", bridge)

    def _make_routed(self, number: int) -> None:
        """Make a line behind a router that translates: h1's address and port, and h2's address."""
        inside, outside = f"p{number}h1", f"p{number}h2"
        self._wire(
            ("h1", f"l{number}", f"192.168.{number}.1/24"), ("wire", inside, f"192.168.{number}.254/24")
        )
        self._wire(("h2", f"l{number}", f"10.2.{number}.2/24"), ("wire", outside, f"10.2.{number}.254/24"))
        ip("-n", self.netns("h1"), "route", "add", f"10.1.{number}.0/24", "via", f"192.168.{number}.254")
        ip("-n", self.netns("h2"), "route", "add", f"10.1.{number}.0/24", "via", f"10.2.{number}.254")
        self.run("wire", "sysctl", "-qw", "net.ipv4.ip_forward=1")
        public, private = f"10.1.{number}.2", f"10.2.{number}.2"
        nat = ("iptables", "-t", "nat", "-A")
        self.run("wire", *nat, "PREROUTING", "-i", inside, "-d", public, "-j", "DNAT", "--to", private)
        home = ("-j", "SNAT", "--to", f"10.1.{number}.100")
        self.run("wire", *nat, "POSTROUTING", "-o", outside, "-s", f"192.168.{number}.1", *home)
        drop = ("-m", "conntrack", "--ctstate", "NEW", "-j", "DROP")
        self.run("wire", "iptables", "-A", "FORWARD", "-i", outside, *drop)

    def _wire(self, a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
        (host, device, _), (peer, peer_device, _) = a, b
        ip("-n", self.netns(host), "link", "add", device, "type", "veth", "peer", "name", peer_device,
           "netns", self.netns(peer))  # fmt: skip
        for where, name, prefix in (a, b):
            if prefix:
                ip("-n", self.netns(where), "addr", "add", prefix, "dev", name)
            ip("-n", self.netns(where), "link", "set", name, "up")
            # queues count frames, as those of a real line do, and TCP still builds large buffers, as a real host does
            self.run(where, "ethtool", "-K", name, "tso", "off")
            # hosts of a real line do not ask for a neighbour through the queue that they fill, where the answer is lost
            keys = [
                f"net.{family}.neigh.{name}.base_reachable_time_ms=3600000" for family in ("ipv4", "ipv6")
            ]
            self.run(where, "sysctl", "-qw", *keys)

    def _shape(self, host: str, device: str, qdiscs: tuple[str, ...]) -> None:
        for level, qdisc in enumerate(qdiscs, 1):
            parent = ["root"] if level == 1 else ["parent", f"{level - 1}:1"]
            tc = ["tc", "-n", self.netns(host), "qdisc", "add", "dev", device, *parent, "handle", f"{level}:"]
            subprocess.run([*tc, *qdisc.split()], check=True, capture_output=True, timeout=DEADLINE_S)

    def _start_daemons(self) -> None:
        keys = self.folder / "keys"
        keys.mkdir(mode=0o700)
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)]
            subprocess.run(command, check=True, timeout=DEADLINE_S)
        shutil.copy(keys / "user.pub", keys / "authorized")
        Path("/run/sshd").mkdir(exist_ok=True, mode=0o755)
        for host, address in self.ssh_addresses.items():
            config = self.folder / f"sshd-{host}"
            config.write_text(
                f"ListenAddress {address}\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/authorized\n"
                f"PidFile none\nStrictModes no\nPasswordAuthentication no\nUsePAM no\nPermitRootLogin yes\n"
                f"UseDNS no\nSetEnv TMPDIR={self.tmp(host)}\n",
                encoding="utf-8",
            )
            self.tmp(host).mkdir()
            log = (self.folder / f"sshd-{host}.log").open("wb")
            self._daemons.append(subprocess.Popen(self._sshd(host, "-D", "-e"), stderr=log))
        self.ssh_config.write_text(
            "".join(f"Host {host}\n  HostName {address}\n" for host, address in self.ssh_addresses.items())
            + f"Host *\n  User {pwd.getpwuid(os.getuid()).pw_name}\n  IdentityFile {keys}/user\n"
            f"  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile {self.folder}/known\n",
            encoding="utf-8",
        )
        deadline = time.monotonic() + DEADLINE_S
        for host, address in self.ssh_addresses.items():
            while address not in self.run(host, "ss", "-Hltn", "sport", "=", ":22"):
                assert time.monotonic() < deadline, (self.folder / f"sshd-{host}.log").read_text()

    def _sshd(self, host: str, *options: str) -> list[str]:
        """Return the command of an sshd on a host, whose sessions find no Python."""
        hidden = hidden_programs()
        without = ["sh", "-c", _WITHOUT, "sh", str(len(hidden)), *hidden]
        return [
            "ip",
            "netns",
            "exec",
            self.netns(host),
            *without,
            SSHD,
            *options,
            "-f",
            f"{self.folder}/sshd-{host}",
        ]

    @property
    def with_files(self) -> tuple[str, ...]:
        """The hosts on which plait writes temporary files."""
        return HOSTS

    def tmp(self, host: str) -> Path:
        """The folder for temporary files of a host."""
        return self.folder / f"tmp-{host}"

    @property
    def ssh_config(self) -> Path:
        return self.folder / "ssh_config"

    def hosts_yaml(
        self, names: list[str] | None = None, limits: str = "rate: 1gbit, bytes: 1GB, time: 10min"
    ) -> Path:
        """Write hosts.yaml; `names` are the names of the lines in it."""
        path = self.folder / "hosts.yaml"
        text = f"limits: {{{limits}}}\nhosts:\n"
        for end, host in enumerate(HOSTS):
            text += f"  {host}:\n    ssh: {host}\n    addresses:\n"
            for number, line in enumerate(self.lines, 1):
                name = names[number - 1] if names else line.name
                text += f"      {name}: {line.addresses(number)[end]}\n"
        path.write_text(text, encoding="utf-8")
        return path

    def direct_ssh_config(self) -> Path:
        """Write a configuration of ssh that reaches the hosts from everywhere, by an sshd for each connection."""
        path = self.folder / "ssh_config_direct"
        text = self.ssh_config.read_text(encoding="utf-8")
        for host in HOSTS:
            sshd = shlex.join(self._sshd(host, "-i"))
            text = text.replace(f"Host {host}\n", f"Host {host}\n  ProxyCommand {sshd}\n")
        path.write_text(text, encoding="utf-8")
        return path


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=DEADLINE_S)
