"""Calibration selects settings, measures each, and refuses figures out of tolerance, without a kernel."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from plait.calibration.calibrate import Calibration, refuse
from plait.calibration.probes import loss_ratio, measurement_plan
from plait.calibration.settings import Setting, Users, settings_of
from plait.calibration.verdict import FALSE_ALARM, MeasuredFigure, figures, lost_between, percent
from plait.errors import MachineError
from plait.plan.links.chain import qdiscs
from plait.plan.links.distributions import table
from plait.plan.model.qdiscs import Netem, Tbf
from scenario_samples import TWO, all_plans, direct, plan_of

if TYPE_CHECKING:
    from plait.calibration.probes import SettingProbe


def settings(text: str, *overrides: str) -> list[Setting]:
    return list(settings_of(("", plan) for plan in all_plans(text, *overrides)))


def messages(probe: SettingProbe, delays_us: list[float | None], pace_us: float | None) -> pl.DataFrame:
    """Return what an engine would have found: the probe's delays (None: lost), and full frames so far apart."""
    frames: list[tuple[int, int, int, int | None]] = [
        (probe.probe, i, 1000 * i, None if delay is None else 1000 * i + round(delay))
        for i, delay in enumerate(delays_us)
    ]
    if probe.saturate is not None and pace_us is not None:
        frames += [(probe.saturate, i, i, round(10**6 + i * pace_us)) for i in range(300)]
    columns = {"flow": pl.Int64, "index": pl.Int64, "sent_us": pl.Int64, "received_us": pl.Int64}
    table = pl.DataFrame(frames, schema=columns, orient="row")
    return table.with_columns(copies=pl.col("received_us").is_not_null().cast(pl.Int64))


def measured_figures(
    text: str, delays_us: list[float | None], pace_us: float | None = None
) -> dict[str, MeasuredFigure]:
    _, (probe,) = measurement_plan(settings(text))
    return {figure.name: figure for figure in figures(probe, messages(probe, delays_us, pace_us))}


def test_equal_links_are_one_setting_whatever_their_names_and_seeds() -> None:
    plans = [plan_of(TWO, seed=seed) for seed in (1, 2)]
    ((setting, users),) = settings_of(("some case", plan) for plan in plans).items()
    assert users.cases == ["some case"]
    assert users.links == ["h1->s1", "s1->h1", "s1->h2", "h2->s1", "h1->s2", "s2->h1", "s2->h2", "h2->s2"]
    assert (setting.mtu, setting.frame_bytes) == (1500, 1514)


def test_every_case_and_every_direction_counts() -> None:
    text = direct(
        "a-b: {rate: 5mbit, backward: {delay: 9ms}}", more="vary: {network.links.a-b.rate: [5mbit, 6mbit]}\n"
    )
    seen = settings(text)
    assert sorted((s.tbf.rate_bps, s.netem.delay_ns) for s in seen if s.tbf and s.netem) == [
        (5_000_000, 1000),
        (5_000_000, 9_000_000),
        (6_000_000, 1000),
        (6_000_000, 9_000_000),
    ]


def test_what_events_set_counts_and_a_cut_does_not() -> None:
    more = "events: [{at: 1s, set: {a-b: {rate: 3mbit}}}, {at: 2s, cut: a-b}]\n"
    seen = settings(direct("a-b: {rate: 5mbit}", more=more))
    assert [s.tbf.rate_bps for s in seen if s.tbf] == [5_000_000, 3_000_000]
    assert all(s.netem.loss_ratio == 0 for s in seen if s.netem)


def test_the_plan_holds_the_very_qdiscs_of_the_study() -> None:
    studied = plan_of(direct("a-b: {rate: 5mbit, delay: 7ms, loss: 2%, queue: 64KiB, mtu: 9000}"))
    probes, (probe,) = measurement_plan(list(settings_of([("", studied)])))
    forward, wanted = ([q.options for q in qdiscs(plan.links[0].directions[0])] for plan in (probes, studied))
    assert [o.kind for o in forward] == [o.kind for o in wanted]
    for probe_qdiscs, meant in zip(forward, wanted, strict=True):
        assert probe_qdiscs == meant or (
            isinstance(probe_qdiscs, Netem)
            and probe_qdiscs.delay_ns == 7_000_000
            and probe_qdiscs.loss_ratio == 0.02
        )
    assert {veth.mtu for veth in probes.network.veths} == {9000}
    assert probe.saturate is not None


def test_the_rate_is_measured_behind_a_constant_delay_without_loss() -> None:
    jitter = "{deviation: 2ms, distribution: pareto}"
    random = f"delay: 9ms, jitter: {jitter}, loss: 20%, duplicate: 1%, corrupt: 1%, reorder: 1%"
    (setting,) = settings(direct(f"a-b: {{rate: 8mbit, {random}}}"))
    plan, (probe,) = measurement_plan([setting])
    assert probe.saturate is not None
    flow = plan.flows[probe.saturate]
    assert flow.application.interval_ns == 1514 * 1000 * 0.8  # type: ignore[union-attr]
    (link,) = [link for link in plan.links if link.name == f"{flow.client.netns}-{flow.server.netns}"]
    netem, *others = [q.options for q in qdiscs(link.directions[0])]
    assert isinstance(netem, Netem)
    assert (netem.delay_ns, netem.jitter_ns, loss_ratio(setting.without_randomness())) == (9_000_000, 0, 0)
    assert (netem.duplicate_ratio, netem.corrupt_ratio, netem.reorder_ratio) == (0, None, None)
    assert others == [q.options for q in setting.qdiscs[1:]]


@pytest.mark.parametrize(("off_us", "good"), [(0, True), (9, True), (-9, True), (12, False), (-12, False)])
def test_a_delay_must_be_within_ten_microseconds(off_us: float, good: bool) -> None:
    figure = measured_figures(direct("a-b: {delay: 7ms}"), [7000 + off_us] * 50)["delay_us"]
    assert (figure.configured, figure.measured, figure.good) == (7000, 7000 + off_us, good)


@pytest.mark.parametrize(("factor", "good"), [(1.0, True), (1.004, True), (1.006, False), (0.994, False)])
def test_a_rate_must_be_within_half_a_percent(factor: float, good: bool) -> None:
    pace_us = 1514 * 8 / 5 / factor
    figure = measured_figures(direct("a-b: {rate: 5mbit}"), [0] * 50, pace_us)["rate_bps"]
    assert figure.measured == pytest.approx(5e6 * factor, rel=1e-4)
    assert figure.good is good


def test_what_is_not_limited_has_no_rate_to_be_off() -> None:
    figure = measured_figures(direct("a-b: {delay: 7ms}"), [7000] * 50)["rate_bps"]
    assert (figure.configured, figure.measured, figure.good) == (None, None, True)


@pytest.mark.parametrize(("lost", "good"), [(0, False), (20, True), (40, True), (95, False)])
def test_loss_is_judged_by_its_binomial_interval(lost: int, good: bool) -> None:
    delays: list[float | None] = [None] * lost + [0.0] * (2000 - lost)
    figure = measured_figures(direct("a-b: {loss: 1.5%}"), delays)["loss_ratio"]
    assert figure.measured == lost / 2000
    assert figure.good is good


def test_a_single_packet_lost_where_none_may_be_is_refused() -> None:
    assert not measured_figures(direct("a-b: {delay: 1ms}"), [None] + [1000.0] * 49)["loss_ratio"].good


def test_nothing_measured_is_not_good() -> None:
    assert not measured_figures(direct("a-b: {delay: 1ms}"), [None] * 50)["delay_us"].good


@pytest.mark.parametrize("ratio", [0.0001, 0.01, 0.3, 0.97])
@pytest.mark.parametrize("copied", [0.0, 0.1])
def test_independent_loss_is_judged_by_the_binomial_distribution(ratio: float, copied: float) -> None:
    (setting,) = settings(direct(f"a-b: {{loss: {ratio * 100}%, duplicate: {copied * 100}%}}"))
    bounds = [binom.ppf(q, 2000, ratio * (1 - copied)) for q in (FALSE_ALARM / 2, 1 - FALSE_ALARM / 2)]
    assert list(lost_between(setting, 2000)) == bounds


def test_bursts_of_loss_are_judged_by_the_distribution_of_their_model() -> None:
    """The bounds hold for 20 000 drawn probes, and are not far beyond what occurs among them."""
    (setting,) = settings(direct("a-b: {loss: {ratio: 2%, burst: 3pkt}}"))
    low, high = lost_between(setting, 2000)
    r, p = 1 / 3, 0.02 / 0.98 / 3
    rng = np.random.default_rng(1)
    bad = np.zeros(20_000, dtype=bool)
    lost = np.zeros(20_000, dtype=int)
    for _ in range(2000):
        lost += bad
        draws = rng.random(20_000)
        bad = np.where(bad, draws >= r, draws < p)
    assert lost.mean() == pytest.approx(40, rel=0.02)
    assert low <= lost.min() <= lost.max() <= high
    assert lost.max() > 0.75 * high
    assert lost.max() > binom.ppf(1 - FALSE_ALARM / 2, 2000, 0.02), "single losses would be told from bursts"


def test_every_rate_has_a_probe_that_ends() -> None:
    for rate in ("8kbit", "100gbit"):
        plan, _ = measurement_plan(settings(direct(f"a-b: {{rate: {rate}, delay: 1s}}")))
        assert plan.end_us < inf
        assert plan.end_us > max(flow.start_us for flow in plan.flows)
    assert isinstance(settings(direct("a-b: {rate: 1gbit}"))[0].tbf, Tbf)


@pytest.mark.slow
@pytest.mark.parametrize("jitter", ["5ms", "{deviation: 2ms}", "{deviation: 4ms, distribution: pareto}"])
def test_the_mean_of_few_jittered_packets_may_be_off_by_more(jitter: str) -> None:
    """A draw of the configured jitter is accepted in each of 2000 probes, and one that is too long is refused."""
    text = direct(f"a-b: {{delay: 20ms, jitter: {jitter}}}")
    (setting,) = settings(text)
    netem = setting.netem
    assert netem is not None
    rng = np.random.default_rng(3)
    shape = [-1.0, 1.0]
    if netem.distribution is not None:
        shape = [value / 8192 for value in table(netem.distribution).values]
    rooms = []
    for packets in (100, 1000):
        for _ in range(50):
            drawn = rng.uniform(-1, 1, packets) if len(shape) == 2 else rng.choice(shape, packets)
            delay = measured_figures(text, list(20_000 + drawn * netem.jitter_ns / 1000))["delay_us"]
            assert delay.good
        assert delay.high is not None
        rooms.append(delay.high - 20_000)
        off = list(20_000 + 2 * rooms[-1] + drawn * netem.jitter_ns / 1000)
        assert not measured_figures(text, off)["delay_us"].good
    assert 2 < (rooms[0] - 10) / (rooms[1] - 10) < 10, "with the root of the number of packets, or faster"


def test_a_high_rate_may_be_off_by_the_resolution_of_the_stamps() -> None:
    text = direct("a-b: {rate: 10gbit}")
    measured_us = (299 - settings(text)[0].settling_frames) * 1.2112
    fast = measured_figures(text, [0] * 50, 1.2112)["rate_bps"]
    slow = measured_figures(direct("a-b: {rate: 5mbit}"), [0] * 50, 1514 * 8 / 5)["rate_bps"]
    assert fast.high is not None
    assert slow.high is not None
    assert fast.high / 10e9 - 1 == pytest.approx(0.005 + 2 / measured_us, rel=0.02)
    assert slow.high / 5e6 - 1 == pytest.approx(0.005, rel=0.01)


def test_a_refusal_names_case_setting_and_figures_as_people_read_them() -> None:
    jitter = "{deviation: 4ms, distribution: pareto}"
    (setting,) = settings(
        direct(f"a-b: {{rate: 50mbit, delay: 30ms, jitter: {jitter}, loss: 1%, mtu: 9000}}")
    )
    wrong = [
        MeasuredFigure("rate_bps", 5e7, 4.85e7, 4.975e7, 5.025e7, 300),
        MeasuredFigure("delay_us", 30_000.0, 30_040.0, 29_990.0, 30_010.0, 50),
        MeasuredFigure("loss_ratio", 0.01, 0.031, 0.003, 0.02, 2000),
        MeasuredFigure("rate_bps", 5e7, None, None, None, 0),
    ]
    calibration = Calibration(
        "virtual", {setting: Users(["a->b"], ["rate=50mbit", "other"])}, {setting: wrong}, 1
    )
    with pytest.raises(MachineError) as refused:
        refuse(calibration)
    lines = str(refused.value).splitlines()
    place = "  a->b in case rate=50mbit and 1 more (50 Mbit/s, 30 ms, "
    place += "pareto jitter with a deviation of 4 ms, 1 % loss, "
    assert all(line.startswith(f"{place}MTU 9000): its ") for line in lines[1:5])
    assert lines[1].endswith(
        "its rate is 48.5 Mbit/s instead of 50 Mbit/s, 3 % too low, where 0.5 % is allowed"
    )
    assert lines[2].endswith("its delay is 30.04 ms instead of 30 ms, 40 us too long, where 10 us is allowed")
    assert lines[3].endswith("its loss is 3.1 % of 2000 packets instead of 1 %; by chance it is 0.3 % to 2 %")
    assert lines[4].endswith("its rate could not be measured, because only 0 packets arrived")
    assert "plait doctor" in lines[-1]
    assert "kernel build" not in str(refused.value)
    assert "e+" not in str(refused.value)


def test_small_errors_are_printed_as_people_read_them() -> None:
    assert [percent(ratio) for ratio in (0.0, 5.5e-7, 2e-5, 0.0051, 0.5)] == [
        "0 %", "0.001 %", "0.002 %", "0.51 %", "50 %",
    ]  # fmt: skip
