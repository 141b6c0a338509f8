"""Conditions of links are read, located mistakes are refused, and the right qdiscs follow."""

from __future__ import annotations

from statistics import fmean, pstdev

import pytest

from plait.plan.links.chain import with_chains
from plait.plan.links.distributions import netem_jitter_ns, table
from plait.plan.model.qdiscs import Codel, FqCodel, Netem, Pfifo, PlaitRed, Qdisc, Red, Tbf
from plait.plan.shell.script import to_shell
from plait.scenario.check.conditions import SHORTEST
from scenario_samples import direct, mistakes, mistakes_as_text, plan_of


def forward(link: str) -> list[Qdisc]:
    """Return the qdiscs of a->b."""
    return [
        qdisc
        for qdisc in with_chains(plan_of(direct(f"a-b: {link}")), exact=False).network.qdiscs
        if qdisc.ifname == "w0b"
    ]


def netem(link: str) -> Netem:
    options = forward(link)[0].options
    assert isinstance(options, Netem)
    return options


def last(link: str) -> object:
    return forward(link)[-1].options


@pytest.mark.parametrize("name", ["normal", "pareto", "paretonormal", "uniform"])
def test_a_table_has_mean_0_and_the_deviation_in_netems_option(name: str) -> None:
    values = table(name).values
    scale = 8192 * 3**0.5 / 3 if name == "uniform" else 1e9 * 8192 / netem_jitter_ns(name, 10**9)
    assert abs(fmean(values)) / scale < 1e-5
    assert pstdev(values) / scale == pytest.approx(1, abs=1e-5 if name != "uniform" else 1e-3)
    assert max(values) <= 32767


@pytest.mark.parametrize("name", SHORTEST)
def test_the_shortest_delay_is_known_where_it_is_checked(name: str) -> None:
    lowest = table(name).values[0] * netem_jitter_ns(name, 10**9) / (8192 * 1e9)
    assert -SHORTEST[name] <= lowest < -SHORTEST[name] + 0.02


def test_short_forms_mean_what_the_long_ones_say() -> None:
    assert netem("{delay: 9ms, jitter: 2ms}") == netem("{delay: 9ms, jitter: {within: 2ms}}")
    assert netem("{loss: 1%}") == netem("{loss: {ratio: 1%}}")
    assert last("{rate: 1mbit, aqm: codel}") == last("{rate: 1mbit, aqm: {codel: {target: 5ms}}}")
    assert last("{rate: 1mbit, aqm: droptail}") == last("{rate: 1mbit}") == Pfifo(limit_packets=100)


def test_jitter_keeps_the_order_unless_asked() -> None:
    assert not netem("{delay: 9ms}").in_order
    assert netem("{delay: 9ms, jitter: 2ms}").in_order
    assert not netem("{delay: 9ms, jitter: {within: 2ms, reorder: true}}").in_order


def test_bursts_of_loss_are_a_gemodel_of_the_same_ratio() -> None:
    model = netem("{loss: {ratio: 2%, burst: 5pkt}}").gemodel
    assert model is not None
    assert model.p / (model.p + model.r) == pytest.approx(0.02)
    assert 1 / model.r == pytest.approx(5)
    assert (model.loss_bad, model.loss_good) == (1, 0)
    planned = (
        plan_of(direct("a-b: {loss: {gemodel: {p: 5%, r: 20%, 1-h: 60%, 1-k: 2%}}}")).links[0].directions[0]
    )
    assert planned.loss_ratio == pytest.approx(0.2 * 0.6 + 0.8 * 0.02)


def test_unset_conditions_give_no_netem_attribute() -> None:
    """An attribute that is given draws a random number, and so changes what other trials see."""
    plain = netem("{delay: 5ms, loss: 1%}")
    assert (plain.reorder_ratio, plain.corrupt_ratio, plain.distribution) == (None, None, None)
    assert plan_of(direct("a-b: {delay: 5ms}")).network.distributions == ()


def test_linux_draws_one_slope_and_plait_the_others() -> None:
    assert isinstance(last("{rate: 10mbit, aqm: {red: {min: 25pkt, max: 50pkt}}}"), Pfifo)
    red = forward("{rate: 10mbit, aqm: {red: {min: 25pkt, max: 50pkt}}}")[2].options
    assert isinstance(red, Red)
    assert (red.min_bytes, red.max_bytes, red.probability) == (25 * 1514, 50 * 1514, 0.1)
    gentle = last("{rate: 10mbit, aqm: {red: {min: 25pkt, max: 50pkt, gentle: true}}}")
    drawn = last("{rate: 10mbit, aqm: {red: {points: {25pkt: 0%, 50pkt: 10%, 100pkt: 100%}}}}")
    assert isinstance(gentle, PlaitRed)
    assert gentle == drawn
    assert gentle.points == ((25 * 256, 0), (50 * 256, round(0.1 * (2**32 - 1))), (100 * 256, 2**32 - 1))
    assert gentle.idle_ns == 1_211_200


def test_reds_average_decays_as_if_packets_had_left() -> None:
    """After m frames of silence (1 - w)^m of it is left; the kernel halves it so often."""
    red = forward("{rate: 10mbit, aqm: {red: {min: 25pkt, max: 50pkt, weight_log: 9}}}")[2].options
    assert isinstance(red, Red)
    assert len(red.idle_shifts) == 256
    halving_us = 1211.2 * 0.6931 / -__import__("math").log1p(-(2.0**-9))
    for cell in (10, 100, 250):
        idle_us = cell << red.idle_log
        assert red.idle_shifts[cell] == min(31, int(idle_us / halving_us))


def test_codel_queues_are_the_kernels_unless_given() -> None:
    codel, fq = last("{rate: 1mbit, aqm: codel}"), last("{rate: 1mbit, aqm: fq_codel}")
    assert isinstance(codel, Codel)
    assert isinstance(fq, FqCodel)
    assert (codel.limit_packets, codel.ecn, fq.limit_packets, fq.ecn, fq.quantum_bytes) == (
        1000,
        False,
        10240,
        True,
        1514,
    )
    assert last("{rate: 1mbit, queue: 7pkt, aqm: codel}").limit_packets == 7


def test_a_bucket_is_tbf_with_the_rate_as_its_peak() -> None:
    bucket = forward("{rate: 10mbit, bucket: {baseline: 2mbit, burst: 1MB}}")[1].options
    assert bucket == Tbf(
        rate_bps=2_000_000, burst_bytes=10**6, limit_bytes=151_400, peak_bps=10_000_000, peak_burst_bytes=3028
    )


def test_a_bucket_without_a_baseline_is_the_burst_of_a_shaper() -> None:
    bucket = forward("{rate: 10mbit, bucket: {burst: 5kB}}")[1].options
    assert bucket == Tbf(rate_bps=10_000_000, burst_bytes=5000, limit_bytes=151_400)
    (flow,) = plan_of(direct("a-b: {rate: 10mbit, bucket: {burst: 5kB}}")).flows
    assert flow.ideal_rate_bps == 10_000_000


HOSTS = (
    "title: t\nnetwork: {{hosts: {{a: {{bucket: {bucket}}}, b: {b}}}, links: {{a-b: {{}}, 'a-b#2': {{}}}}}}\n"
)
FLOW = "traffic: [bulk: {from: a, to: b, duration: 1s}]\n"


@pytest.mark.parametrize(
    ("direction", "devices"),
    [
        ("out", {"bucket0": {"w0b", "w1b"}}),
        ("in", {"bucket0": {"w0a", "w1a"}}),
        ("each", {"bucket0": {"w0b", "w1b"}, "bucket1": {"w0a", "w1a"}}),
        ("together", {"bucket0": {"w0a", "w0b", "w1a", "w1b"}}),
    ],
)
def test_interfaces_that_share_a_bucket_are_sent_to_one_device(
    direction: str, devices: dict[str, set[str]]
) -> None:
    bucket = f"{{baseline: 2mbit, peak: 8mbit, burst: 1MB, direction: {direction}}}"
    plan = plan_of(HOSTS.format(bucket=bucket, b="{}") + FLOW)
    targets: dict[str, set[str]] = {}
    for redirect in plan.network.redirects:
        if redirect.hook == "egress":
            targets.setdefault(redirect.target, set()).add(redirect.source)
    assert targets == devices
    assert {ifb.ifname for ifb in plan.network.ifbs} == set(devices)
    assert plan.flows[0].ideal_rate_bps is None


def test_two_buckets_cannot_hold_the_same_direction() -> None:
    bucket = "{baseline: 2mbit, peak: 8mbit, burst: 1MB}"
    text = mistakes_as_text(HOSTS.format(bucket=bucket, b=f"{{bucket: {bucket}}}") + FLOW)
    assert "network.hosts.b.bucket: packets on b->a would need tokens of the buckets of a and b" in text


@pytest.mark.parametrize(
    ("link", "path", "message"),
    [
        ("{delay: 5ms, jitter: 6ms}", "jitter", "greater than the delay"),
        ("{delay: 5ms, jitter: {deviation: 2ms}}", "jitter", "at least 7.34ms"),
        ("{delay: 5ms, jitter: {deviation: 2ms, within: 1ms}}", "jitter", "either a half width (within)"),
        ("{delay: 5ms, jitter: {within: 1ms, distribution: normal}}", "jitter", "write deviation instead"),
        (
            "{delay: 5ms, jitter: {deviation: 1ms, distribution: gauss}}",
            "jitter.distribution",
            "use one of: normal",
        ),
        ("{delay: 5ms, jitter: {deviaton: 1ms}}", "jitter.deviaton", "deviation"),
        ("{loss: {burst: 3pkt}}", "loss", "either a ratio or a gemodel"),
        ("{loss: {ratio: 90%, burst: 2pkt}}", "loss", "at most 66.67%"),
        ("{loss: {ratio: 1%, burst: 3}}", "loss.burst", "has no unit"),
        ("{loss: {ratio: 1%, burst: 0.5pkt}}", "loss.burst", "out of range"),
        ("{loss: {gemodel: {p: 0%, r: 0%}}}", "loss.gemodel", "never changes"),
        ("{loss: {gemodel: {p: 1%, r: 10%, h: 1%}}}", "loss.gemodel.h", "no such field"),
        ("{reorder: 5%}", "reorder", "without a delay"),
        ("{duplicate: 5}", "duplicate", "has no unit"),
        ("{aqm: codel}", "aqm", "add a rate"),
        ("{queue: 5pkt}", "queue", "add a rate"),
        ("{rate: 1mbit, aqm: coddle}", "aqm.coddle", "codel"),
        ("{rate: 1mbit, aqm: {codel: {}, red: {min: 1pkt, max: 2pkt}}}", "aqm", "aqm needs exactly one kind"),
        ("{rate: 1mbit, aqm: red}", "aqm.red", "red needs a curve"),
        ("{rate: 1mbit, aqm: {red: {min: 50pkt, max: 25pkt}}}", "aqm.red.max", "is not above min"),
        ("{rate: 1mbit, aqm: {red: {min: 1pkt, points: {5pkt: 1%}}}}", "aqm.red", "remove min"),
        ("{rate: 1mbit, aqm: {red: {points: {9pkt: 1%, 5pkt: 2%}}}}", "aqm.red.points", "ascend"),
        (
            "{rate: 1mbit, aqm: {red: {points: {5pkt: 3%, 9pkt: 2%}}}}",
            "aqm.red.points",
            "write a probability that does not fall",
        ),
        ("{rate: 1mbit, aqm: {red: {points: {5pkt: 3%, 9KB: 2%}}}}", "aqm.red.points", "several units"),
        (
            "{rate: 1mbit, aqm: {red: {min: 9pkt, max: 9999pkt, weight_log: 12}}}",
            "aqm.red.weight_log",
            "at most",
        ),
        ("{rate: 1mbit, queue: 9KB, aqm: codel}", "queue", "counts packets; write for example 5pkt"),
        (
            "{rate: 1mbit, aqm: {codel: {target: 9ms, interval: 5ms}}}",
            "aqm.codel.interval",
            "not above the target",
        ),
        ("{rate: 1mbit, bucket: {baseline: 1mbit, burst: 1MB}}", "bucket.baseline", "not below the rate"),
        ("{rate: 1mbit, bucket: {baseline: 8kbit, burst: 1KB}}", "bucket.burst", "out of range"),
        ("{rate: 1mbit, bucket: {baseline: 8kbit, burst: 5GB}}", "bucket.burst", "out of range"),
        ("{rate: 1mbit, bucket: {baseline: 8kbit}}", "bucket.burst", "missing"),
        ("{rate: 1mbit, bucket: {burst: 1KB}}", "bucket.burst", "out of range"),
        ("{bucket: {baseline: 8kbit, burst: 1MB}}", "bucket", "add a rate"),
        ("{rate: 1000001bit}", "rate", "write for example 1000000bit"),
        ("{delay: 5ms, forward: {jitter: 6ms}}", "forward.jitter", "greater than the delay"),
    ],
)
def test_contradictory_conditions_are_reported_at_their_place(link: str, path: str, message: str) -> None:
    (mistake,) = mistakes(direct(f"a-b: {link}"))
    assert mistake.path == f"network.links.a-b.{path}"
    assert message in mistake.message
    assert mistake.line is not None


def test_a_shared_bucket_is_checked_too() -> None:
    bucket = "{baseline: 9mbit, peak: 8mbit, burst: 1MB, links: [a-c], queue: 100B}"
    text = mistakes_as_text(HOSTS.format(bucket=bucket, b="{}") + FLOW)
    assert "network.hosts.a.bucket.baseline: 9mbit is not below the peak 8mbit" in text
    assert "network.hosts.a.bucket.links.0: a has no link 'a-c'" in text
    assert "network.hosts.a.bucket.queue: 100B is less than one frame" in text
    text = mistakes_as_text(HOSTS.format(bucket="{peak: 8mbit, burst: 1MB}", b="{}") + FLOW)
    assert "network.hosts.a.bucket.baseline: this field is missing" in text


def test_the_shell_form_makes_the_same_qdiscs() -> None:
    links = (
        "a-b: {rate: 8mbit, delay: 9ms, jitter: {deviation: 1ms}, loss: {ratio: 1%, burst: 4pkt}, duplicate: 1%, "
        "corrupt: 2%, reorder: 3%, aqm: {codel: {ecn: true}}, bucket: {baseline: 1mbit, burst: 1MB}}"
    )
    script = to_shell(plan_of(direct(links)))
    assert (
        "netem limit 1000000 delay 9ms 1ms distribution plait-normal loss gemodel 0.252525252525% 25% 100% 0% "
        "duplicate 1% reorder 3% corrupt 2% rate 8000tbit\n"
    ) in script
    assert 'cat > "$TC_LIB_DIR/plait-normal.dist" <<END\n' in script
    assert "tbf rate 1mbit burst 1000000 limit 1514000 peakrate 8mbit mtu 1534\n" in script
    assert "codel limit 1000 target 5ms interval 100ms ecn\n" in script
    line = "tc -n wire qdisc add dev w0b root handle 1: netem limit 1000000 delay 0s rate 8mbit"
    assert line in script


def test_the_shell_form_fails_where_no_tc_can_do_it() -> None:
    script = to_shell(plan_of(direct("a-b: {rate: 8mbit, aqm: {red: {min: 5pkt, max: 9pkt, gentle: true}}}")))
    assert (
        "# queue0 in wire needs the qdisc plait_red, which only plait's kernel has and no tc supports\n"
        in script
    )
    assert 'no tc supports; stopping here" >&2; exit 1\n' in script
