"""Connections under every scheduler and congestion control open and close in every order, and the kernel stays clean.

`bench/soak.py` is the whole of it, and a kernel of `plait kernel build --debug` looks harder.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[3] / "bench" / "soak.py"
PROGRAMS = ("ip", "tc", "mount", "setarch")

pytestmark = pytest.mark.guest


@pytest.mark.skipif(
    any(shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None for name in PROGRAMS),
    reason="the guest uses this machine's iproute2 and util-linux",
)
def test_the_kernel_complains_of_nothing_and_no_socket_outlives_its_connection(tmp_path: Path) -> None:
    command = [sys.executable, str(SOAK), "--connections", "120", "--rounds", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    # What would leave nothing to find must not pass for finding nothing.
    for counter, least in (
        ("connections", 100),
        ("subflows destroyed", 20),
        ("orphans", 10),
        ("MPJoinAckRx", 50),
    ):
        total = sum(int(count) for count in re.findall(rf"(\d+) {counter}\b", done.stdout))
        assert total >= least, (counter, done.stdout)
