"""A test of this folder that boots a guest or leaves this machine fails at once (`tests/unit/conftest.py`)."""

from __future__ import annotations

import socket
import subprocess

import pytest

from plait.kernel.cache import kernels_root


@pytest.mark.parametrize(
    "command",
    [
        [str(kernels_root() / "0" / "linux"), "mem=64M"],
        ["plait-contain", f'{{"kernel": "{kernels_root()}/0/linux"}}'],
        ["qemu-system-x86_64", "-version"],
    ],
    ids=["kernel", "sandbox", "emulator"],
)
def test_a_guest_is_refused(command: list[str]) -> None:
    with pytest.raises(RuntimeError, match="starting a guest in tests/unit"):
        subprocess.run(command, check=False)


@pytest.mark.parametrize("address", ["192.0.2.1", "example.invalid"])
def test_a_connection_beyond_this_machine_is_refused(address: str) -> None:
    with pytest.raises(RuntimeError, match="in tests/unit; serve it on"):
        socket.create_connection((address, 9), timeout=1)


def test_other_programs_and_this_machine_are_not_refused() -> None:
    assert subprocess.run(["true"], check=False).returncode == 0
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
