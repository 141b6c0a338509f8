"""What a test runs at a home in a guest: the commands of `two-subflows`, an MPTCP connection, and the commands' undo.

python second_subflows.py SSH_CONFIG
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "observe"))
from download_between_hosts import LOAD, SERVE, on_host

from plait.advice.candidates import candidates
from plait.advice.changes.model import HostCommand
from plait.advice.situation import Situation
from plait.scenario import parse

LINES = """
title: A home with two lines
network:
  hosts: [home, vps]
  links: {home-vps: {label: "cable (w1)", rate: 9mbit}, home-vps#2: {label: "lte (w2)", rate: 9mbit}}
traffic: [{bulk: {from: vps, to: home, reverse: true, duration: 10s}}]
"""
SERVER = "198.51.100.2"


def run(item: HostCommand, command: str, config: str) -> None:
    """Run a command of a change on its host, with the only address of the server. Both hosts have one /run here."""
    place = ["sh", "-c"] if item.host == "home" else ["ssh", "-F", config, "vps"]
    subprocess.run(
        [*place, command.replace("ADDRESS1", SERVER).replace("/run/", f"/run/{item.host}-")],
        check=True,
        timeout=300,
    )


def state() -> list[str]:
    return [subprocess.run(["ip", "mptcp", what, "show"], capture_output=True, text=True, check=True).stdout
            for what in ("endpoint", "limits")]  # fmt: skip


def subflows() -> Counter[str]:
    """Return how many subflows leave from each address to each port."""
    words = ["ss", "-Htn", "state", "established", "( dport = 5001 or dport = 5011 )"]
    rows = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    ends = (row.split()[2:4] for row in rows)
    return Counter(f"{re.split('[%:]', here)[0]} {there.rpartition(':')[2]}" for here, there in ends)


def main() -> None:
    config, before = sys.argv[1], state()
    (change,) = (
        item for item in candidates(Situation.of(parse(LINES, "lines", ()))) if item.name == "two-subflows"
    )
    commands = [item for item in change.commands if "ADDRESS2" not in item.command]
    for item in commands:
        run(item, item.command, config)
    ends = [on_host("vps", SERVE), on_host("home", LOAD.replace("10.1.1.2", SERVER))]
    deadline, counted = time.monotonic() + 300, subflows()
    while counted.total() < 4 and time.monotonic() < deadline:
        counted = subflows()
    for end in ends:
        end.kill()
        end.wait(120)
    for item in reversed(commands):
        run(item, item.undo, config)
    json.dump({"subflows": counted, "before": before, "after": state()}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
