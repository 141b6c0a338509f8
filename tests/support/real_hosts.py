"""Hosts that a test makes: network namespaces with an sshd each, and lines between them that tc shapes.

    control (plait)  ==10.99.1.0/24==  h1 (sshd)
                     ==10.99.2.0/24==  h2 (sshd)
    h1  ==10.1.N.0/24==  [bridge in wire]  ==  h2    line N; the ends in wire shape what leaves through them

It needs root: that of this machine, or that of a guest (`plait exec`). All of it ends with the `with` block.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

SSHD = "/usr/sbin/sshd"
HOSTS = ("h1", "h2")
DEADLINE_S = 30.0


@dataclass(frozen=True)
class PlantedLine:
    """What `tc` does in the middle of a line to what goes to h2 and to h1: arguments of qdiscs, the outer one first."""

    name: str
    there: tuple[str, ...] = ()
    back: tuple[str, ...] = ()


@dataclass
class RealHosts:
    """Two hosts, h1 and h2, and the lines between them."""

    folder: Path
    lines: list[PlantedLine]
    prefix: str = field(default_factory=lambda: f"pt{secrets.token_hex(3)}")
    _daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

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
        for host in ("control", "wire", *HOSTS):
            subprocess.run(["ip", "netns", "del", self.netns(host)], check=False, stderr=subprocess.DEVNULL)

    def _make(self) -> None:
        for host in ("control", "wire", *HOSTS):
            ip("netns", "add", self.netns(host))
            ip("-n", self.netns(host), "link", "set", "lo", "up")
        for number, host in enumerate(HOSTS, 1):
            self._wire(
                ("control", f"m{number}", f"10.99.{number}.254/24"), (host, "m0", f"10.99.{number}.1/24")
            )
        for number, line in enumerate(self.lines, 1):
            bridge = f"b{number}"
            ip("-n", self.netns("wire"), "link", "add", bridge, "up", "type", "bridge", "mcast_snooping", "0")
            for host, end, qdiscs in (("h1", 1, line.back), ("h2", 2, line.there)):
                port = f"p{number}{host}"
                self._wire((host, f"l{number}", f"10.1.{number}.{end}/24"), ("wire", port, ""))
                ip("-n", self.netns("wire"), "link", "set", port, "master", bridge)
                self._shape("wire", port, qdiscs)
        self._start_daemons()

    def _wire(self, a: tuple[str, str, str], b: tuple[str, str, str]) -> None:
        (host, device, _), (peer, peer_device, _) = a, b
        ip("-n", self.netns(host), "link", "add", device, "type", "veth", "peer", "name", peer_device,
           "netns", self.netns(peer))  # fmt: skip
        for where, name, prefix in (a, b):
            if prefix:
                ip("-n", self.netns(where), "addr", "add", prefix, "dev", name)
            ip("-n", self.netns(where), "link", "set", name, "up", "gso_max_segs", "1")

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
        for number, host in enumerate(HOSTS, 1):
            config = self.folder / f"sshd-{host}"
            config.write_text(
                f"ListenAddress 10.99.{number}.1\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/authorized\n"
                f"PidFile none\nStrictModes no\nPasswordAuthentication no\nUsePAM no\nPermitRootLogin yes\n"
                f"UseDNS no\nSetEnv TMPDIR={self.tmp(host)}\n",
                encoding="utf-8",
            )
            self.tmp(host).mkdir()
            log = (self.folder / f"sshd-{host}.log").open("wb")
            line = ["ip", "netns", "exec", self.netns(host), SSHD, "-D", "-e", "-f", str(config)]
            self._daemons.append(subprocess.Popen(line, stderr=log))
        self.ssh_config.write_text(
            "".join(f"Host {host}\n  HostName 10.99.{n}.1\n" for n, host in enumerate(HOSTS, 1))
            + f"Host *\n  User {pwd.getpwuid(os.getuid()).pw_name}\n  IdentityFile {keys}/user\n"
            f"  IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile {self.folder}/known\n",
            encoding="utf-8",
        )
        deadline = time.monotonic() + DEADLINE_S
        for host in HOSTS:
            while "10.99" not in self.run(host, "ss", "-Hltn", "sport", "=", ":22"):
                assert time.monotonic() < deadline, (self.folder / f"sshd-{host}.log").read_text()

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
        for end, host in enumerate(HOSTS, 1):
            text += f"  {host}:\n    ssh: {host}\n    addresses:\n"
            for number, name in enumerate(names or [line.name for line in self.lines], 1):
                text += f"      {name}: 10.1.{number}.{end}\n"
        path.write_text(text, encoding="utf-8")
        return path

    def direct_ssh_config(self) -> Path:
        """Write a configuration of ssh that reaches the hosts from everywhere, by an sshd for each connection."""
        path = self.folder / "ssh_config_direct"
        text = self.ssh_config.read_text(encoding="utf-8")
        for host in HOSTS:
            sshd = f"ip netns exec {self.netns(host)} {SSHD} -i -f {self.folder}/sshd-{host}"
            text = text.replace(f"Host {host}\n", f"Host {host}\n  ProxyCommand {sshd}\n")
        path.write_text(text, encoding="utf-8")
        return path


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=DEADLINE_S)
