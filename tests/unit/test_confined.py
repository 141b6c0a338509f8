"""A confined process can change its own folder and nothing else, as root and as anybody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from plait.run import confined

NOBODY = 65534
TRIES = """
touch {own}/made; touch made-here
touch {other}/made; touch /dev/shm/plait-probe; chmod 700 {other}; touch -d 2001-01-01 {other}
ln {own}/made {other}/link
mount -o remount,bind,rw /tmp; touch {other}/made-later; mv {own}/made {other}/moved
grep -c : /proc/net/dev
"""


@pytest.mark.parametrize("user", [os.getuid(), NOBODY])
def test_only_its_own_folder_can_be_changed_and_there_is_no_network(user: int) -> None:
    if user != os.getuid() and os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    base = Path(tempfile.mkdtemp(prefix="plait-confined-"))  # unlike pytest's, it can be opened to others
    try:
        own, other = base / "own", base / "other"
        for folder in (base, own, other):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)
            os.chown(folder, user, -1)
        script = Path(shutil.copy(confined.__file__, base))
        before = other.stat()
        tries = TRIES.format(own=own, other=other)
        done = subprocess.run(
            ["/usr/bin/python3", "-I", "-S", str(script), str(own), "--", "/bin/sh", "-c", tries],
            cwd=own, user=user, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        if done.returncode == 3:
            pytest.skip(f"NOT TESTED: this machine does not allow it: {done.stderr}")
        assert sorted(path.name for path in own.iterdir()) == ["made", "made-here"]
        assert list(other.iterdir()) == []
        assert (other.stat().st_mode, other.stat().st_mtime) == (before.st_mode, before.st_mtime)
        assert done.stdout == "1\n"  # the loopback
    finally:
        shutil.rmtree(base)
