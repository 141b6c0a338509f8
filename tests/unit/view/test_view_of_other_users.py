"""`plait view` answers to its user and to root, and to nobody else who knows the address."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from plait.dataset.trial import RUNNING_TRIAL
from plait.errors import MachineError
from plait.view import guard, peers, server
from plait.view.running import running_trials
from plait.view.server import serve
from result_folders import two_paths, write_study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plait.view.server import ViewServer

WAIT_S = 300
NOBODY = 65534
ASK = 'exec 3<>/dev/tcp/127.0.0.1/"$1"; printf "GET $2 HTTP/1.0\\r\\nHost: 127.0.0.1:$1\\r\\n\\r\\n" >&3; head -n 1 <&3'


@pytest.fixture
def view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ViewServer]:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    write_study(tmp_path / "results/pair", two_paths(), repeat=1)
    running = serve([tmp_path / "results"])
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    yield running
    running.stop()
    thread.join(timeout=WAIT_S)
    assert not thread.is_alive()


def answer(view: ViewServer, user: int, ask: str = ASK) -> str:
    """Return the status line of the answer to a user who knows the address."""
    address = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[0-9a-f]{32}/)", view.address)
    assert address is not None
    done = subprocess.run(
        ["bash", "-c", ask, "bash", address[1], f"{address[2]}data/studies.js"],
        capture_output=True, text=True, check=True, timeout=WAIT_S, cwd="/",
        user=None if user == os.getuid() else user, extra_groups=None if user == os.getuid() else (),
    )  # fmt: skip
    return done.stdout.strip()


def test_the_user_who_started_it_gets_an_answer(view: ViewServer) -> None:
    assert answer(view, os.getuid()) == "HTTP/1.1 200 OK"


def test_a_request_cannot_name_the_client_that_it_comes_from(
    view: ViewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients: list[tuple[str, int]] = []
    monkeypatch.setattr(guard, "is_trusted", lambda client, _: clients.append(client))
    forged = ASK.replace("\\r\\n\\r\\n", "\\r\\nX-Forwarded-For: 127.0.0.2\\r\\n\\r\\n")
    assert forged != ASK
    assert answer(view, os.getuid(), forged) == "HTTP/1.1 403 Forbidden"
    assert [address for address, _ in clients] == ["127.0.0.1"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_another_user_who_knows_the_address_gets_none(view: ViewServer) -> None:
    assert answer(view, NOBODY) == "HTTP/1.1 403 Forbidden"


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_an_open_connection_belongs_to_its_user_and_a_closed_one_to_nobody(family: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(family) as client:
        place = listener.getsockname()
        client.connect(place if family == socket.AF_INET else (f"::ffff:{place[0]}", place[1]))
        accepted, address = listener.accept()
        with accepted:
            assert peers.owner(address, place) == os.getuid()
            assert peers.is_trusted(address, place)
            assert peers.owner(place, (address[0], 1)) is None
            client.shutdown(socket.SHUT_WR)
            accepted.recv(1)
            assert peers.owner(address, place) is None, "what is no longer open may name root as its owner"


def test_a_connection_of_another_user_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "owner", lambda *_: os.getuid() + 1)
    assert not peers.is_trusted(("127.0.0.1", 1), ("127.0.0.1", 2))


def test_a_folder_of_a_running_trial_that_leads_elsewhere_is_not_read(tmp_path: Path) -> None:
    job, elsewhere = tmp_path / "results/.work-1/00001", tmp_path / "elsewhere"
    job.mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "progress").write_text("1000000\n")
    (job / RUNNING_TRIAL).write_text('{"case": "a", "number": 0}')
    place = os.open(job.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(place, fcntl.LOCK_SH)  # as a process that runs trials
        (job / "guest").symlink_to(elsewhere)
        assert running_trials(tmp_path / "results", ["a"]) == []
        (job / "guest").unlink()
        memory = os.open(elsewhere, os.O_PATH)
        (job / "guest").symlink_to(f"/proc/{os.getpid()}/fd/{memory}")
        (trial,) = running_trials(tmp_path / "results", ["a"])
        os.close(memory)
    finally:
        os.close(place)
    assert trial["seconds"] == 1


def test_a_machine_that_does_not_tell_whose_a_connection_is_serves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "TABLES", (tmp_path / "tcp", tmp_path / "tcp6"))
    with pytest.raises(MachineError, match="cannot tell which user connects; mount /proc"):
        serve([tmp_path])
