"""Run an exported plan on this host's kernel and print the resulting state.

Called by test_shell_host.py, as root (for an ordinary user: of a user namespace), in mount, network and process
namespaces of its own: `shell_host.py PLAN.json SCRIPT.sh`; prints JSON.

What the kernel lacks is left out of the script (netem) or done in another way (u32 for matchall), and told.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
MPTCP = 262
DEADLINE_S = 300.0


def output(command: list[str]) -> str:
    """Return what a command prints; raise CalledProcessError when it fails."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def read_json(*command: str) -> Any:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout or "[]")


def adapted(script: str) -> tuple[str, list[str]]:
    """Return the script as this kernel can run it, and what it lacks for the rest."""
    lacking = []
    subprocess.run(["ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"], check=True)
    subprocess.run(["tc", "qdisc", "add", "dev", "probe0", "clsact"], check=True)
    matchall = (
        "tc",
        "filter",
        "add",
        "dev",
        "probe0",
        "ingress",
        "matchall",
        "action",
        "mirred",
        "egress",
        "redirect",
    )
    if not succeeds(*matchall, "dev", "probe1"):
        lacking.append("matchall")
        script = script.replace("gress matchall", "gress protocol all u32 match u32 0 0")
    if not succeeds("tc", "qdisc", "add", "dev", "probe0", "root", "netem", "delay", "1ms"):
        lacking.append("netem")
        script = re.sub(r".* netem .*\n", "", script).replace("parent 1:1 handle 2:", "root handle 2:")
    if not succeeds("sh", "-c", "command -v ethtool"):
        lacking.append("ethtool")
        script = re.sub(r".* ethtool -K .*\n", "", script).replace("ip tc ethtool", "ip tc")
    return script, lacking


def state(plan: dict[str, Any]) -> dict[str, Any]:
    """Return what the kernel says of every namespace of the plan."""
    out = {}
    for space in plan["network"]["namespaces"]:
        name = space["name"]
        ip = ["ip", "-n", name, "-j"]
        inside = ["ip", "netns", "exec", name]
        out[name] = {
            "links": read_json(*ip, "-d", "address", "show"),
            "routes": [r for family in ("-4", "-6") for r in read_json(*ip, family, "route", "show", "table", "all")],
            "rules": [r for family in ("-4", "-6") for r in read_json(*ip, family, "rule", "show")],
            "qdiscs": read_json("tc", "-n", name, "-j", "qdisc", "show"),
            "endpoints": output(["ip", "-n", name, "mptcp", "endpoint", "show"]),
            "limits": output(["ip", "-n", name, "mptcp", "limits"]),
            "sysctls": {
                path: output([*inside, "cat", f"/proc/sys/{path}"]).split()
                for path, _ in space["sysctls"]
            },
        }  # fmt: skip
    return out


def enter(netns: str) -> None:
    """Move the calling thread into a namespace."""
    descriptor = os.open(f"/run/netns/{netns}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), netns)


def joined(flow: dict[str, Any]) -> list[list[str]]:
    """Return the pairs of addresses of the subflows that come up, once they are as many as planned and stay so."""
    client, server = flow["client"], flow["server"]
    family = socket.AF_INET6 if ":" in server["address"] else socket.AF_INET
    ready = threading.Event()

    def serve() -> None:
        enter(server["netns"])
        listener = socket.socket(family, socket.SOCK_STREAM, MPTCP)
        listener.bind(("", server["port"]))
        listener.listen(1)
        ready.set()
        connection, _ = listener.accept()
        while connection.recv(1 << 20):
            pass

    threading.Thread(target=serve, daemon=True).start()
    ready.wait()
    enter(client["netns"])
    connection = socket.socket(family, socket.SOCK_STREAM, MPTCP)
    connection.bind((client["address"], 0))
    connection.connect((server["address"], server["port"]))
    wanted = {(path["client_address"], path["server_address"]) for path in flow["paths"]}
    pairs: set[tuple[str, str]] = set()
    deadline, same = time.monotonic() + DEADLINE_S, 0
    while time.monotonic() < deadline and same < 10:
        connection.send(b"x" * 5000)
        select.select([], [], [], 0.03)
        shown = output(["ss", "-tnH", "state", "established"])
        pairs = {pair(line) for line in shown.splitlines()}
        same = same + 1 if pairs == wanted else 0
    return sorted(map(list, pairs))


def pair(line: str) -> tuple[str, str]:
    local, remote = (re.sub(r":\d+$", "", word).strip("[]") for word in line.split()[2:4])
    return local, remote


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    Path("/run/netns").mkdir()
    script, lacking = adapted(Path(sys.argv[2]).read_text(encoding="utf-8"))
    runnable = Path("/run/network.sh")
    runnable.write_text(script, encoding="utf-8")
    subprocess.run(["sh", str(runnable)], check=True, stdout=sys.stderr)
    report: dict[str, Any] = {"lacking": lacking, "state": state(plan)}
    report["joined"] = joined(plan["flows"][0]) if plan["flows"][0]["transport"] == "mptcp" else []
    subprocess.run(["sh", str(runnable), "clean"], check=True, stdout=sys.stderr)
    report["left"] = [path.name for path in Path("/run/netns").iterdir()]
    sys.stdout.write(json.dumps(report))
    sys.stdout.flush()
    os._exit(0)  # the server's thread may still wait


if __name__ == "__main__":
    main()
