"""Measure what it costs to observe many connections: the processor time of the agent of `plait observe`.

    sudo python bench/observe.py [CONNECTIONS] [SECONDS]

Opens MPTCP connections between two network namespaces that it makes, each of which sends a kilobyte a second, and
observes one end once a second. Prints the part of a processor that the agent used between its 3rd and its last second.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ENDS = """
import socket, sys, time
side, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
def stream():
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
if side == "serve":
    listener = stream()
    listener.bind(("10.7.1.2", 5001))
    listener.listen(1024)
    listener.settimeout(60)
    print("ready", flush=True)
    ends = [listener.accept()[0] for _ in range(count)]
else:
    ends = [stream() for _ in range(count)]
    for end in ends:
        end.settimeout(60)
        end.connect(("10.7.1.2", 5001))
    print("ready", flush=True)
until = time.monotonic() + seconds
while time.monotonic() < until:
    for end in ends:
        if side == "load":
            end.sendall(bytes(1000))
        else:
            try:
                end.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                pass
    time.sleep(1)
"""
SETTLED_S = 3
ATTEMPTS = 600


def main() -> None:
    """Measure, and print the result."""
    count, seconds = (int(word) for word in (sys.argv[1:] + ["1000", "20"][len(sys.argv) - 1 :]))
    names = [f"plait-bench-{side}{os.getpid()}" for side in ("near", "far")]
    made: list[str] = []
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for name in names:
            ip("netns", "add", name)
            made.append(name)
        connect(*names)
        for name, side in zip(reversed(names), ("serve", "load"), strict=True):
            words = ["ip", "netns", "exec", name, sys.executable, "-c", ENDS]
            processes.append(
                subprocess.Popen([*words, side, str(count), str(seconds + 30)], stdout=subprocess.PIPE)
            )
            output = processes[-1].stdout
            assert output is not None
            assert output.readline() == b"ready\n", f"{side} could not open {count} connections"
        print(f"{count} connections at 1 Hz: {100 * cost(names[0], seconds):.2f} % of a processor")
    finally:
        for process in processes:
            process.kill()
            process.wait(10)
        for name in made:
            ip("netns", "del", name)


def ip(*words: str) -> None:
    """Run ip (subprocess.CalledProcessError)."""
    subprocess.run(["ip", *words], check=True, timeout=30)


def connect(near: str, far: str) -> None:
    """Give two network namespaces a line."""
    ip("link", "add", "line", "netns", near, "type", "veth", "peer", "name", "line", "netns", far)
    for host, name in enumerate((near, far), 1):
        ip("-n", name, "address", "add", f"10.7.1.{host}/24", "dev", "line")
        ip("-n", name, "link", "set", "line", "up")


def cost(namespace: str, seconds: int) -> float:
    """Observe for some seconds, and return the processor time of the agent relative to the time that passed."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["observe", "--netns", namespace, "--for", f"{seconds}s", "--out", f"{folder}/out"]
        plait = subprocess.Popen([sys.executable, "-c", "from plait.cli import main; main()", *words])
        try:
            agent = agent_of(plait.pid)
            time.sleep(SETTLED_S)
            begin_s, begin = time.monotonic(), processor_s(agent)
            time.sleep(seconds - SETTLED_S - 2)
            used = (processor_s(agent) - begin) / (time.monotonic() - begin_s)
            assert plait.wait(120) == 0
        finally:
            plait.kill()
        return used


def agent_of(parent: int) -> Path:
    """Return the folder in /proc of the agent that a process started (RuntimeError)."""
    for _ in range(ATTEMPTS):
        children = Path(f"/proc/{parent}/task").glob("*/children")
        for child in " ".join(file.read_text() for file in children).split():
            if "agent" in Path(f"/proc/{child}/comm").read_text():
                return Path(f"/proc/{child}")
        time.sleep(0.05)
    raise RuntimeError("plait observe started no agent within 30 s")


def processor_s(process: Path) -> float:
    """Return the time that a process has used, in user and kernel mode."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
