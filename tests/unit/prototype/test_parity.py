"""Parities recover what one path loses, at the cost of their own bytes and of nothing else."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_in_memory import MemoryLine
from test_prototype import EQUAL, Run

from plait.prototype.choice import SchedulerError, load_scheduler
from plait.prototype.packets import MOST_BLOCK, SEGMENT_BYTES, Repair, decode, encode_repair
from plait.prototype.parity import Recovery, RepairSegment, block_is_full, parity
from plait.prototype.schedulers import SCHEDULERS
from plait.prototype.segment import StreamSegment
from plait.prototype.sender import content

if TYPE_CHECKING:
    from random import Random

LOSSY = (MemoryLine(10e6, 0.05, loss=0.02), MemoryLine(10e6, 0.05, loss=0.02))


def block_of(first: int, covers: int) -> tuple[list[tuple[int, bytes]], Repair]:
    """Return the segments (offset, data) of a block of the stream, and its parity as it arrives."""
    ends = [*range(first, first + covers, SEGMENT_BYTES), first + covers]
    segments = [(at, content(at, end - at)) for at, end in pairwise(ends)]
    made = RepairSegment(tuple(StreamSegment(at, len(data)) for at, data in segments))
    assert (made.sequence, made.covers, made.end) == (first, covers, first + covers)
    data = parity([data for _, data in segments], made.length)
    packet = decode(encode_repair(Repair(0, 1, 9, first, covers, data)))
    assert isinstance(packet, Repair)
    return segments, packet


@given(
    st.integers(0, 10**9),
    st.integers(1, MOST_BLOCK * SEGMENT_BYTES),
    st.randoms(use_true_random=False),
)
def test_any_one_missing_segment_is_recovered_in_any_order_of_arrival(
    first: int, covers: int, chance: Random
) -> None:
    segments, repair = block_of(first, covers)
    lost = segments.pop(chance.randrange(len(segments)))
    arrivals: list[tuple[int, bytes] | Repair] = [*segments, repair]
    chance.shuffle(arrivals)
    recovery = Recovery()
    recovered = []
    for packet in arrivals:
        recovered += (
            recovery.take_repair(packet) if isinstance(packet, Repair) else recovery.take_segment(*packet)
        )
    assert recovered == [lost]
    assert recovery.recovered == 1


def test_of_two_missing_segments_the_second_is_recovered_when_the_first_arrives() -> None:
    segments, repair = block_of(5_000, 8 * SEGMENT_BYTES)
    recovery = Recovery()
    for segment in segments[2:]:
        assert recovery.take_segment(*segment) == []
    assert recovery.take_repair(repair) == []
    assert recovery.take_segment(*segments[0]) == [segments[1]]


def test_a_block_ends_with_a_short_segment_or_the_last_possible_one() -> None:
    full = tuple(StreamSegment(n * SEGMENT_BYTES, SEGMENT_BYTES) for n in range(MOST_BLOCK))
    assert not block_is_full(full[:-1])
    assert block_is_full(full)
    assert block_is_full((*full[:2], StreamSegment(full[2].sequence, 100)))


@pytest.mark.parametrize(
    ("covers", "length"), [(0, 0), (100, 99), (3000, 1000), (MOST_BLOCK * SEGMENT_BYTES + 1, SEGMENT_BYTES)]
)
def test_a_parity_of_another_length_than_its_block_is_no_packet(covers: int, length: int) -> None:
    assert decode(encode_repair(Repair(0, 1, 9, 0, covers, bytes(length)))) is None


def test_parity_recovers_most_losses_before_a_retransmission_and_costs_an_eighth() -> None:
    plain = Run(LOSSY, SCHEDULERS["minrtt"](), 2_000_000)
    run = Run(LOSSY, SCHEDULERS["parity"](), 2_000_000)
    assert b"".join(run.data) == b"".join(plain.data)
    assert run.receiver.recovery is not None
    lost = sum(path.lost_segments for path in run.paths)
    assert run.receiver.recovery.recovered > 0.6 * lost
    most_held = plain.receiver.buffer.most_held_bytes
    assert run.receiver.buffer.most_held_bytes < most_held
    sent = sum(path.sent_bytes - path.resent_bytes for path in run.paths)
    assert 1.12 < sent / 2_000_000 < 1.14


def test_without_loss_parities_cause_no_retransmission() -> None:
    wide = (MemoryLine(10e6, 0.01, queue=10_000), MemoryLine(5e6, 0.03, queue=10_000))
    run = Run(wide, SCHEDULERS["parity"](), 1_000_000)
    assert sum(path.resent_bytes + path.lost_segments for path in run.paths) == 0
    assert run.application.received == sum(len(data) for data in run.data) == 1_000_000


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("        return 'both'", r"mine\.py:5: repair\(\) of Mine returned 'both'; return a path"),
        ("        return block[99]", r"mine\.py:6: repair\(\) of Mine raised IndexError"),
        ("        return [paths[0]] * 2", r"mine\.py:5: repair\(\) of Mine returned the same path twice"),
    ],
)
def test_a_wrong_repair_ends_in_an_error_with_its_line(body: str, message: str) -> None:
    source = (
        "from plait.prototype import Scheduler\nclass Mine(Scheduler):\n    def pick(self, paths, segment):\n"
        f"        return paths[0]\n    def repair(self, paths, block):\n{body}\n"
    )
    with pytest.raises(SchedulerError, match=message):
        Run(EQUAL, load_scheduler("mine.py", "Mine", source))
