"""The commands of `two-subflows` give a connection two subflows on each line, and their undo takes them back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guest_runs import NEEDS_SSHD, in_guest, netem, tbf

pytestmark = [pytest.mark.guest, NEEDS_SSHD]


def test_each_line_of_a_home_has_two_subflows_until_the_undo(tmp_path: Path) -> None:
    lines = [
        ["cable", [netem(7), tbf(3)], [netem(7), tbf(9)], True],
        ["lte", [netem(9), tbf(3)], [netem(9), tbf(9)], True],
    ]
    program = str(Path(__file__).with_name("second_subflows.py"))
    endpoint = ["home", "ip", "mptcp", "endpoint", "add", "192.168.2.2", "dev", "w2", "subflow"]
    request = {"lines": lines, "home": True, "before": [endpoint]}
    output = in_guest(tmp_path, {**request, "program": program, "command": ["{ssh_config}"]})
    printed = json.loads(next(line for line in output.splitlines() if line.startswith('{"subflows"')))
    assert printed["subflows"] == {f"192.168.{line}.2 {port}": 1 for line in (1, 2) for port in (5001, 5011)}
    assert printed["after"] == printed["before"]
