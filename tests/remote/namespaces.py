"""Programs as root of network namespaces of their own, which stand for hosts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NAMESPACES = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
TRIAL = "ip mptcp limits && ip link add name l1 type veth peer name l2"


def cannot_make_hosts() -> str | None:
    """Return why this machine has no namespace with MPTCP for everybody; None if it has."""
    try:
        done = subprocess.run(
            [*NAMESPACES, "sh", "-c", TRIAL], capture_output=True, text=True, timeout=300, check=False
        )
    except OSError as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.strip()


def in_namespaces(*arguments: str) -> str:
    """Run Python as root of new namespaces, and return what it printed; skip where there are none."""
    if reason := cannot_make_hosts():
        pytest.skip(
            f"needs user namespaces, MPTCP and iproute2 here ({reason[:80]}); see docs/limitations.md"
        )
    done = subprocess.run(
        [*NAMESPACES, sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},  # an ordinary user's has no `tc`
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
