"""A host's endpoints, limits and sysctls after a session equal those before it: 20 of the histories of `make bench`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HISTORIES = 20
PROGRAM = Path(__file__).with_name("settings_histories.py")
NAMESPACES = ["unshare", "--user", "--map-root-user", "--net", "--mount"]


def cannot_make_hosts() -> str | None:
    """Return why this machine has no namespace with MPTCP for everybody; None if it has."""
    try:
        done = subprocess.run(
            [*NAMESPACES, "sh", "-c", "ip mptcp limits && ip link add a type veth peer name b"],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip()


def test_settings_are_left_as_found_wherever_a_process_dies() -> None:
    if reason := cannot_make_hosts():
        pytest.skip(
            f"needs user namespaces, MPTCP and iproute2 here ({reason[:80]}); see docs/limitations.md"
        )
    done = subprocess.run(
        [*NAMESPACES, sys.executable, str(PROGRAM), str(HISTORIES)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["histories"] >= HISTORIES
    assert counts["configured"] > 0
