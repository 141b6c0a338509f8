"""What plait reads from a host is bounded in size and time, whatever the host sends."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait.engine.remote.channel import MAX_LINE, Channel, LastWords, StoppedError
from plait.engine.remote.clocks import Zero, offset
from plait.engine.remote.ssh import sockets
from plait.errors import TrialError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def peer(script: str, stop: threading.Event | None = None) -> Iterator[Channel]:
    """Yield a channel to a shell script that plays the host."""
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield Channel(process, "h1", lambda: stop, lambda: "")
        finally:
            process.kill()


def test_sockets_of_ssh_have_short_paths_wherever_temporary_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket's path has at most 107 characters, and ssh binds `ControlPath` with 17 more."""
    far = tmp_path / ("x" * 100)
    far.mkdir()
    for place in (tmp_path, far):
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        with sockets() as folder:
            assert len(os.fsencode(folder)) + len("/") + 40 + 17 <= 107
            assert folder.stat().st_mode & 0o077 == 0
        assert not folder.exists()


def test_lines_and_counted_bytes_share_one_stream() -> None:
    with peer("printf 'file 5\\n12345next\\n'") as channel:
        assert channel.line(10) == "file 5"
        assert b"".join(channel.chunks(5, 10)) == b"12345"
        assert channel.line(10) == "next"


def test_control_characters_of_a_host_are_escaped() -> None:
    with peer("printf '\\033[2Jok\\n'") as channel:
        assert channel.line(10) == "\\x1b[2Jok"


def test_a_line_without_end_is_refused() -> None:
    with peer("yes | tr -d '\\n'") as channel, pytest.raises(TrialError, match=f"more than {MAX_LINE} bytes"):
        channel.line(30)


def test_a_silent_host_fails_in_time() -> None:
    with peer("cat >/dev/null") as channel, pytest.raises(TrialError, match="h1 did not answer in time"):
        channel.line(0.1)


def test_a_host_that_reads_nothing_fails_in_time() -> None:
    with peer("sleep 60") as channel, pytest.raises(TrialError, match="h1 did not accept data in time"):
        channel.send(bytes(1 << 20), 0.3)


def test_a_host_that_leaves_early_fails() -> None:
    with peer("printf 123") as channel, pytest.raises(TrialError, match="the connection to h1 ended"):
        list(channel.chunks(5, 10))


def test_the_user_can_stop_every_wait() -> None:
    stop = threading.Event()
    stop.set()
    with peer("cat >/dev/null", stop) as channel, pytest.raises(StoppedError):
        channel.rest_until(time.monotonic() + 3600)
    with peer("cat >/dev/null", stop) as channel, pytest.raises(StoppedError):
        channel.line(60)


def test_the_shortest_round_trip_bounds_the_error_of_a_clock() -> None:
    ahead_ns, there_ns, back_ns = (
        5_000_000_000,
        9_000_000,
        1_000_000,
    )  # a path that is slower in one direction
    slow = offset(100, 100 + there_ns + ahead_ns, 100 + there_ns + back_ns)
    fast = offset(0, 500_000 + ahead_ns, 1_000_000)
    for error_ns, ns in (slow, fast):
        assert abs(ns - ahead_ns) <= error_ns
    assert min(slow, fast) == fast == (500_000, ahead_ns)
    assert Zero.reported(ahead_ns + 7_000_000, fast).after_us(Zero(0, 0)) == 7000


def last_words(script: str) -> tuple[LastWords, str]:
    """Return the reader of the standard error of a shell script, and the last line."""
    with subprocess.Popen(["sh", "-c", script], stderr=subprocess.PIPE) as process:
        words = LastWords(process)
        return words, words.last_line(30)


def test_a_message_of_ssh_ends_without_its_carriage_return() -> None:
    assert last_words("printf 'first\\r\\nPermission denied\\r\\n\\r\\n' >&2")[1] == "Permission denied"


def test_of_a_flood_on_standard_error_only_the_end_is_kept() -> None:
    words, line = last_words("head -c 50000000 /dev/zero >&2; printf '\\nthe end' >&2")
    assert line == "the end"
    assert len(words._text) <= 4096
