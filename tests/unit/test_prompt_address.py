"""A prompt reaches its network also if the folder of the socket has a long path."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from plait.prompt.live import short_address

OPEN = Path("/proc/self/fd")


def test_a_socket_in_a_folder_with_a_long_path_is_bound_and_reached(tmp_path: Path) -> None:
    path = tmp_path / ("long/" * 40) / "0123456789abcdef"
    path.parent.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        with pytest.raises(OSError, match="too long"):
            server.bind(str(path))
        descriptors = len(list(OPEN.iterdir()))
        with short_address(path) as address:
            server.bind(address)
        server.listen()
        assert path.is_socket()
        with short_address(path) as address:
            client.connect(address)
        accepted, _ = server.accept()
        accepted.close()
        assert len(list(OPEN.iterdir())) == descriptors


def test_a_missing_folder_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), short_address(tmp_path / "gone" / "socket"):
        pass
