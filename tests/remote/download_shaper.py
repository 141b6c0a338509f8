"""`apply` and `undo` of an endpoint by its interface and of a shaper of what an interface receives, in a guest.

    python download_shaper.py

The agent also dies at system calls of both, and a user adds a filter beside plait's. The program prints a line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from plait.binaries import AGENT
from plait.engine.remote.lasting import LastingEndpoint, LastingQdisc, RemoteHost, apply, undo
from plait.errors import MachineError
from settings_histories import die_at_call, run

HERE = RemoteHost.named("localhost")
SHAPER = LastingQdisc("l1", "cake", ("bandwidth", "9Mbit", "ingress"), "plait-ifb1")
ENDPOINT = LastingEndpoint(None, ("subflow",), "l1", 4)
DEATHS = range(20, 420, 40)


def snapshot() -> list[str]:
    """Return the disciplines, filters, interfaces and endpoints."""
    words = (
        ("tc", "qdisc", "show"),
        ("tc", "filter", "show", "dev", "l1", "ingress"),
        ("ip", "-brief", "link"),
        ("ip", "mptcp", "endpoint", "show"),
    )
    return [subprocess.run(command, capture_output=True, text=True, check=False).stdout for command in words]


def main() -> None:
    run("mount", "-t", "tmpfs", "none", "/run")
    run("ip", "link", "add", "l1", "type", "veth", "peer", "name", "l2")
    for link in ("l1", "l2", "lo"):
        run("ip", "link", "set", link, "up")
    run("ip", "address", "add", "10.1.1.1/24", "dev", "l1")
    before = snapshot()
    applied = apply(HERE, [ENDPOINT, SHAPER]).changed
    made = snapshot()
    again = apply(HERE, [ENDPOINT, SHAPER]).changed
    undone = undo(HERE).changed
    restored = snapshot() == before

    wanted = {"sysctls": {}, "subflows": None, "add_addr_accepted": None, "endpoints": [], "qdiscs": []}
    shaper = {"device": "l1", "through": "plait-ifb1", "kind": "cake", "options": ["bandwidth", "9Mbit"]}
    died = 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "wanted.json").write_text(json.dumps({**wanted, "ingress": [shaper]}), encoding="utf-8")
        for call in DEATHS:
            for verb in ("apply", "undo"):
                died += die_at_call(call, str(AGENT), "--settings", verb, folder) == -9
            undo(HERE)
            assert snapshot() == before, (call, snapshot())

    apply(HERE, [SHAPER])
    run("tc", "filter", "add", "dev", "l1", "ingress", "pref", "7", "matchall", "action", "pass")
    undo(HERE)
    users = snapshot()
    try:
        apply(HERE, [SHAPER])
    except MachineError as error:
        refused = str(error)
    result = {
        "applied": applied,
        "made": made,
        "again": again,
        "undone": undone,
        "restored": restored,
        "died": died,
        "users": users,
        "refused": refused,
    }
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
