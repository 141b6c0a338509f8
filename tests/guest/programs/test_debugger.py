"""`plait exec --gdb`: a debugger stops the guest's kernel, and the program in the guest does not notice."""

from __future__ import annotations

import os
import selectors
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from executing import run, started
from plait import kernel as kernels

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

PROGRAM = """\
import socket, time
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
client.sendall(bytes(100_000))
print(len(peer.recv(1000)), time.time_ns())
"""
IN_GUEST = ["sh", "-c", f"ip link set lo up; date +%s.%N; python3 -c '{PROGRAM}'; date +%s.%N"]


@pytest.fixture
def kernel() -> str:
    """Return the identity of a built kernel with symbols."""
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed; see docs/limitations.md")
    with_symbols = [kernel.identity for kernel, _ in kernels.list_built() if kernel.symbols is not None]
    if not with_symbols:
        pytest.skip("no kernel with symbols is in the cache; see docs/limitations.md")
    return with_symbols[0]


def command_to_type(process: subprocess.Popen[bytes]) -> list[str]:
    """Return the command that plait prints on standard error."""
    assert process.stderr is not None
    printed = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.select(60):
            more = os.read(process.stderr.fileno(), 4096)
            assert more, f"plait ended without a command to type: {printed.decode()}"
            printed += more
            complete = printed.decode().splitlines(keepends=True)
            if complete[-1].startswith("gdb ") and complete[-1].endswith("\n"):
                return shlex.split(complete[-1])
    pytest.fail(f"plait printed no command to type within 60 s: {printed.decode()}")


def test_a_breakpoint_stops_the_kernel_and_changes_nothing_in_the_guest(kernel: str, tmp_path: Path) -> None:
    plain = run("--kernel", kernel, "--", *IN_GUEST)
    orders = tmp_path / "orders.gdb"
    orders.write_text("break tcp_sendmsg\ncontinue\nbt 2\ndelete\ncontinue\n", encoding="utf-8")
    process = started("--gdb", "--kernel", kernel, "--", *IN_GUEST)
    try:
        command = [*command_to_type(process), "-nx", "-batch", "-x", str(orders)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        output, _ = process.communicate(timeout=300)
    finally:
        process.kill()
        process.wait()
    assert "Breakpoint 1, " in done.stdout
    assert "tcp_sendmsg" in done.stdout.partition("#0 ")[2]
    assert (process.returncode, output.decode()) == (0, plain.stdout)
    assert plain.stdout.splitlines()[1].startswith("1000 ")
