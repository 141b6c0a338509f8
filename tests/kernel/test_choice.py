"""Schedulers' arithmetic: ECF and BLEST follow their papers' formulas, and `capped` keeps its promise.

`capped` is played as a game: the paths' room is random, retransmissions happen to it unasked, and after every move all
intervals of the past must keep the cap and somebody must be able to move.
"""

from __future__ import annotations

import ctypes
from fractions import Fraction

from hypothesis import assume, given, settings
from hypothesis import strategies as st

MSS = 1428


def spread(low: int, high: int) -> st.SearchStrategy[int]:
    """Return integers of all magnitudes, not only of the largest."""
    return st.integers(low.bit_length(), high.bit_length()).flatmap(
        lambda bits: st.integers(max(low, 2**bits >> 1), min(high, 2**bits))
    )


# --- ECF --------------------------------------------------------------------------------------------------------


@given(
    k=spread(0, 2**24),
    cwnds=st.tuples(spread(1, 2**24), spread(1, 2**24)),
    rtts=st.tuples(spread(1, 2**27), spread(1, 2**27)),
    delta=spread(0, 2**27),
    waited=st.booleans(),
)
def test_ecf_waits_exactly_when_algorithm_1_does(
    choice: ctypes.CDLL,
    *,
    k: int,
    cwnds: tuple[int, int],
    rtts: tuple[int, int],
    delta: int,
    waited: bool,
) -> None:
    cwnd_f, cwnd_s = cwnds
    rtt_f, rtt_s = min(rtts), max(rtts)
    beta = Fraction(1, 4)
    rounds = 1 + Fraction(k, cwnd_f)
    if rounds * rtt_f < (1 + waited * beta) * (rtt_s + delta):
        waits = Fraction(k, cwnd_s) * rtt_s >= 2 * rtt_f + delta
        waiting_after = True if waits else waited
    else:
        waits = waiting_after = False

    waiting = ctypes.c_bool(waited)
    assert choice.host_ecf_waits(k, cwnd_f, rtt_f, cwnd_s, rtt_s, delta, ctypes.byref(waiting)) == waits
    assert waiting.value == waiting_after


# --- BLEST ------------------------------------------------------------------------------------------------------


@given(
    window=spread(1, 2**30),
    mss=st.tuples(spread(500, 9000), spread(500, 9000)),
    cwnd=spread(1, 2**20),
    rtt_f=spread(100, 2**24),
    ratio=st.fractions(1, 1000),
    inflight=spread(0, 2**16),
    permille=st.integers(500, 2000),
)
def test_blest_skips_when_the_window_holds_too_little(
    choice: ctypes.CDLL,
    *,
    window: int,
    mss: tuple[int, int],
    cwnd: int,
    rtt_f: int,
    ratio: Fraction,
    inflight: int,
    permille: int,
) -> None:
    rtt_s = int(rtt_f * ratio)
    assume(rtt_s < 2**32)  # the kernel holds microseconds in 32 bits
    rtts = Fraction(rtt_s, rtt_f)
    needed = mss[0] * (cwnd + (rtts - 1) / 2) * rtts * permille / 1000
    left = window - mss[1] * (inflight + 1)
    assume(abs(needed - left) > needed / 256 + 2 * mss[0])
    got = choice.host_blest_skips(window, mss[0], cwnd, rtt_f, mss[1], inflight, rtt_s, permille)
    assert got == (needed > left)


# --- capped -----------------------------------------------------------------------------------------------------


class Game:
    """n subflows under a cap, as capped.c keeps its accounts."""

    def __init__(self, choice: ctypes.CDLL, n: int, e: int, burst: int) -> None:
        self.choice, self.n = choice, n
        self.cap = choice.host_cap(n, e, burst)
        self.share = Fraction(self.cap.numerator, self.cap.denominator)
        self.burst = burst
        self.credit = [self.cap.most] * n
        # max over intervals that end now of (own bytes - share * all bytes), the left side of the promise
        self.excess = [Fraction(0)] * n

    def carry(self, subflow: int, count: int) -> None:
        for i in range(self.n):
            granted = count if i == subflow else 0
            self.credit[i] = self.choice.host_cap_credit(self.cap, self.credit[i], count, granted)
            self.excess[i] = max(self.excess[i] + granted - self.share * count, Fraction(0))

    def forgive(self) -> bool:
        """Return what capped does before it picks: lifts all credits when none affords a segment."""
        lack = self.choice.host_cap_lack(self.cap, max(self.credit), MSS)
        self.credit = [min(credit + lack, self.cap.most) for credit in self.credit]
        return bool(lack)

    def grant(self, subflow: int) -> int:
        """Return the whole segments that the subflow may carry, in bytes."""
        return self.choice.host_cap_grant(self.cap, self.credit[subflow]) // MSS * MSS


MOVES = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4)), min_size=1, max_size=200)


@settings(max_examples=200)
@given(st.integers(2, 9), st.integers(0, 5000), st.integers(0, 20), MOVES)
def test_capped_keeps_its_promise_over_every_interval_and_never_blocks_itself(
    choice: ctypes.CDLL, n: int, e: int, more: int, moves: list[tuple[int, int]]
) -> None:
    game = Game(choice, n, e, (n + more) * MSS)
    for who, segments in moves:
        assert not game.forgive(), "nothing to forgive while nobody is forced to retransmit"
        able = [i for i in range(n) if game.grant(i)]
        assert able, "somebody must be able to send"
        subflow = able[who % len(able)]
        game.carry(subflow, min(segments * MSS, game.grant(subflow)))
        assert all(excess <= game.burst for excess in game.excess)


@given(st.integers(2, 9), st.integers(0, 5000), MOVES, st.integers(1, 60))
def test_capped_comes_back_from_retransmissions_that_nobody_asked_for(
    choice: ctypes.CDLL, n: int, e: int, moves: list[tuple[int, int]], resent: int
) -> None:
    game = Game(choice, n, e, n * MSS)
    for who, segments in moves:
        if segments == 1:
            game.carry(who % n, resent * MSS)
        game.forgive()
        able = [i for i in range(n) if game.grant(i)]
        assert able, "somebody must be able to send"
        subflow = able[who % len(able)]
        game.carry(subflow, min(segments * MSS, game.grant(subflow)))


@given(st.integers(1, 9), st.integers(0, 10000))
def test_a_cap_is_never_more_than_everything(choice: ctypes.CDLL, n: int, e: int) -> None:
    cap = choice.host_cap(n, e, 10 * MSS)
    share = Fraction(cap.numerator, cap.denominator)
    assert share == min(Fraction(1, n) + Fraction(e, 10000), 1)
    if share == 1:
        assert choice.host_cap_grant(cap, -1) == 2**32 - 1
