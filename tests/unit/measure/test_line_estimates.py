"""Estimates from simulated packets: a queue behind a token bucket, two clocks, and random loss."""

from __future__ import annotations

import numpy as np
import pytest

from plait.measure.estimate import PacketTimes, base_rtt, jitter, loss, overload, train_rate

FRAME = 1442
OFFSET_US = 3.6e9
"""An hour between the two clocks."""


def line(
    sending_bps: float,
    lasts_s: float,
    *,
    rate_bps: float,
    delay_us: float = 10_000,
    queue_bytes: float = 100_000,
    bucket: tuple[float, float] | None = None,
) -> PacketTimes:
    """Send packets through a drop-tail queue, a rate, and a token bucket (burst in bytes, baseline in bit/s)."""
    sent = np.arange(0.0, lasts_s * 1e6, FRAME * 8e6 / sending_bps)
    received = np.full(sent.size, np.nan)
    burst, baseline = bucket or (np.inf, rate_bps)
    tokens, filled_us, free_us = burst, 0.0, 0.0
    departures: list[float] = []
    for number, now in enumerate(sent):
        while departures and departures[0] <= now:
            departures.pop(0)
        if len(departures) * FRAME > queue_bytes:
            continue
        start = max(now, free_us)
        if np.isfinite(tokens):
            tokens = min(burst, tokens + (start - filled_us) * baseline / 8e6)
            filled_us = start
            if tokens < FRAME:
                start += (FRAME - tokens) * 8e6 / baseline
                tokens, filled_us = FRAME, start
            tokens -= FRAME
        free_us = start + FRAME * 8e6 / rate_bps
        departures.append(free_us)
        received[number] = free_us + delay_us + OFFSET_US
    return PacketTimes(sent, received, FRAME)


def least(packets: PacketTimes) -> float:
    return float(packets.delays_us[:5].min())


def test_an_overloaded_line_shows_its_rate_and_its_queue() -> None:
    packets = line(13e6, 5, rate_bps=10e6, queue_bytes=100_000)
    result = overload(packets, least(packets), 0, 0)
    assert result.rate_bps.value == pytest.approx(10e6, rel=0.01)
    assert result.queue_bytes.value == pytest.approx(100_000, rel=0.05)
    assert result.bucket is None


@pytest.mark.parametrize("burst", [150_000, 500_000, 2_000_000])
def test_a_token_bucket_shows_its_burst_and_its_baseline(burst: float) -> None:
    packets = line(26e6, 8, rate_bps=20e6, bucket=(burst, 4e6))
    result = overload(packets, least(packets), 0, 0)
    assert result.bucket is not None
    assert result.bucket.burst_bytes.value == pytest.approx(burst, rel=0.1)
    assert result.bucket.baseline_bps.value == pytest.approx(4e6, rel=0.03)


def test_the_rate_of_a_bucket_is_the_one_before_it_is_empty() -> None:
    packets = line(26e6, 8, rate_bps=20e6, bucket=(2_000_000, 4e6))
    assert overload(packets, least(packets), 0, 0).rate_bps.value == pytest.approx(20e6, rel=0.03)


def test_what_a_train_took_from_the_bucket_counts() -> None:
    packets = line(26e6, 8, rate_bps=20e6, bucket=(500_000, 4e6))
    without = overload(packets, least(packets), 0, 0).bucket
    with_train = overload(packets, least(packets), 300_000, 100_000).bucket
    assert without is not None
    assert with_train is not None
    assert without.burst_bytes.value is not None
    gained = with_train.burst_bytes.value - without.burst_bytes.value  # type: ignore[operator]
    assert gained == pytest.approx(300_000 - 0.1 * 4e6 / 8, rel=0.01)


def test_a_line_that_is_not_full_has_a_bound_and_no_rate() -> None:
    packets = line(8e6, 5, rate_bps=10e6)
    result = overload(packets, least(packets), 0, 0)
    assert result.rate_bps.value is None
    assert result.rate_bps.low == pytest.approx(8e6, rel=0.01)
    assert result.queue_bytes.value is None


def test_the_base_rtt_has_neither_the_offset_nor_the_drift_of_the_clocks() -> None:
    sent = np.arange(0, 5e6, 20_000.0)
    random = np.random.default_rng(1)
    drift = 1 + 50e-6
    there = PacketTimes(sent, (sent + 8_000 + random.exponential(100, sent.size)) * drift + OFFSET_US, 100)
    back = PacketTimes((sent * drift) + OFFSET_US, sent + 12_000 + random.exponential(100, sent.size), 100)
    result = base_rtt(there, back)
    assert result.value == pytest.approx(20_000, abs=60)
    deviation, above = jitter(there)
    assert deviation.low is not None
    assert deviation.low < 100 < deviation.high  # type: ignore[operator]
    assert above == pytest.approx(100, rel=0.2)


def test_loss_has_the_exact_interval_of_a_binomial_proportion() -> None:
    sent = np.arange(0.0, 1000.0)
    received = sent + 5
    received[::100] = np.nan
    result = loss(PacketTimes(sent, received, 100))
    # R: binom.test(10, 1000)$conf.int
    assert (result.low, result.value, result.high) == pytest.approx((0.004805, 0.01, 0.018313), abs=1e-5)
    assert loss(PacketTimes(sent, sent + 5, 100)).low == 0


def test_too_few_packets_give_no_estimate() -> None:
    few = PacketTimes(np.arange(4.0), np.full(4, np.nan), 100)
    assert train_rate(few) is None
    assert overload(few, None, 0, 0).rate_bps.value is None
    assert base_rtt(few, few).value is None
    assert loss(few).value == 1
