"""A program for a guest: hosts `near` and `far` with two lines, an MPTCP download, and `plait observe` beside it.

    python observed_in_guest.py FOLDER

Each observation writes FOLDER/NAME: `near` and `far` as root in the two namespaces, `nobody` in `near` as an ordinary
user, `other` with a port that no connection has, and `off` in a namespace without MPTCP (their output is in NAME.log).
FOLDER/codes.json has the exit codes, and FOLDER/twin.yaml is the scenario that `far` wrote.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

PLAIT = [sys.executable, "-c", "from plait.cli import main; main()"]
OPEN = Path("/tmp/observed")  # noqa: S108 - in the memory of the guest
LINES = ((20, 10), (8, 30))
"""Rate in Mbit/s and one-way delay in ms."""
DOWNLOAD = """
import socket, sys, time
if sys.argv[1] == "serve":
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    listener.bind(("0.0.0.0", 5001))
    listener.listen()
    listener.settimeout(30)
    end, _ = listener.accept()
    until = time.monotonic() + 12
    while time.monotonic() < until:
        end.sendall(bytes(1 << 16))
else:
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    end.connect(("10.7.1.2", 5001))
    while end.recv(1 << 16):
        pass
"""


def run(*words: str) -> None:
    subprocess.run(words, check=True, timeout=60)


def build() -> None:
    for name in ("near", "far"):
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", name, "mptcp", "limits", "set", "subflows", "4", "add_addr_accepted", "4")
    run("ip", "netns", "add", "plain")
    run("ip", "netns", "exec", "plain", "sysctl", "-qw", "net.mptcp.enabled=0")
    for number, (rate, delay) in enumerate(LINES, 1):
        ends = (("near", f"near{number}", 1), ("far", f"far{number}", 2))
        (near, a, _), (far, b, _) = ends
        run("ip", "link", "add", a, "netns", near, "type", "veth", "peer", "name", b, "netns", far)
        for name, device, host in ends:
            run("ip", "-n", name, "address", "add", f"10.7.{number}.{host}/24", "dev", device)
            run("ip", "-n", name, "link", "set", device, "up")
            qdisc = f"netem delay {delay}ms rate {rate}mbit limit 60"
            run("tc", "-n", name, "qdisc", "add", "dev", device, "root", *qdisc.split())
    run("ip", "-n", "near", "mptcp", "endpoint", "add", "10.7.2.1", "dev", "near2", "subflow")


def observer(folder: Path, name: str, *options: str, user: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    place = OPEN / name  # folders of the host may be closed to ordinary users
    place.mkdir(parents=True)
    place.chmod(0o777)
    words = [
        *user,
        *PLAIT,
        "observe",
        "--for",
        "6s",
        "--every",
        "500ms",
        *options,
        "--out",
        str(place / "out"),
    ]
    environment = os.environ | {"PLAIT_CACHE": str(place / "cache"), "HOME": str(place)}
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=place)


def main() -> None:
    folder = Path(sys.argv[1])
    build()
    inside = ("ip", "netns", "exec")
    serve = subprocess.Popen([*inside, "far", sys.executable, "-c", DOWNLOAD, "serve"])
    load = subprocess.Popen([*inside, "near", sys.executable, "-c", DOWNLOAD, "load"])
    nobody = (*inside, "near", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    observers = {
        "near": observer(folder, "near", "--netns", "near"),
        "far": observer(folder, "far", "--netns", "far", "--twin", "twin.yaml"),
        "nobody": observer(folder, "nobody", "--port", "5001", user=nobody),
        "other": observer(folder, "other", "--netns", "near", "--port", "9"),
        "off": observer(folder, "off", "--netns", "plain"),
    }
    codes = {name: process.wait(120) for name, process in observers.items()}
    load.wait(60)
    serve.wait(60)
    for name in observers:
        if (OPEN / name / "out").exists():
            shutil.copytree(OPEN / name / "out", folder / name / "out")
    shutil.copy(OPEN / "far" / "twin.yaml", folder)
    (folder / "codes.json").write_text(json.dumps(codes), encoding="utf-8")


main()
