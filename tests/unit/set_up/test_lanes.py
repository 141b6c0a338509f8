"""Each pass of `make test` has its tests: `-m users` those that root repeats, and the cheap ones come last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def collected(*words: str) -> list[str]:
    """Return the names of the files with the tests that pytest would run, in order."""
    asked = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n0", *words]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300)
    tests = [line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line]
    files = [line.partition(": ")[0] for line in done.stdout.splitlines() if ".py: " in line]
    return list(dict.fromkeys([*tests, *files]))


def test_root_repeats_what_it_does_in_another_way() -> None:
    files = collected(
        "-m", "users", "tests/unit/plan/shell", "tests/security/test_fuzz.py", "tests/unit/test_units.py"
    )
    assert "tests/unit/plan/shell/test_shell_host.py" in files
    assert "tests/security/test_fuzz.py" not in files
    assert "tests/unit/test_units.py" not in files


def test_cheap_files_come_last() -> None:
    cheap, slow, other = (
        "tests/unit/test_units.py",
        "tests/unit/test_release.py",
        "tests/agent/test_agent_process.py",
    )
    assert collected(cheap, slow, other) == [other, slow, cheap]
