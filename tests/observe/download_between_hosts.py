"""A program for `lines_in_guest.py`: an MPTCP download from h2 to h1, and `plait observe` beside it.

python download_between_hosts.py ARGUMENTS OF PLAIT OBSERVE.. [and ARGUMENTS OF ANOTHER ONE.. ..]

The download runs in the namespaces of the hosts, and not by ssh: who comes by ssh finds no Python there.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

SERVE = """
import socket
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.bind(("0.0.0.0", 5001))
listener.listen()
print("ready", flush=True)
listener.settimeout(30)
end, _ = listener.accept()
while True:
    end.sendall(bytes(1 << 16))
"""
LOAD = """
import socket
end = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
end.connect(("10.1.1.2", 5001))
print("ready", flush=True)
while end.recv(1 << 16):
    pass
"""


def on_host(host: str, program: str) -> subprocess.Popen[str]:
    """Start a program on a host, and wait until it is ready."""
    listed = json.loads(subprocess.run(["ip", "-json", "netns"], capture_output=True, check=True).stdout)
    (netns,) = (row["name"] for row in listed if row["name"].endswith(host))
    words = ["ip", "netns", "exec", netns, sys.executable, "-c", program]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def main() -> int:
    ends = [on_host("h2", SERVE), on_host("h1", LOAD)]
    plait = [sys.executable, "-c", "from plait.cli import main; main()", "observe"]
    observers = [
        subprocess.Popen([*plait, *words])
        for last, words in itertools.groupby(sys.argv[1:], "and".__eq__)
        if not last
    ]
    codes = [observer.wait(600) for observer in observers]
    for end in ends:
        end.kill()
        end.wait(120)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
