"""UDP packets measure every condition of a link and confirm what the scenario says.

Many links that have nothing to do with each other are in one trial, each with a flow of its own. Bounds are those of
arithmetic, or intervals of 3.5 standard errors for what is random: with a fixed seed a test passes always or never.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod, sqrt
from statistics import NormalDist, fmean, pstdev
from typing import TYPE_CHECKING

import pytest
from probes import ERRORS, HEADERS, Arrivals, Probe, binomial, measured, transmission_us

if TYPE_CHECKING:
    from conftest import RunTrial

pytestmark = pytest.mark.guest


def in_order(spread_us: float, spacing_us: float) -> tuple[float, float]:
    """Return mean and deviation of the delay beyond the least: uniform jitter in 0..2*spread, packets kept in order.

    A packet leaves with the latest of those before it: P(delay <= x) = prod over k of F(x + k * spacing).
    """
    width, steps = 2 * spread_us, 4000
    grid = [width * (i + 0.5) / steps for i in range(steps)]
    reach = int(width / spacing_us) + 1
    below = [prod(min(1.0, (x + k * spacing_us) / width) for k in range(reach)) for x in grid]
    mean = sum(1 - p for p in below) * width / steps
    square = sum(2 * x * (1 - p) for x, p in zip(grid, below, strict=True)) * width / steps
    return mean, sqrt(square - mean**2)


SPARSE = {
    "delay": Probe("{delay: 37500us}"),
    "none": Probe("{}"),
    "one way": Probe("{forward: {delay: 30ms, loss: 50%}}", backward=True),
    "within": Probe("{delay: 20ms, jitter: 5ms}"),
    "uniform": Probe("{delay: 20ms, jitter: {deviation: 3ms, distribution: uniform}}"),
    "normal": Probe("{delay: 20ms, jitter: {deviation: 2ms}}"),
    "pareto": Probe("{delay: 20ms, jitter: {deviation: 500us, distribution: pareto}}"),
    "paretonormal": Probe("{delay: 20ms, jitter: {deviation: 500us, distribution: paretonormal}}"),
    "dense": Probe("{delay: 20ms, jitter: 5ms}", packets=4000, interval="1ms"),
    "overtaking": Probe("{delay: 20ms, jitter: {within: 5ms, reorder: true}}", packets=4000, interval="1ms"),
    "reorder": Probe("{delay: 20ms, reorder: 10%}", packets=4000, interval="1ms"),
}


@pytest.fixture(scope="module")
def sparse(run_trial: RunTrial) -> dict[str, Arrivals]:
    return measured(run_trial, SPARSE)[0]


def test_delay_is_right_within_10_us(sparse: dict[str, Arrivals]) -> None:
    for name, expected in (("delay", 37_500), ("none", 0), ("one way", 0)):
        delays = sparse[name].delays
        assert len(delays) == 2000
        assert expected <= min(delays)
        assert max(delays) <= expected + 10, name


@pytest.mark.parametrize(
    ("name", "mean", "deviation", "kurtosis"),
    [
        ("within", 20_000, 5000 / sqrt(3), 1.8),
        ("uniform", 20_000, 3000, 1.8),
        ("normal", 20_000, 2000, 3),
        ("pareto", 20_000, 500, 150),
        ("paretonormal", 20_000, 500, 100),
    ],
)
def test_jitter_has_the_mean_and_the_deviation_it_says(
    sparse: dict[str, Arrivals], name: str, mean: float, deviation: float, kurtosis: float
) -> None:
    """The deviation's own error is sqrt((kurtosis - 1) / 4n); 10 us more are the probe's."""
    delays = sparse[name].delays
    n = len(delays)
    assert abs(fmean(delays) - mean) <= ERRORS * deviation / sqrt(n) + 10
    assert abs(pstdev(delays) / deviation - 1) <= ERRORS * sqrt((kurtosis - 1) / (4 * n)) + 0.01


def test_uniform_jitter_is_uniform_and_normal_is_normal(sparse: dict[str, Arrivals]) -> None:
    """The greatest distance of the distribution from the one it should be (Kolmogorov and Smirnov; 1.95: 0.1 %)."""
    shapes = {
        "within": lambda t: min(1, max(0, (t - 15_000) / 10_000)),
        "normal": NormalDist(20_000, 2000).cdf,
    }
    for name, cdf in shapes.items():
        delays = sorted(sparse[name].delays)
        n = len(delays)
        distance = max(abs((i + 0.5) / n - cdf(delay)) for i, delay in enumerate(delays))
        assert distance < 1.95 / sqrt(n) + 0.005, name


def test_heavy_tails_are_there(sparse: dict[str, Arrivals]) -> None:
    """Of 2000 Pareto delays of shape 3 some are beyond four deviations, where iproute2's tables are cut."""
    delays = sparse["pareto"].delays
    assert max(delays) > 20_000 + 4.5 * 500
    assert min(delays) > 20_000 - 0.65 * 500


def test_jitter_keeps_packets_in_order_and_delays_those_that_wait(sparse: dict[str, Arrivals]) -> None:
    dense = sparse["dense"]
    arrived = [time for time in dense.received if time is not None]
    assert arrived == sorted(arrived)
    mean, deviation = in_order(5000, 1000)
    # neighbours are not independent: as if a tenth of them were
    error = ERRORS * deviation / sqrt(len(arrived) / 10)
    assert abs(fmean(dense.delays) - (15_000 + mean)) <= error + 10
    assert abs(pstdev(dense.delays) - deviation) <= error


def test_jitter_reorders_when_asked(sparse: dict[str, Arrivals]) -> None:
    """Then each packet's delay is its own, whatever the others do."""
    overtaking = sparse["overtaking"]
    arrived = [time for time in overtaking.received if time is not None]
    assert arrived != sorted(arrived)
    n = len(arrived)
    assert abs(fmean(overtaking.delays) - 20_000) <= ERRORS * 5000 / sqrt(3 * n) + 10
    assert abs(pstdev(overtaking.delays) * sqrt(3) / 5000 - 1) <= ERRORS * sqrt(0.8 / (4 * n)) + 0.01


def test_the_configured_share_of_packets_is_reordered(sparse: dict[str, Arrivals]) -> None:
    delays = sparse["reorder"].delays
    assert all(delay <= 10 or 20_000 <= delay <= 20_010 for delay in delays)
    at_once = fmean(delay <= 10 for delay in delays)
    assert abs(at_once - 0.10) <= binomial(0.10, len(delays))


RANDOM = {
    "1%": Probe("{loss: 1%}", packets=5000, interval="2ms"),
    "20%": Probe("{delay: 5ms, forward: {loss: 20%}}", packets=4000, interval="2ms"),
    "back": Probe("{delay: 5ms, forward: {loss: 20%}}", backward=True),
    "burst": Probe("{loss: {ratio: 5%, burst: 4pkt}}", packets=8000, interval="2ms"),
    "gemodel": Probe("{loss: {gemodel: {p: 5%, r: 20%, 1-h: 60%, 1-k: 2%}}}", packets=8000, interval="2ms"),
    "duplicate": Probe("{delay: 5ms, duplicate: 5%}", packets=4000, interval="2ms"),
    "corrupt": Probe("{delay: 5ms, corrupt: 5%}", packets=4000, interval="2ms"),
    "all": Probe(
        "{rate: 10mbit, delay: 20ms, jitter: {deviation: 1ms}, loss: 2%, duplicate: 3%}",
        packets=4000,
        interval="12ms",
    ),
}


@pytest.fixture(scope="module")
def random(run_trial: RunTrial) -> dict[str, Arrivals]:
    return measured(run_trial, RANDOM)[0]


@pytest.mark.parametrize(
    ("name", "share"),
    [("1%", 0.01), ("20%", 0.20), ("back", 0.0), ("duplicate", 0.0), ("all", 0.02 * (1 - 0.03))],
)
def test_loss_is_within_its_binomial_interval(random: dict[str, Arrivals], name: str, share: float) -> None:
    """With duplication, netem loses a packet and its copy apart: a packet that would be lost leaves its copy."""
    arrivals = random[name]
    assert abs(arrivals.loss - share) <= binomial(share, len(arrivals.sent))


def runs(lost: list[bool]) -> list[int]:
    """Return lengths of runs of losses."""
    out, length = [], 0
    for is_lost in [*lost, False]:
        if is_lost:
            length += 1
        elif length:
            out.append(length)
            length = 0
    return out


def test_bursts_of_loss_are_as_long_as_asked(random: dict[str, Arrivals]) -> None:
    """Geometric with mean 4, whose deviation is sqrt(4 * 3); the ratio's error is larger by the bursts' lengths."""
    lengths = runs(random["burst"].lost)
    n = len(random["burst"].sent)
    assert abs(fmean(lengths) - 4) <= ERRORS * sqrt(12 / len(lengths))
    assert abs(random["burst"].loss - 0.05) <= binomial(0.05, n) * sqrt(2 * 4)


def test_gemodel_loses_by_state(random: dict[str, Arrivals]) -> None:
    """In the bad state a fifth of the time: .2 * .6 + .8 * .02; after a loss another one is likelier than so."""
    lost = random["gemodel"].lost
    n = len(lost)
    assert abs(fmean(lost) - 0.136) <= binomial(0.136, n) * 2.5
    # P(loss | loss before) by the chain: the bad state's share among losses, one step on
    bad = 0.2 * 0.6 / 0.136
    after = bad * 0.8 + (1 - bad) * 0.05
    expected = after * 0.6 + (1 - after) * 0.02
    pairs = [second for first, second in pairwise(lost) if first]
    assert abs(fmean(pairs) - expected) <= binomial(expected, len(pairs)) * 1.5


def test_the_configured_share_of_packets_is_duplicated(random: dict[str, Arrivals]) -> None:
    for name, share in (("duplicate", 0.05), ("all", 0.03 * 0.98)):
        arrived = [copies for copies in random[name].copies if copies]
        assert set(arrived) == {1, 2}
        twice = fmean(copies == 2 for copies in arrived)
        assert abs(twice - share) <= binomial(share, len(arrived)), name


def test_the_configured_share_of_packets_is_corrupted(random: dict[str, Arrivals]) -> None:
    """A flipped bit is found by a checksum or an address, unless it is one of the 48 of the sender's address."""
    frame = HEADERS + 100
    share = 0.05 * (1 - 6 / frame)
    assert abs(random["corrupt"].loss - share) <= binomial(share, len(random["corrupt"].sent))


def test_conditions_together_are_as_they_are_alone(random: dict[str, Arrivals]) -> None:
    """A rate of 10 Mbit/s queues no packets that come every 12 ms."""
    delays = random["all"].delays
    mean = 20_000 + transmission_us(HEADERS + 100, 10e6)
    assert abs(fmean(delays) - mean) <= ERRORS * 1000 / sqrt(len(delays)) + 10
    assert abs(pstdev(delays) / 1000 - 1) <= ERRORS * sqrt(2 / (4 * len(delays))) + 0.01
