"""The guest's side of a hunt reads and writes in pieces, sees wrong content, and speaks netlink."""

from __future__ import annotations

import select
import socket

import pytest

from plait.testing.hunt.case import HuntCase, HuntConnection, HuntEvent, HuntLink
from plait.testing.hunt.ends import BLOCK, End
from plait.testing.hunt.kinds import resets_arrive
from plait.testing.hunt.netlink import path_address


def test_a_slow_reader_reads_one_block_and_waits() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        end = End("client", 0, b"", bytes(BLOCK) * 2, 0, 3 * BLOCK, hold=False, read_every_s=0.5, socket=ours)
        end.connected = end.readable = True
        theirs.sendall(bytes(1000))
        assert end.read(10.0) is None
        theirs.sendall(bytes(1000))
        assert (end.read(10.4), end.received) == (None, 1000)
        assert (end.moves(10.4), end.moves(10.5)) == (False, True)
        assert (end.read(10.5), end.received) == (None, 2000)


def test_a_slow_writer_writes_one_piece_and_waits() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        end = End("client", 0, bytes(BLOCK) * 2, b"", 1000, 0, hold=True, write_bytes=400, write_every_s=0.5)
        end.socket, end.connected, end.writable = ours, True, True
        assert (end.write(10.0), end.sent) == (True, 400)
        assert (end.write(10.4), end.sent) == (False, 400)
        assert (end.moves(10.4), end.moves(10.5)) == (False, True)
        assert (end.write(10.5), end.write(11.0), end.sent) == (True, True, 1000)
        assert not end.moves(20.0)
        assert len(theirs.recv(5000)) == 1000


def test_an_end_waits_for_an_edge_once_the_socket_has_said_enough() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        end = End("client", 0, bytes(BLOCK) * 2, bytes(BLOCK) * 2, 100 * BLOCK, BLOCK, hold=True, socket=ours)
        assert not end.moves(0.0), "it connects before its socket says so"
        end.notice(select.EPOLLOUT)
        assert end.moves(0.0)
        end.connected = True
        theirs.sendall(bytes(1000))
        assert (end.readable, end.read(0.0), end.received, end.readable) == (False, None, 1000, False)
        assert end.write(0.0)
        assert (end.sent > 0, end.writable, end.moves(0.0)) == (True, False, False)
        end.notice(select.EPOLLIN)
        assert (end.readable, end.writable, end.moves(0.0)) == (True, False, True)
        end.notice(select.EPOLLERR)
        assert end.writable, "an error that nobody looks at"


@pytest.mark.parametrize("read_by", ["recv", "peek", "peek_all", "splice"])
def test_each_way_of_reading_sees_wrong_content(read_by: str) -> None:
    for content, expected in (
        (bytes(BLOCK), None),
        (b"\1" * BLOCK, "wrong content within 1000 bytes from byte 0"),
    ):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            end = End("client", 0, b"", bytes(BLOCK) * 2, 0, BLOCK, hold=False, read_by=read_by, socket=ours)
            theirs.sendall(content[:1000])
            seen = end.read(1.0)
            assert seen == expected or (seen and expected and seen.endswith(expected))
            assert end.received == (0 if expected else 1000)


def test_an_address_of_a_path_manager_is_encoded_as_netlink_wants() -> None:
    address = path_address(socket.AF_INET, "10.0.1.2", port=5000, identifier=3)
    assert address.hex() == "06000100" + "02000000" + "08000300" + "0a000102" + "05000200" + "03000000" + (
        "06000500" + "88130000"
    )


@pytest.mark.parametrize(
    ("kinds", "loss_percent", "size", "expected"),
    [
        (("reset", "flush", "close"), 0, 3000, True),
        (("reset", "destroy"), 0, 0, False),
        (("reset", "strip"), 0, 0, False),
        (("reset",), 1, 0, False),
        (("reset",), 0, 100_000, False),
    ],
)
def test_a_reset_is_looked_for_wherever_nothing_loses_it(
    kinds: tuple[str, ...], loss_percent: int, size: int, *, expected: bool
) -> None:
    case = HuntCase(
        links=(HuntLink(rate_mbit=10, delay_ms=5, loss_percent=loss_percent),),
        connections=(HuntConnection(up_bytes=size),),
        events=tuple(HuntEvent(at_ms=100, do=kind) for kind in kinds),
    )
    assert resets_arrive(case.model_dump()) is expected
    gone = case.model_copy(update={"events": (*case.events, HuntEvent(at_ms=50, do="unplug"))})
    assert not resets_arrive(gone.model_dump())
    assert resets_arrive(gone.model_dump(), apart_from="unplug") is expected
