"""Captures: sequence numbers, connections from tokens and data, fallbacks with their reason, unfit files."""

from __future__ import annotations

import hashlib
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import MachineError, RequestError
from plait.observe.captures import packets
from plait.observe.captures.engine import CaptureReader
from plait.observe.captures.packets import (
    ACK,
    ADD_ADDR,
    CAPABLE,
    DSS,
    FAIL,
    JOIN,
    RST,
    SYN,
    CaptureFile,
    Packet,
    PacketOptions,
)
from plait.observe.captures.rows import Samples, tables_of
from plait.observe.captures.streams import Ranges
from plait.observe.captures.tracking import Tracker
from plait.observe.captures.words import facts
from plait.observe.watching import Selection

CLIENT, SERVER, SECOND = ("192.0.2.1", 40000), ("203.0.113.7", 443), ("198.51.100.1", 40001)
NONE = PacketOptions(frozenset(), None, None, None, None, None, None, None, (), None, None, None)
KEYS = {"client": 11 << 40, "server": 13 << 40}
BIG = 7 << 60
"""A data sequence number."""


def token(key: int) -> int:
    return int.from_bytes(hashlib.sha256(key.to_bytes(8, "big")).digest()[:4], "big")


def options(*subtypes: int, **fields: object) -> PacketOptions:
    return NONE._replace(subtypes=frozenset(subtypes), version=1, **fields)


def packet(
    t_us: int,
    ends: tuple[tuple[str, int], tuple[str, int]],
    flags: int,
    mptcp: PacketOptions | None = None,
    **more: int,
) -> Packet:
    shift = 7 if flags & SYN else None
    fields = {"seq": 100, "ack": 500, "window": 1000, "payload": 0} | more
    return Packet(
        t_us,
        *ends,
        fields["seq"],
        fields["ack"],
        flags,
        fields["window"],
        fields["payload"],
        1460 if flags & SYN else None,
        shift,
        True,
        (),
        mptcp,
        cut=False,
    )


def handshake(syn: bool = True, answer: bool = True, third: bool = True) -> list[Packet]:
    """Return the first three packets of a connection; which of them have MP_CAPABLE."""
    forth, back = (CLIENT, SERVER), (SERVER, CLIENT)
    return [
        packet(0, forth, SYN, options(CAPABLE) if syn else None, seq=99),
        packet(
            20_000,
            back,
            SYN | ACK,
            options(CAPABLE, key=KEYS["server"]) if answer else None,
            seq=499,
            ack=100,
        ),
        packet(20_000, forth, ACK, options(CAPABLE, key=KEYS["client"]) if third else None),
    ]


def sampled(content: list[Packet], local: str = CLIENT[0]) -> Samples:
    samples = Samples(Tracker({local, SECOND[0]} if local == CLIENT[0] else {local}), 0, 100_000)
    for item in content:
        samples.take(item)
    samples.finish()
    return samples


def sentences_of(*samples: Samples) -> list[str]:
    _, joined = tables_of(list(samples), ["client", "server"][: len(samples)], 0)
    return list(facts(samples, joined, []))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=30))
def test_ranges_count_what_is_new(parts: list[tuple[int, int]]) -> None:
    ranges, known = Ranges(), set()
    for start, length in parts:
        numbers = set(range(start, start + length))
        assert ranges.add(start, start + length) == len(numbers - known)
        known |= numbers
    covered = {number for first, last in ranges.parts for number in range(first, last)}
    assert covered == known


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (handshake(answer=False, third=False), "MPCapableFallbackSYNACK"),
        (handshake(third=False), "MPCapableFallbackACK"),
        ([*handshake(), packet(21_000, (CLIENT, SERVER), ACK, payload=1000)], "MPCapableDataFallback"),
        (
            [*handshake(), packet(21_000, (SERVER, CLIENT), ACK, options(FAIL, DSS), seq=500, ack=100)],
            "DataCsumErr",
        ),
        (
            [
                *handshake(),
                packet(
                    21_000,
                    (CLIENT, SERVER),
                    ACK,
                    options(DSS, dsn=BIG, subflow_sequence=1, length=0),
                    payload=1000,
                ),
            ],
            "InfiniteMapRx",
        ),
    ],
)
def test_a_fallback_has_the_reason_that_packets_show(content: list[Packet], reason: str) -> None:
    tables, _ = tables_of([sampled(content)], ["client"], 0)
    assert tables["flows"]["fallback"].to_list() == [True]
    assert tables["counters"]["counter"].to_list() == [f"MPTcpExt{reason}"]


def test_both_ends_show_where_a_middlebox_removed_the_option() -> None:
    client = sampled(handshake(answer=False, third=False))
    server = sampled(handshake(syn=False, answer=False, third=False), SERVER[0])
    (sentence,) = sentences_of(client, server)
    assert sentence == (
        "203.0.113.7:443 fell back to TCP: the SYN left the client with MP_CAPABLE and arrived without; a middlebox "
        "removes the option."
    )


def test_a_token_puts_subflows_together_and_data_on_a_second_one_are_reinjected() -> None:
    second = (SECOND, SERVER)
    first_data = int.from_bytes(hashlib.sha256(KEYS["client"].to_bytes(8, "big")).digest()[-8:], "big") + 1
    mapping = options(DSS, dsn=first_data, subflow_sequence=1, length=1000)
    samples = sampled(
        [
            *handshake(),
            packet(21_000, (CLIENT, SERVER), ACK, mapping, payload=1000),
            packet(30_000, second, SYN, options(JOIN, token=token(KEYS["server"]), backup=False), seq=99),
            packet(50_000, second[::-1], SYN | ACK, options(JOIN), seq=499, ack=100),
            packet(50_000, second, ACK, options(JOIN)),
            packet(60_000, second, ACK, mapping, payload=1000),
            packet(60_001, second, ACK, mapping, payload=1000),
        ]
    )
    (connection,) = samples.tracker.connections
    assert [subflow.number for subflow in connection.subflows] == [0, 1]
    tables, _ = tables_of([samples], ["client"], 0)
    last = tables["connections"].row(-1, named=True)
    assert (last["sent_bytes"], last["retransmitted_bytes"]) == (1000, 1000)
    on_second = tables["subflows"].filter(subflow=1).row(-1, named=True)
    assert (on_second["sent_bytes"], on_second["retransmitted_bytes"]) == (2000, 1000)
    assert on_second["rtt_us"] == 20_000


def test_without_handshakes_neighbouring_data_put_subflows_together() -> None:
    samples = sampled(
        [
            packet(
                0, (CLIENT, SERVER), ACK, options(DSS, dsn=BIG, subflow_sequence=9, length=1000), payload=1000
            ),
            packet(
                1,
                (SECOND, SERVER),
                ACK,
                options(DSS, dsn=BIG + 5000, subflow_sequence=3, length=1000),
                payload=1000,
            ),
            packet(
                2,
                ((SECOND[0], 9), SERVER),
                ACK,
                options(DSS, dsn=9, subflow_sequence=3, length=10),
                payload=10,
            ),
        ]
    )
    assert [len(connection.subflows) for connection in samples.tracker.connections] == [2, 1]
    assert "begin after the handshake of 2 connections" in sentences_of(samples)[0]


def test_an_address_that_nobody_joined_is_named() -> None:
    announcement = options(ADD_ADDR, announced=(("203.0.113.8", None),), address_id=1)
    sentences = sentences_of(
        sampled([*handshake(), packet(30_000, (SERVER, CLIENT), ACK, announcement, seq=500, ack=100)])
    )
    assert sentences == []  # it carried nothing
    mapping = options(DSS, dsn=None, subflow_sequence=None, length=10)
    content = [
        *handshake(),
        packet(21_000, (CLIENT, SERVER), ACK, mapping, payload=10),
        packet(30_000, (SERVER, CLIENT), ACK, announcement, seq=500, ack=110),
    ]
    assert sentences_of(sampled(content)) == [
        "203.0.113.7:443: the other end announced 203.0.113.8, and no subflow to it is in the captures."
    ]


def test_a_refused_subflow_is_an_event() -> None:
    second = (SECOND, SERVER)
    samples = sampled(
        [
            *handshake(),
            packet(30_000, second, SYN, options(JOIN, token=token(KEYS["server"])), seq=99),
            packet(50_000, second[::-1], RST | ACK, seq=0, ack=100),
        ]
    )
    tables, _ = tables_of([samples], ["client"], 0)
    closed = tables["events"].filter(event="sub_closed").row(0, named=True)
    assert (closed["error"], closed["local_address"], closed["t_us"]) == (111, SECOND[0], 50_000)


def test_a_missing_tshark_has_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(b"")
    monkeypatch.setattr(packets, "which", lambda _: None)
    with pytest.raises(MachineError, match=r"it is missing; install it .*apt-get install tshark"):
        CaptureReader([tmp_path / "a.pcap"], Selection())


@pytest.mark.skipif(which("tshark") is None, reason="this machine has no tshark")
@pytest.mark.parametrize("content", [b"", b"no capture\n"])
def test_a_file_that_is_no_capture_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes(content)
    with pytest.raises(RequestError, match="not a capture that tshark knows"):
        CaptureReader([tmp_path / "a.pcap"], Selection())


def test_other_things_than_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="No such file"):
        CaptureFile(tmp_path / "none")
    with pytest.raises(RequestError, match="no regular file"):
        CaptureFile(Path("/dev/null"))
    with pytest.raises(RequestError, match="neither a process nor a namespace"):
        CaptureReader([], Selection(processes=(1,)))
