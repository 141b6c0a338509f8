"""plait shapes what an interface receives and adds an endpoint by its interface, and takes back only its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.guest
PROGRAM = Path(__file__).with_name("download_shaper.py")


def in_exec(*words: str) -> dict[str, Any]:
    """Run a program of Python as root of a guest, and return the JSON of its last line."""
    plait = [sys.executable, "-c", "from plait.cli import main; main()", "exec"]
    command = [*plait, "--env", "PYTHONDONTWRITEBYTECODE=1", "--", sys.executable, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def test_histories_with_shapers_of_downloads_are_left_as_found() -> None:
    """The kernel of a guest has `ifb` and `matchall`, which the machine of the other histories may lack."""
    counts = in_exec(str(PROGRAM.with_name("lasting_histories.py")), "12")
    assert counts["histories"] >= 12
    assert counts["shapers of what arrives"] > 0


def test_a_shaper_of_a_download_is_undone_wherever_the_agent_dies_and_leaves_filters_of_others() -> None:
    result = in_exec(str(PROGRAM))
    assert result["applied"] == [
        "MPTCP endpoint 200 (10.1.1.1): added",
        "shaper of what l1 receives: cake bandwidth 9Mbit ingress",
    ]
    disciplines, filters, links, endpoints = result["made"]
    assert "cake 7a17: dev plait-ifb1 root" in disciplines
    assert "Redirect to device plait-ifb1" in filters
    assert "plait-ifb1" in links
    assert "10.1.1.1 id 200 subflow dev l1" in endpoints
    assert result["again"] == []
    assert result["undone"][-1] == "shaper of what l1 receives: removed"
    assert result["restored"]
    assert result["died"] > 0
    disciplines, filters, links, _ = result["users"]
    assert "ingress" in disciplines
    assert "pref 7 matchall" in filters
    assert "pref 31255" not in filters
    assert "plait-ifb1" not in links
    assert "l1 has a queueing discipline for what it receives" in result["refused"]
