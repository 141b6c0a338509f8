"""Memory and floating-point registers of a guest's programs are as on the host."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from executing import run

pytestmark = pytest.mark.guest

SOURCE = Path(__file__).with_name("memory.c")
READ_MB = "220"
"""Of this memory a program writes one page and reads the others; a guest of 256 MiB has no page for each of them."""


def test_a_program_meets_the_same_memory_as_on_the_host(tmp_path: Path) -> None:
    """Refused accesses have the same signal, code, address and direction, and nothing that was written is lost."""
    program = tmp_path / "memory"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-pthread", "-o", program, SOURCE], check=True)
    host = subprocess.run([program, READ_MB], check=True, capture_output=True, text=True)
    assert host.stdout.count("\n") == 21
    guest = run("--memory", "256MiB", "--", str(program), READ_MB, cwd=tmp_path)
    assert (guest.returncode, guest.stdout, guest.stderr) == (0, host.stdout, "")
