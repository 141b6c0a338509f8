"""On a host that lacks a sandbox layer plait names it, and runs untrusted code only with --unconfined."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.guest, pytest.mark.users]

PLAIT = Path(sys.executable).parent / "plait"
WITHOUT = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run plait where no user namespace can be made."""
    place = ["unshare", "--user", "--map-root-user", "sh", "-c", WITHOUT, "sh"]
    done = subprocess.run(
        [*place, str(PLAIT), *words], capture_output=True, text=True, check=False, timeout=120
    )
    if "unshare failed" in done.stderr or "cannot create" in done.stderr:
        pytest.skip(f"NOT TESTED: this machine has no user namespace to take away: {done.stderr}")
    return done


def test_programs_run_without_a_layer_only_when_that_is_asked_for() -> None:
    refused = run("exec", "--", "echo", "in")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "does not offer the layer user namespace" in refused.stderr
    assert "--unconfined" in refused.stderr
    asked = run("exec", "--unconfined", "--", "echo", "in")
    assert (asked.returncode, asked.stdout) == (0, "in\n")
    assert "lacks layers of the sandbox. user namespace: root in the guest's process" in asked.stderr


def test_a_trial_without_code_of_others_runs_and_says_what_is_missing(tmp_path: Path) -> None:
    words = ("--repeat", "1", "--fresh", "--out", str(tmp_path / "out"))
    done = run("run", "two-paths", *words)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("lacks layers of the sandbox") == 1


def test_the_doctor_lists_every_layer_and_what_its_absence_means() -> None:
    lines = run("doctor").stdout.splitlines()
    assert lines[0].startswith("sandbox    11 of 12 layers of the sandbox are present")
    states = [line.split("  ")[-1].strip() for line in lines[1:13]]
    assert sum(state == "present" for state in states) == 11
    assert any("MISSING (creating a user namespace" in line for line in lines)
