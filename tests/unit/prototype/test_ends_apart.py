"""The two ends of a connection between two hosts, with a relay in between that loses datagrams. Their clocks differ."""

from __future__ import annotations

import io
import json
import random
import select
import socket
import threading
import time

import pytest

from plait.prototype.apart.ends import ReceivingEnd, SendingEnd
from plait.prototype.apart.farewell import MOST_CLOSES, Farewell
from plait.prototype.apart.relay import LARGEST, RelayedPaths
from plait.prototype.application import Application
from plait.prototype.packets import CLOSE, CLOSED, Open, decode, encode_open
from plait.prototype.path import SendingPath
from plait.prototype.receiver import Receiver
from plait.prototype.reports import Reporter
from plait.prototype.schedulers.minrtt import MinRtt
from plait.prototype.sender import Sender

CONNECTION, PATHS, DEADLINE_S = 7, 2, 30.0
AHEAD_NS = 3600 * 10**9
"""How far the receiver's clock is ahead."""


class LossyRelay:
    """Carries datagrams between two ends in a thread, and loses some of them."""

    def __init__(self, loss: float) -> None:
        pairs = [
            [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(PATHS)] for _ in "ab"
        ]
        self.descriptors = [[program.detach() for _, program in side] for side in pairs]
        self._inside = [[agent for agent, _ in side] for side in pairs]
        self._loss, self._random = loss, random.Random(1)
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _carry(self) -> None:
        peers = {
            a: b for near, far in (self._inside, self._inside[::-1]) for a, b in zip(near, far, strict=True)
        }
        while True:
            ready, _, _ = select.select(list(peers), (), (), DEADLINE_S)
            for opened in ready:
                try:
                    datagram = opened.recv(LARGEST)
                    if datagram and self._random.random() >= self._loss:
                        peers[opened].send(datagram)
                except OSError:
                    datagram = b""
                if not datagram:
                    return


def run_apart(
    job: dict[str, int], loss: float = 0.0
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Run both ends, and return what they report: the sender, and the receiver."""
    relay = LossyRelay(loss)
    reports = io.StringIO(), io.StringIO()
    sender = Sender(
        [SendingPath(index, f"path {index}") for index in range(PATHS)],
        MinRtt(),
        connection=CONNECTION,
        trusted=True,
    )
    applications = Application(job), Application(job)
    receiver = Receiver(PATHS, 1_000_000, CONNECTION, applications[1].receive)
    zero_ns = time.monotonic_ns()
    sends = SendingEnd(sender, applications[0], Reporter(reports[0], [1, 2]), CONNECTION)
    receives = ReceivingEnd(receiver, applications[1], Reporter(reports[1], [0, 0]), CONNECTION)
    there = threading.Thread(
        target=receives.run, args=(RelayedPaths(relay.descriptors[1], zero_ns - AHEAD_NS), 0.1), daemon=True
    )
    there.start()
    sends.run(RelayedPaths(relay.descriptors[0], zero_ns), 0.1)
    there.join(DEADLINE_S)
    assert not there.is_alive(), "the receiver does not know that this was all"
    rows = [[json.loads(line) for line in each.getvalue().splitlines()] for each in reports]
    return rows[0], rows[1]


def kind(rows: list[dict[str, object]], name: str) -> list[dict[str, object]]:
    return [row for row in rows if row["report"] == name]


@pytest.mark.parametrize("loss", [0.0, 0.05])
def test_a_transfer_ends_at_both_ends_with_all_bytes(loss: float) -> None:
    sent, received = run_apart({"bytes": 300_000}, loss)
    (ended,), (arrived,) = kind(sent, "ended"), kind(received, "ended")
    assert (ended["sent_bytes"], arrived["received_bytes"]) == (300_000, 300_000)
    assert "received_bytes" not in ended, "the sender does not measure what arrived"
    assert "sent_bytes" not in arrived
    if not loss:  # where a path's first datagram is lost, the transfer may end before that path exists
        assert {row["path"] for row in kind(sent, "path")} == set(range(PATHS))


def test_each_end_reports_the_times_of_its_own_clock() -> None:
    sent, received = run_apart({"message_bytes": 3000, "interval_us": 10_000, "count": 20})
    due, arrived = kind(sent, "message"), kind(received, "message")
    assert len(due) == len(arrived) == 20
    assert all(row["received_us"] is None for row in due)
    assert all(row["sent_us"] is None and int(str(row["received_us"])) > AHEAD_NS // 1000 for row in arrived)
    rtts = [int(str(row["rtt_us"])) for row in kind(sent, "path")]
    assert max(rtts) < AHEAD_NS // 2000, "an RTT contains one clock only"


def test_a_duration_ends_the_sender_by_its_clock_and_the_receiver_by_its_word() -> None:
    sent, received = run_apart({"duration_us": 200_000})
    (ended,), (arrived,) = kind(sent, "ended"), kind(received, "ended")
    (started,) = kind(sent, "started")
    assert int(str(ended["t_us"])) - int(str(started["t_us"])) >= 200_000
    assert 0 < int(str(arrived["received_bytes"])) <= int(str(ended["sent_bytes"]))


def established() -> SendingPath:
    path = SendingPath(0, "path")
    path.first_rtt(0.01)
    return path


def test_a_farewell_without_an_answer_ends() -> None:
    farewell = Farewell([established()], CONNECTION, 0.0)
    now, closes = 0.0, 0
    while not farewell.done:
        closes += len(farewell.datagrams_to_send(now))
        now = max(now, farewell.next_timeout())
    assert closes == MOST_CLOSES
    assert now < 5


def test_only_an_answer_of_the_connection_ends_a_farewell() -> None:
    farewell = Farewell([established()], CONNECTION, 0.0)
    ((_, datagram),) = farewell.datagrams_to_send(0.0)
    packet = decode(datagram)
    assert isinstance(packet, Open)
    assert packet.kind == CLOSE
    farewell.receive(0, encode_open(Open(CLOSED, 0, CONNECTION + 1, 0.0)))
    assert not farewell.done
    farewell.receive(0, encode_open(Open(CLOSED, 0, CONNECTION, 0.0)))
    assert farewell.done
