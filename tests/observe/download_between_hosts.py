"""A program for `lines_in_guest.py`: an MPTCP download from h2 to h1 by ssh, and `plait observe` beside it.

python download_between_hosts.py SSH_CONFIG ARGUMENTS OF PLAIT OBSERVE..
"""

from __future__ import annotations

import shlex
import subprocess
import sys

SERVE = """
import socket, time
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listener.bind(("0.0.0.0", 5001))
listener.listen()
print("ready", flush=True)
listener.settimeout(30)
end, _ = listener.accept()
until = time.monotonic() + 15
try:
    while time.monotonic() < until:
        end.sendall(bytes(1 << 16))
except OSError:
    pass
"""
LOAD = """
import socket
end = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
end.connect(("10.1.1.2", 5001))
print("ready", flush=True)
while end.recv(1 << 16):
    pass
"""


def on_host(config: str, host: str, program: str) -> subprocess.Popen[str]:
    """Start a program on a host, and wait until it is ready."""
    words = ["ssh", "-F", config, host, shlex.join([sys.executable, "-c", program])]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def main() -> int:
    config, *arguments = sys.argv[1:]
    ends = [on_host(config, "h2", SERVE), on_host(config, "h1", LOAD)]
    words = [sys.executable, "-c", "from plait.cli import main; main()", "observe", *arguments]
    code = subprocess.run(words, check=False, timeout=600).returncode
    for end in ends:
        end.wait(120)
    return code


if __name__ == "__main__":
    sys.exit(main())
