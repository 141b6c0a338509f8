"""What a program needs beside it: Open vSwitch, started before as its manual says, and variables for Mininet's iperf.

The database and its socket lie in the guest's own /run, so that whatever runs on the host stays untouched.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from plait.engine.uml.session import Service
from plait.errors import MachineError, RequestError

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
_RUN = "/run/openvswitch"
COMMANDS = "/run/plait/bin"
"""The last folder in which programs are looked for: other names of what is installed."""
_DATABASE = "/var/lib/plait-ovs.db"
_OPEN_VSWITCH = (
    ("mkdir", "-p", _RUN, COMMANDS),
    # Mininet's `Controller` asks for a program of this name; what is installed under it comes first.
    ("ln", "-s", "/usr/bin/ovs-testcontroller", f"{COMMANDS}/controller"),
    ("ovsdb-tool", "create", _DATABASE, _SCHEMA),
    (
        "ovsdb-server",
        _DATABASE,
        f"--remote=punix:{_RUN}/db.sock",
        "--pidfile",
        "--detach",
        "--no-chdir",
        "-vfile:off",
    ),
    ("ovs-vsctl", "--no-wait", "init"),
    # ovs-vswitchd does not count the processors in the first ten seconds of the kernel's clock, and has nobody to
    # forward with until it has.
    ("sleep", "11"),
    ("ovs-vswitchd", f"unix:{_RUN}/db.sock", "--pidfile", "--detach", "--no-chdir", "-vfile:off"),
)
_SERVICES = {"ovs": _OPEN_VSWITCH}
_READ_BYTES = 1 << 20
_CALLS_IPERF = re.compile(rb"\.iperf\s*\(")


def services(
    requested: Sequence[str] | None, program: Sequence[str], environment: Sequence[tuple[str, str]]
) -> list[Service]:
    """Returns the steps that start what is asked for; without any wish, what `program` will need.

    Raises RequestError when there is no such service, MachineError when it is not installed.
    """
    for name in requested or ():
        if name not in _SERVICES:
            raise RequestError(
                f"--with {name}: there is no such service; there is: {', '.join(sorted(_SERVICES))}"
            )
    path = dict(environment).get("PATH")
    installed = shutil.which("ovs-vswitchd", path=path) is not None
    if requested and not installed:
        raise MachineError("--with ovs: Open vSwitch is not installed (`apt-get install openvswitch-switch`)")
    names = requested if requested is not None else ["ovs"] * (installed and uses_mininet(program, path))
    return [Service(name, step, environment) for name in names for step in _SERVICES[name]]


def iperf_settings(program: Sequence[str], path: str | None = None) -> dict[str, str]:
    """Returns the variables with which Mininet's own `iperf()` understands iperf 2.1, where `program` calls it.

    Mininet waits for a line on the connection by which it tries whether the server listens. iperf 2.0 printed one, 2.1
    does so only in its mode for older clients; and it must not add up the two connections.
    """
    script = _mininet_script(program, path) or b""
    calls = _CALLS_IPERF.search(script) is not None
    return {"IPERF_COMPAT": "1", "IPERF_SINGLECLIENT": "1"} if calls else {}


def uses_mininet(program: Sequence[str], path: str | None = None) -> bool:
    """Whether one of the first words of `program` is `mn`, or a script that speaks of Mininet: it may want a switch."""
    return _mininet_script(program, path) is not None


def _mininet_script(program: Sequence[str], path: str | None) -> bytes | None:
    for word in program[:4]:
        path_of_word = Path(word) if "/" in word or word.endswith(".py") else None
        if path_of_word is None and word == program[0]:
            which = shutil.which(word, path=path)
            path_of_word = Path(which) if which else None
        if path_of_word is not None and path_of_word.is_file() and _is_text(path_of_word):
            with path_of_word.open("rb") as file:
                script = file.read(_READ_BYTES)
            if b"mininet" in script:
                return script
    return None


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\0" not in file.read(1024)
