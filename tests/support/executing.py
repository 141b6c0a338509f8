"""Helpers call `plait exec` as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import plait

PLAIT = [sys.executable, "-c", "from plait.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(plait.__file__).parents[1])}


def run(*words: str, timeout_s: float = 100, **more: object) -> subprocess.CompletedProcess[str]:
    given = {"stdin": subprocess.DEVNULL} if "input" not in more else {}
    how = {"capture_output": True, "text": True, "timeout": timeout_s, "env": ENVIRONMENT, **given, **more}
    return subprocess.run([*PLAIT, "exec", *words], check=False, **how)


def started(*words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*PLAIT, "exec", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )


def descendants(pid: int) -> list[int]:
    """Return the processes that come from `pid`, without those that end meanwhile."""
    children = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += [int(child) for child in (task / "children").read_text().split()]
    return children + [further for child in children for further in descendants(child)]
