"""Why UDP packets were lost that a program sent and counted itself (`iperf3 -u`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fake_tables import make_tables
from plait.explain.cause import Cause
from plait.explain.messages.program_udp import explain_program_udp
from scenario_samples import plan_of

if TYPE_CHECKING:
    from plait.explain.model import FlowExplanation

PROGRAM = """\
title: A program
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 5ms, queue: 10pkt}}}
traffic:
  - udp: {from: b, to: a, rate: 100kbit, packet: 1200B, duration: 2s}
"""
PACKETS = 1000


def explanation(
    lost: int, overflows: int = 0, buffer_errors: int = 0, programs: int = 1
) -> list[FlowExplanation]:
    figures = [
        {"program": name, "figure": figure, "value": value}
        for name in ("client", "other")[:programs]
        for figure, value in (
            ("iperf3_packets", PACKETS),
            ("iperf3_lost_packets", lost),
            ("iperf3_udp_bps", 1e6),
        )
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "program_figures": figures,
        "programs": [{"program": "client", "node": "a", "start_us": 0, "end_us": 2_000_000}],
        "links": [
            {
                "t_us": t_us, "link": "a->b", "sent_bytes": t_us // 10, "queue_bytes": 0,
                "dropped_packets": dropped, "overflow_packets": dropped,
            }
            for t_us, dropped in ((0, 0), (1_000_000, overflows), (2_000_000, overflows))
        ],
        "counters": [{"node": "b", "counter": "UdpRcvbufErrors", "before": 5, "after": 5 + buffer_errors}],
    }  # fmt: skip
    return list(explain_program_udp(plan_of(PROGRAM), make_tables(tables)))


def shares(explained: FlowExplanation) -> dict[Cause, float]:
    return {share.cause: pytest.approx(share.time) for share in explained.shares}


def test_what_a_full_queue_drops_is_attributed_to_it() -> None:
    (explained,) = explanation(lost=80, overflows=80)
    assert shares(explained) == {Cause.QUEUE_FULL: 0.08, Cause.ON_TIME: 0.92}


def test_what_the_receivers_socket_drops_is_not_attributed_to_a_link() -> None:
    """A link dropped 8 packets of a tunnel, which sent them again; the socket dropped the 130 that are missing."""
    (explained,) = explanation(lost=130, overflows=8, buffer_errors=130)
    assert shares(explained) == {Cause.SOCKET_BUFFER: 0.13, Cause.ON_TIME: 0.87}
    assert explained.named == (Cause.SOCKET_BUFFER,)
    assert (
        explained.sentences[1] == "The cause is socket-buffer: the buffer of the receiving socket was full."
    )
    assert explained.shares[0].evidence == (
        "b dropped 130 UDP packets because the buffer of their socket was full (UdpRcvbufErrors).",
    )


def test_the_rest_is_attributed_to_the_link() -> None:
    (explained,) = explanation(lost=100, overflows=70, buffer_errors=30)
    assert shares(explained) == {Cause.SOCKET_BUFFER: 0.03, Cause.QUEUE_FULL: 0.07, Cause.ON_TIME: 0.9}
    assert explained.named == (Cause.QUEUE_FULL, Cause.SOCKET_BUFFER)


def test_programs_share_what_sockets_dropped() -> None:
    """The kernel counts for a host, not for a socket."""
    for explained in explanation(lost=100, buffer_errors=50, programs=2):
        assert shares(explained) == {
            Cause.SOCKET_BUFFER: 0.025, Cause.NOT_KNOWN: 0.075, Cause.ON_TIME: 0.9,
        }  # fmt: skip
