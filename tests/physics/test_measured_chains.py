"""Chains of qdiscs delay, limit and lose on the laboratory kernel as their links are configured."""

from __future__ import annotations

from math import sqrt
from statistics import fmean, median

import pytest
from probes import ERRORS, FULL, HEADERS, Arrivals, Probe, binomial, scenario

from conftest import run_plan
from plait import kernel as kernels
from plait.binaries import AGENT
from plait.engine.virtual.trial import VirtualEngine
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

pytestmark = pytest.mark.guest

JUMBO = 9000 - 28

SPARSE = {
    "5 ms": Probe("{rate: 5mbit, delay: 5ms}", interval="5ms", packet=FULL),
    "lossy and fast": Probe("{rate: 1gbit, delay: 20ms, loss: 1%}", interval="1ms", packet=FULL),
    "delay alone": Probe("{delay: 3ms}", interval="1ms", packet=FULL),
    "rate alone": Probe("{rate: 10gbit}", interval="1ms", packet=FULL),
    "lossy and slow": Probe(
        "{rate: 100kbit, delay: 100ms, loss: 30%, mtu: 9000}", interval="1500ms", packet=JUMBO
    ),
    "jitter": Probe("{rate: 50mbit, delay: 10ms, jitter: 3ms}", interval="10ms", packet=FULL),
    "bursts": Probe(
        "{rate: 20mbit, delay: 40ms, jitter: {deviation: 5ms}, loss: {ratio: 2%, burst: 3pkt}, aqm: codel}",
        interval="50ms",
        packet=FULL,
    ),
}
"""Packets that meet no queue."""
FULL_LINKS = {
    5e6: Probe("{rate: 5mbit, delay: 5ms}", packets=1000, interval="1900us", packet=FULL),
    20e6: Probe("{rate: 20mbit, delay: 40ms, aqm: codel}", packets=1000, interval="480us", packet=FULL),
    97e6: Probe("{rate: 97mbit, delay: 30ms}", packets=1000, interval="99us", packet=FULL),
    1e9: Probe("{rate: 1gbit, delay: 20ms}", packets=6000, interval="9us", packet=FULL),
    100e3: Probe("{rate: 100kbit, delay: 100ms, mtu: 9000}", packets=100, interval="570ms", packet=JUMBO),
}
"""By their rate, links to which packets come faster than they can leave."""


@pytest.fixture(scope="module")
def arrived(tmp_path_factory: pytest.TempPathFactory) -> dict[object, Arrivals]:
    probes: dict[object, Probe] = {**SPARSE, **FULL_LINKS}
    (case,) = expand(parse(scenario(list(probes.values())), "test.yaml"))
    chains = VirtualEngine(kernels.ensure(), AGENT, links="chain")
    ran = run_plan(chains, resolve(case.scenario, 1), tmp_path_factory.mktemp("trial"))
    return {name: Arrivals(ran, 2 * number + 1) for number, name in enumerate(probes)}


@pytest.mark.parametrize(
    ("name", "delay_us"),
    [
        ("5 ms", 5000),
        ("lossy and fast", 20_000),
        ("delay alone", 3000),
        ("rate alone", 0),
        ("lossy and slow", 100_000),
    ],
)
def test_the_delay_is_right_within_10_us(arrived: dict[object, Arrivals], name: str, delay_us: int) -> None:
    assert abs(median(arrived[name].delays) - delay_us) <= 10


@pytest.mark.parametrize(
    ("name", "delay_us", "deviation_us"), [("jitter", 10_000, 3000 / sqrt(3)), ("bursts", 40_000, 5000)]
)
def test_jitter_leaves_the_mean_delay(
    arrived: dict[object, Arrivals], name: str, delay_us: int, deviation_us: float
) -> None:
    delays = arrived[name].delays
    assert abs(fmean(delays) - delay_us) <= 10 + ERRORS * deviation_us / sqrt(len(delays))


@pytest.mark.parametrize("rate_bps", FULL_LINKS)
def test_the_rate_is_exact_to_the_resolution_of_stamps(
    arrived: dict[object, Arrivals], rate_bps: float
) -> None:
    times = sorted(time for time in arrived[rate_bps].received if time is not None)
    settled = times[len(times) // 2 :]  # the bucket has no tokens left from before
    bytes_after_first = (len(settled) - 1) * (FULL_LINKS[rate_bps].packet + HEADERS)
    measured_bps = bytes_after_first * 8e6 / (settled[-1] - settled[0])
    assert measured_bps == pytest.approx(rate_bps, rel=0.001)


@pytest.mark.parametrize(
    ("name", "share"),
    [("5 ms", 0), ("lossy and fast", 0.01), ("lossy and slow", 0.3), ("jitter", 0)],
)
def test_the_loss_is_within_its_binomial_interval(
    arrived: dict[object, Arrivals], name: str, share: float
) -> None:
    assert abs(arrived[name].loss - share) <= binomial(share, len(arrived[name].sent))


def test_loss_in_bursts_has_its_mean(arrived: dict[object, Arrivals]) -> None:
    """A state of the Gilbert model lasts 3 packets in the mean, so the variance is 4.9 times the binomial one."""
    arrivals = arrived["bursts"]
    assert abs(arrivals.loss - 0.02) <= sqrt(4.9) * binomial(0.02, len(arrivals.sent))
