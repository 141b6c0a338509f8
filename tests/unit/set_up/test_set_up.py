"""Set-up asks a person before it uses sudo, names the command where it cannot, and does nothing a second time."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "tools" / "system-packages"
TOOLS = ("bash", "sort", "gcc", "make", "bison", "bc", "xz", "curl", "setpriv", "patch", "ip", "env")
SUDO = '#!/bin/sh\n[ "$1" = -n ] && exit 1\necho "$@" >> "$LOG"\n'


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a user on a machine without flex whose sudo wants a password."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in TOOLS:
        program = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
        if program is None:
            pytest.skip(f"this machine has no {name}")
        (folder / name).symlink_to(program)
    python = "#!/bin/sh\nexit 0\n"
    programs = {"id": "#!/bin/sh\necho 1000\n", "sudo": SUDO, "apt-get": python, "python3": python}
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": str(folder), "LOG": str(tmp_path / "log"), "PYTHON": "python3"}


def at_a_terminal(machine: dict[str, str], answer: bytes) -> tuple[int, list[str]]:
    """Return the exit code of set-up and what it ran with sudo, after a person has typed `answer`."""
    master, slave = pty.openpty()
    try:
        os.write(master, answer)
        done = subprocess.run(
            ["bash", SCRIPT], env=machine, stdin=slave, stdout=slave, stderr=slave, timeout=300, check=False
        )
    finally:
        os.close(slave)
        os.close(master)
    log = Path(machine["LOG"])
    return done.returncode, log.read_text().splitlines() if log.exists() else []


def test_a_person_who_says_no_keeps_the_system_as_it_is(machine: dict[str, str]) -> None:
    assert at_a_terminal(machine, b"n\n") == (3, [])
    assert at_a_terminal(machine, b"\n") == (3, [])


def test_a_person_who_says_yes_gets_only_what_is_missing(machine: dict[str, str]) -> None:
    code, commands = at_a_terminal(machine, b"y\n")
    assert code == 0
    assert commands == ["apt-get update -q", "apt-get install -y --no-install-recommends flex"]


def test_without_a_terminal_set_up_names_the_command(machine: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", SCRIPT], env=machine, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "sudo apt-get install -y --no-install-recommends flex" in done.stderr


def test_where_everything_is_present_set_up_runs_nothing(machine: dict[str, str]) -> None:
    folder = Path(machine["PATH"])
    (folder / "flex").symlink_to(folder / "env")
    assert at_a_terminal(machine, b"y\n") == (0, [])
