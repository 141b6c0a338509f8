"""Estimates from simulated packets: queues behind token buckets, two clocks, jitter, and losses alone and in bursts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from simulated_lines import OFFSET_US, SimulatedLine

from plait.measure.estimates.delays import base_rtt, jitter
from plait.measure.estimates.load import Load, Overload, overload, train_rate
from plait.measure.estimates.losses import loss
from plait.measure.estimates.packets import PacketTimes
from plait.measure.model import MeasuredValue


def covers(estimate: MeasuredValue, truth: float) -> bool:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= truth <= estimate.high


def measured(line: SimulatedLine, lasts_s: float = 8, above: float = 1.3) -> Overload:
    return overload(line.load(above * line.rate_bps, lasts_s))


@pytest.mark.parametrize("loss_ratio", [0.0, 0.03])
@pytest.mark.parametrize("queue_bytes", [12_500, 100_000, 1_250_000])
def test_an_overloaded_line_shows_its_rate_and_its_queue(queue_bytes: float, loss_ratio: float) -> None:
    result = measured(SimulatedLine(10e6, queue_bytes=queue_bytes, loss=loss_ratio))
    assert covers(result.rate_bps, 10e6)
    assert result.queue.kind == "drop-tail"
    assert covers(result.queue.bytes, queue_bytes)
    assert result.bucket is None


def test_jitter_is_no_part_of_the_queue() -> None:
    result = measured(SimulatedLine(10e6, queue_bytes=50_000, jitter_us=5_000, delay_us=40_000))
    assert result.queue.kind == "drop-tail"
    assert covers(result.queue.bytes, 50_000)
    assert (result.queue.bytes.value or 0) == pytest.approx(50_000, rel=0.1)


@pytest.mark.parametrize("rate_bps", [2e6, 20e6])
def test_a_queue_that_serves_small_packets_first_is_active_and_has_no_depth(rate_bps: float) -> None:
    result = measured(SimulatedLine(rate_bps, queue_bytes=rate_bps / 8, fair=True))
    assert result.queue.kind == "active"
    assert result.queue.bytes == MeasuredValue(None, None, None)


def test_a_queue_that_still_grows_has_a_lower_bound_even_if_packets_are_lost() -> None:
    result = measured(SimulatedLine(10e6, queue_bytes=10_000_000, loss=0.03))
    assert result.queue.kind == "not full"
    assert result.queue.bytes.value is None
    assert 1e6 < (result.queue.bytes.low or 0) < 1e7


@pytest.mark.parametrize("burst", [150_000, 500_000, 2_000_000])
def test_a_token_bucket_shows_its_burst_its_baseline_and_the_rate_before(burst: float) -> None:
    result = overload(SimulatedLine(20e6, bucket=(burst, 4e6)).load(26e6, 8))
    assert result.bucket is not None
    assert covers(result.bucket.burst_bytes, burst)
    assert covers(result.bucket.baseline_bps, 4e6)
    assert result.rate_bps.value == pytest.approx(20e6, rel=0.03)
    assert result.queue.kind == "drop-tail"
    assert covers(result.queue.bytes, 100_000)


@pytest.mark.parametrize(
    ("burst", "jitter_us"), [(3_100, 0), (5_000, 0), (5_000, 100), (10_000, 0), (20_000, 0), (29_000, 100)]
)
def test_a_shaper_shows_what_it_passes_at_once_and_keeps_its_rate(burst: float, jitter_us: float) -> None:
    line = SimulatedLine(1e9, bucket=(burst, 5e6), jitter_us=jitter_us, queue_bytes=60_000)
    result = overload(line.load(6.5e6, 8))
    assert covers(result.burst_bytes, burst)
    assert result.rate_bps.value == pytest.approx(5e6, rel=0.001)
    assert result.bucket is None
    assert covers(result.queue.bytes, 60_000)


@pytest.mark.parametrize("jitter_us", [0.0, 500.0, 3000.0])
@pytest.mark.parametrize("rate_bps", [2e6, 20e6, 100e6])
def test_a_line_on_which_packets_take_their_time_shows_no_burst(rate_bps: float, jitter_us: float) -> None:
    result = measured(SimulatedLine(rate_bps, jitter_us=jitter_us, queue_bytes=rate_bps / 80))
    assert result.burst_bytes == MeasuredValue(None, None, None)


@pytest.mark.parametrize("seed", range(5))
def test_a_line_that_stalls_is_not_said_to_pass_bursts(seed: int) -> None:
    """A router that wakes up late loses time: on a real machine, a shaper of 5 kB seemed to pass 66 kB."""
    load = SimulatedLine(1e9, bucket=(5_000, 48e6), queue_bytes=600_000).load(62.4e6, 8)
    stalls_us = OFFSET_US + np.sort(np.random.default_rng(seed).uniform(0, 1e7, 100))

    def stalled(packets: PacketTimes) -> PacketTimes:
        late_us = 2_000.0 * np.searchsorted(stalls_us, packets.received_us)
        return PacketTimes(packets.sent_us, packets.received_us + late_us, packets.frame_bytes)

    result = overload(Load(stalled(load.full), stalled(load.sparse)))
    assert result.burst_bytes == MeasuredValue(None, None, None)


def test_what_a_train_took_from_the_bucket_counts() -> None:
    line = SimulatedLine(20e6, bucket=(500_000, 4e6))
    without = overload(line.load(26e6, 8)).bucket
    with_train = overload(line.load(26e6, 8, taken=(300_000, 100_000))).bucket
    assert without is not None
    assert with_train is not None
    assert without.burst_bytes.value is not None
    gained = with_train.burst_bytes.value - without.burst_bytes.value
    assert gained == pytest.approx(300_000 - 0.1 * 4e6 / 8, rel=0.01)


def test_a_line_that_is_not_full_has_a_bound_and_no_rate() -> None:
    result = measured(SimulatedLine(10e6, loss=0.03), above=0.8)
    assert result.rate_bps.value is None
    assert result.rate_bps.low == pytest.approx(8e6 * 0.97, rel=0.02)
    assert result.queue.kind == "not full"
    assert result.queue.bytes.value is None


def test_the_base_rtt_has_neither_the_offset_nor_the_drift_of_the_clocks() -> None:
    sent = np.arange(0, 5e6, 20_000.0)
    random = np.random.default_rng(1)
    drift = 1 + 50e-6
    there = PacketTimes(sent, (sent + 8_000 + random.exponential(100, sent.size)) * drift + OFFSET_US, 100)
    back = PacketTimes((sent * drift) + OFFSET_US, sent + 12_000 + random.exponential(100, sent.size), 100)
    result = base_rtt(there, back)
    assert result.value == pytest.approx(20_000, abs=60)
    assert covers(result, 20_000)
    deviation, above = jitter(there)
    assert covers(deviation, 100)
    assert above == pytest.approx(100, rel=0.2)


def test_a_line_without_jitter_has_no_jitter_rather_than_a_rounding_error() -> None:
    sent = np.arange(0, 5e6, 20_000.0)
    deviation, above = jitter(PacketTimes(sent, sent + 12_345 + OFFSET_US, 100))
    assert (deviation.value, above) == (0.0, 0.0)


def test_independent_losses_have_the_exact_interval_of_a_binomial_proportion() -> None:
    sent = np.arange(0.0, 1000.0)
    received = sent + 5
    received[::100] = np.nan
    result, model = loss(PacketTimes(sent, received, 100))
    exact = binomtest(10, 1000).proportion_ci(0.99)
    assert (result.low, result.value, result.high) == pytest.approx((exact.low, 0.01, exact.high), rel=1e-6)
    assert model is not None
    assert model.kind == "independent"
    assert loss(PacketTimes(sent, sent + 5, 100))[0].low == 0


def gilbert_elliott(seed: int, p: float, r: float, loss_bad: float, count: int = 20_000) -> PacketTimes:
    random = np.random.default_rng(seed)
    moves, losses = random.random(count), random.random(count)
    bad, sent = False, np.arange(float(count))
    received = sent + 5
    for number in range(count):
        bad = moves[number] >= r if bad else moves[number] < p
        if bad and losses[number] < loss_bad:
            received[number] = np.nan
    return PacketTimes(sent, received, 100)


@pytest.mark.parametrize(
    ("kind", "p", "r", "loss_bad"), [("gilbert", 0.003, 0.2, 1.0), ("gilbert-elliott", 0.002, 0.05, 0.4)]
)
def test_losses_in_bursts_have_their_model_and_a_wider_interval(
    kind: str, p: float, r: float, loss_bad: float
) -> None:
    truth = p / (p + r) * loss_bad
    covered = 0
    for seed in range(10):
        result, model = loss(gilbert_elliott(seed, p, r, loss_bad))
        covered += covers(result, truth)
        assert model is not None
        assert model.kind == kind
        assert model.r == pytest.approx(r, rel=0.6)
    assert covered >= 9


def test_no_loss_leaves_an_upper_bound_that_holds_for_bursts() -> None:
    sent = np.arange(0.0, 1000.0)
    result, model = loss(PacketTimes(sent, sent + 5, 100))
    assert model is None
    assert result.high == pytest.approx(8 * 5.298 / 1000, rel=0.01)


def test_too_few_packets_give_no_estimate() -> None:
    few = PacketTimes(np.arange(4.0), np.full(4, np.nan), 100)
    assert train_rate(few) is None
    assert base_rtt(few, few).value is None
    assert jitter(few)[0].value is None
    assert loss(few)[0].value == 1
