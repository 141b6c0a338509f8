"""`plait shell` runs a network in real time and opens several prompts in its nodes at once."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from terminal import LIMIT_S, PLAIT, SOURCE, Terminal

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

NETWORK = """
title: A network to talk to
network: {hosts: [h1, h2], switches: [s1], links: {h1-s1: {rate: 10mbit, delay: 3ms}, s1-h2: {delay: 2ms}}}
traffic: [{bulk: {from: h1, to: h2, duration: 1s}}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "net.yaml"
    path.write_text(NETWORK + f"seed: {abs(hash(tmp_path)) % 10**6}\n")  # so that no test joins another's
    return path


def test_commands_of_mininets_prompt_are_understood(scenario: Path) -> None:
    commands = [
        "nodes",
        "links",
        "net",
        "dump",
        "h1 ping -c1 -W5 h2",
        "pingall",
        "nonsense",
        "link h1 s1 down",
    ]
    commands += ["h1 ip -o link show dev h1-eth0", "exit"]
    done = subprocess.run(
        [*PLAIT, "shell", str(scenario)],
        input="\n".join(commands), capture_output=True, text=True, timeout=LIMIT_S, check=False,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "h1 h2 s1"
    assert "h1-h1-eth0<->s1-s1-eth0 (10mbit 3ms)" in lines
    assert "h1 h1-eth0:s1-s1-eth0" in lines
    assert "<host h1: h1-eth0:10.0.0.1>" in lines
    match = re.search(r"1 packets transmitted, 1 received.*\n.*= ([\d.]+)/", done.stdout)
    assert match
    assert float(match[1]) >= 10  # the way there and back takes 2 * (3 + 2) ms
    assert "0% lost (2/2 answered)" in lines
    assert "there is no command or node nonsense; list them with `help` and `nodes`" in lines
    assert "state DOWN" in lines[-1]


def test_a_second_prompt_joins_the_network_and_both_are_terminals_with_completion(scenario: Path) -> None:
    first = Terminal("shell", str(scenario))
    first.until("plait> ")
    first.type("h1 tty\n")
    assert "/dev/pts/" in first.until("plait> ")
    second = Terminal("shell", str(scenario), "h2")
    second.until("joined the running network")
    second.type("ip -o -4 addr show dev h2-eth0 | tr -s ' ' | cut -d' ' -f4; echo do''ne\n")
    assert "10.0.0.2/24" in second.until("done")
    first.type("no\t\n")
    assert "h1 h2 s1" in first.until("plait> ")
    first.type("h1 sleep 1000\n")
    first.until("sleep 1000")
    first.type("\x03")
    first.until("plait> ")
    second.type("exit\n")
    assert second.end() == 0
    first.type("exit\n")
    assert first.end() == 0
