"""The reference model obeys known laws, and shows why OLIA keeps more than one segment on a congested path."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from coupling_networks import FRAME_BITS, Groups, Run, empty, lossy, scenario_c
from coupling_packets import KHALILI, Clock, Queue, Route
from coupling_rules import LIA, OLIA, OLIA_WITHOUT_ALPHA, RENO, Rule
from coupling_sender import EQUATIONS, LINUX, Behaviour, Connection
from coupling_vegas import VegasConnection

LOSS = 0.01
SHORT = Run(5, 65, delay=0.02)


@cache
def scenario(rule: Rule, behaviour: Behaviour) -> Groups:
    """Scenario C with 15 MPTCP and 5 TCP users."""
    return scenario_c(rule, Run(10, 25, behaviour=behaviour), 15, 5)


@pytest.mark.parametrize("behaviour", [EQUATIONS, LINUX])
def test_reno_follows_the_square_root_law(behaviour: Behaviour) -> None:
    path = lossy(RENO, replace(SHORT, behaviour=behaviour), (LOSS,))["path0"]
    packets = path.rate / FRAME_BITS
    share = path.losses / (packets + path.losses)
    assert share == pytest.approx(LOSS, rel=0.15)
    assert packets * path.srtt * math.sqrt(share) == pytest.approx(math.sqrt(1.5), rel=0.1)


def test_two_lia_subflows_take_what_one_reno_flow_takes() -> None:
    two = lossy(LIA, SHORT, (LOSS, LOSS))
    reno = lossy(RENO, SHORT, (LOSS,))["path0"]
    assert two["path0"].rate + two["path1"].rate == pytest.approx(reno.rate, rel=0.12)


def test_the_equations_alone_keep_olia_above_one_segment_on_a_congested_path() -> None:
    shared = scenario(OLIA, EQUATIONS)["shared"]
    assert 1.5 < shared.cwnd < 2
    assert 1.15 < shared.ssthresh < 1.4


def test_alpha_is_part_of_the_reason() -> None:
    with_alpha, without = (scenario(rule, EQUATIONS) for rule in (OLIA, OLIA_WITHOUT_ALPHA))
    assert without["shared"].cwnd < 0.95 * with_alpha["shared"].cwnd
    assert without["tcp"].rate > 1.05 * with_alpha["tcp"].rate


def test_linux_hardly_changes_what_olia_leaves_to_tcp_users() -> None:
    equations, linux = (scenario(OLIA, behaviour) for behaviour in (EQUATIONS, LINUX))
    assert linux["tcp"].rate == pytest.approx(equations["tcp"].rate, rel=0.08)
    assert linux["shared"].timeouts > equations["shared"].timeouts == 0


def test_an_ssthresh_of_two_segments_would_cost_the_tcp_users_a_fifth() -> None:
    floor = scenario(OLIA, replace(EQUATIONS, least_ssthresh=2))
    assert floor["tcp"].rate < 0.85 * scenario(OLIA, EQUATIONS)["tcp"].rate


def test_random_early_detection_drops_by_the_published_curve() -> None:
    clock = Clock()
    queue = Queue(clock, Random(1), 1000, 1000, KHALILI)
    drops = {25: 0.0, 50: 0.1, 75: 0.55, 99.9: 0.998}
    for length, share in drops.items():
        clock.now, queue._free = 0.0, length / queue.rate
        assert queue._drop_probability() == pytest.approx(share, abs=1e-3)


@pytest.mark.parametrize(("probes", "timeouts"), [(True, 0), (False, 1)])
def test_a_lone_lost_packet_costs_a_probe_or_a_timeout(probes: bool, timeouts: int) -> None:
    clock = Clock()
    behaviour = Behaviour(whole_segments=True, detects_losses=True, probes=probes)
    queue = Queue(clock, Random(1), 1000, 1000)
    still = Rule("still", lambda *_: 0.0)
    subflow = Connection(still, behaviour).join(clock, Route(clock, ((queue, 0.05),), 0.05), 0.0)
    subflow.cwnd = subflow.ssthresh = 1.0
    clock.run(2.0)
    before = subflow.delivered
    queue.loss = 1.0
    clock.run(clock.now + 0.15)
    queue.loss = 0.0
    clock.run(clock.now + 1.0)
    assert subflow.timeouts == timeouts
    assert subflow.losses == 1
    assert subflow.delivered > before


@pytest.mark.parametrize("rates", [(10e6,), (10e6, 10e6)])
def test_wvegas_keeps_ten_segments_in_queues(rates: tuple[float, ...]) -> None:
    paths = empty(VegasConnection(), Run(8, 16, delay=0.02), rates)
    waiting = 0.0
    for path, rate in zip(paths.values(), rates, strict=True):
        assert path.rate == pytest.approx(rate, rel=0.01)
        waiting += (path.srtt - 0.04 - FRAME_BITS / rate) * rate / FRAME_BITS
    assert waiting == pytest.approx(10, abs=2), "windows change by a segment per round"
