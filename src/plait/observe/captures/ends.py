"""Finds out which end of the connections each capture file is from, by their first packets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from plait.errors import RequestError
from plait.observe.captures.halves import Half
from plait.observe.captures.packets import ACK, CAPABLE, JOIN, SYN, CaptureFile, Packet
from plait.observe.captures.streams import derived

SURVEYED_PACKETS = 20_000
_AT_ONCE_US = 1000
"""An end answers within this; a line takes longer."""
Endpoint = tuple[str, int]


@dataclass(frozen=True)
class FileSurvey:
    """What the first packets of a file show."""

    file: CaptureFile
    begin_us: int
    end_us: int
    local: frozenset[str]
    """The addresses of the end that captured it."""
    is_certain: bool
    """Whether the times of the packets show the end."""
    here: frozenset[Endpoint | int]
    """Endpoints and tokens of the end that captured it."""
    there: frozenset[Endpoint | int]
    pairs: frozenset[frozenset[Endpoint]]
    """The TCP connections."""


class _Pair:
    """The two halves of a TCP connection, whichever end captured it."""

    def __init__(self) -> None:
        self.halves: dict[Endpoint, Half] = {}
        self.tokens: dict[Endpoint, set[int]] = {}

    def take(self, packet: Packet) -> None:
        for end in (packet.source, packet.destination):
            self.halves.setdefault(end, Half())
            self.tokens.setdefault(end, set())
        self.halves[packet.source].send(packet.seq, packet.payload, packet.flags, packet.t_us)
        if packet.flags & ACK:
            self.halves[packet.destination].acknowledge(packet.ack, packet.sacked, packet.t_us)
        options = packet.mptcp
        if options is None:
            return
        if CAPABLE in options.subtypes and options.key is not None:
            self.tokens[packet.source].add(derived(options.key, options.version)[0])
        if JOIN in options.subtypes and packet.flags & SYN and options.token is not None:
            self.tokens[packet.destination].add(options.token)

    def near(self) -> Endpoint | None:
        """Return the end that captured it: its segments wait a whole RTT for their acknowledgement, others none."""
        known = {end: half.min_rtt_us for end, half in self.halves.items() if half.min_rtt_us is not None}
        if not known:
            return None
        end = max(known, key=lambda name: known[name])
        if len(known) == 1 and known[end] < _AT_ONCE_US:
            return next(name for name in self.halves if name != end)
        return end


def survey(file: CaptureFile, condition: str) -> FileSurvey | None:
    """Return what the first packets of `file` show; None without TCP packets. Raises what `packets` raises."""
    pairs: dict[frozenset[Endpoint], _Pair] = {}
    begin_us: int | None = None
    end_us = 0
    for packet in file.packets(condition, lambda _: None, most=SURVEYED_PACKETS):
        begin_us = packet.t_us if begin_us is None else min(begin_us, packet.t_us)
        end_us = max(end_us, packet.t_us)
        if packet.source[0] != packet.destination[0]:
            pairs.setdefault(frozenset((packet.source, packet.destination)), _Pair()).take(packet)
    if begin_us is None:
        return None
    local, is_certain = _local(pairs)
    here: set[Endpoint | int] = set()
    there: set[Endpoint | int] = set()
    for pair in pairs.values():
        for end, tokens in pair.tokens.items():
            (here if end[0] in local else there).update((end, *tokens))
    return FileSurvey(
        file, begin_us, end_us, local, is_certain, frozenset(here), frozenset(there), frozenset(pairs)
    )


def _local(pairs: dict[frozenset[Endpoint], _Pair]) -> tuple[frozenset[str], bool]:
    """Return the addresses of the end that captured, by votes of its connections, and whether any voted."""
    votes: Counter[str] = Counter()
    known = False
    for pair in pairs.values():
        near = pair.near()
        known = known or near is not None
        for address, _ in pair.halves:
            votes[address] += 0 if near is None else 1 if address == near[0] else -1
    local = {address for address, count in votes.items() if count > 0}
    for pair in pairs.values():
        addresses = [address for address, _ in pair.halves]
        if not local & set(addresses):
            # An undecided pair: the address with most connections, else the one with the higher port.
            seen = Counter(address for other in pairs.values() for address, _ in other.halves)
            local.add(max(pair.halves, key=lambda end: (seen[end[0]], end[1]))[0])
    return frozenset(local), known


def grouped(surveys: Iterable[FileSurvey]) -> tuple[list[FileSurvey], list[FileSurvey]]:
    """Return the files of the end of the first one, and those of the other end (RequestError if an end is neither).

    A file belongs to the other end if what is local in it is remote in files of this one: an address with a port, or a
    token of MPTCP, which also identifies a connection behind address translation.
    """
    first, *others = surveys
    this: list[FileSurvey] = [first]
    that: list[FileSurvey] = []
    for survey in others:
        is_that = any(_opposite(known, survey) for known in this)
        is_this = any(_opposite(known, survey) for known in that) or any(
            known.local & survey.local for known in this
        )
        if is_that and is_this:
            raise RequestError(
                f"--pcap {survey.file.path}: it shows both ends of connections as its own, so plait cannot tell which "
                "end captured it; give captures of one interface each"
            )
        files = that if is_that else this
        for known in files:
            is_at_once = known.begin_us <= survey.end_us and survey.begin_us <= known.end_us
            if is_at_once and known.pairs & survey.pairs:
                raise RequestError(
                    f"--pcap {survey.file.path}: it has the same connections, end and time as {known.file.path}; give "
                    "one of both"
                )
        files.append(survey)
    return this, that


def _opposite(a: FileSurvey, b: FileSurvey) -> bool:
    return bool(a.here & b.there or a.there & b.here)
