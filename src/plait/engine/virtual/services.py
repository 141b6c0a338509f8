"""Services for programs in a guest: a running Open vSwitch, and variables for Mininet's iperf.

The steps that start Open vSwitch follow its manual. Its database and socket are in the guest, not on the host.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from plait.errors import MachineError, RequestError

_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
_RUN = "/run/openvswitch"
COMMANDS = "/run/plait/bin"
"""The last folder of the guest's PATH, with other names of installed programs."""
_DATABASE = "/var/lib/plait-ovs.db"
_OPEN_VSWITCH = (
    ("mkdir", "-p", _RUN, COMMANDS),
    # Mininet's `Controller` runs a program of this name; an installed one comes first in PATH.
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
    # ovs-vswitchd does not count the processors in the first ten seconds of the kernel's clock, and has no thread
    # to forward packets until then.
    ("sleep", "11"),
    ("ovs-vswitchd", f"unix:{_RUN}/db.sock", "--pidfile", "--detach", "--no-chdir", "-vfile:off"),
)
_SERVICES = {"ovs": _OPEN_VSWITCH}
_READ_BYTES = 1 << 20
_CALLS_IPERF = re.compile(rb"\.iperf\s*\(")


def services(
    requested: Sequence[str] | None, program: Sequence[str], path: str | None
) -> list[tuple[str, Sequence[str]]]:
    """Return the steps that start the requested services; if `requested` is None, those that `program` needs.

    `path` is the program's PATH. Raises RequestError for an unknown service, MachineError for one that is missing.
    """
    for name in requested or ():
        if name not in _SERVICES:
            raise RequestError(
                f"--with {name}: unknown service; write one of: {', '.join(sorted(_SERVICES))}"
            )
    installed = shutil.which("ovs-vswitchd", path=path) is not None
    if requested and not installed:
        raise MachineError(
            "--with ovs: Open vSwitch is not installed; install it (`apt-get install openvswitch-switch`)"
        )
    names = requested if requested is not None else ["ovs"] * (installed and uses_mininet(program, path))
    return [(name, step) for name in names for step in _SERVICES[name]]


def iperf_settings(program: Sequence[str], path: str | None = None) -> dict[str, str]:
    """Return the variables that make iperf 2.1 work with Mininet's own `iperf()`, if `program` calls it.

    Mininet opens a connection to check that the server listens, and waits for a line about it. iperf 2.0 prints this
    line; 2.1 prints it only in its compatibility mode. iperf must also not add up the two connections.
    """
    script = _mininet_script(program, path) or b""
    calls = _CALLS_IPERF.search(script) is not None
    return {"IPERF_COMPAT": "1", "IPERF_SINGLECLIENT": "1"} if calls else {}


def uses_mininet(program: Sequence[str], path: str | None = None) -> bool:
    """Return whether one of the first words of `program` is a script that mentions Mininet, such as `mn`."""
    return _mininet_script(program, path) is not None


def _mininet_script(program: Sequence[str], path: str | None) -> bytes | None:
    for word in program[:4]:
        script_path = Path(word) if "/" in word or word.endswith(".py") else None
        if script_path is None and word == program[0]:
            installed = shutil.which(word, path=path)
            script_path = Path(installed) if installed else None
        script = _text(script_path) if script_path is not None else None
        if script is not None and b"mininet" in script:
            return script
    return None


def _text(path: Path) -> bytes | None:
    """Return the start of a text file; None if a word of the program names none, such as the code after `-c`."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(_READ_BYTES)
    except (OSError, ValueError):
        return None
    return None if b"\0" in text[:1024] else text
