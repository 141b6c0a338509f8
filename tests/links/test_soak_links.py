"""Links change, lose their ends and disappear while they carry packets, and the kernel stays clean.

`bench/soak_links.py` is the whole of it, and a kernel of `plait kernel build --debug` looks harder.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "bench" / "soak_links.py"
PROGRAMS = ("ip", "mount", "setarch")

pytestmark = pytest.mark.guest


@pytest.mark.skipif(
    any(shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None for name in PROGRAMS),
    reason="the guest uses this machine's iproute2 and util-linux",
)
def test_the_kernel_complains_of_no_change_beneath_packets(tmp_path: Path) -> None:
    command = [sys.executable, str(SOAK), "--minutes", "0", "--networks", "3", "--changes", "100"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
    counts = {name: int(n) for n, name in re.findall(r"^(\d+) (.*)$", done.stdout, re.MULTILINE)}
    # A network without packets or changes would have nothing to complain of.
    assert counts["set conditions"] >= 10
    assert counts["ends down"] >= 2
    assert counts["replace"] >= 1
    assert all(counts[f"{what} changed"] for what in ("route", "neighbour", "address", "rule")), counts
    assert counts["packets delivered"] >= 1000
    assert counts["packets cut through"] >= 1000
    # With one flow, the timer passes time without the idle loop: it runs less often than packets arrive.
    assert counts["packets delivered, one flow"] >= 5000
    assert counts["runs of the links' timer, one flow"] < 0.9 * counts["packets delivered, one flow"]
