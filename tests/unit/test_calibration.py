"""Which settings are measured, what of them, and when the figures are refused; without a kernel."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import polars as pl
import pytest
from scenario_samples import TWO, all_plans, direct, plan_of
from scipy.stats import binom

from plait.calibration.probes import probing
from plait.calibration.settings import Setting, settings_of
from plait.calibration.verdict import Figure, binomial_quantile, figures
from plait.plan.qdiscs import Netem, Tbf

if TYPE_CHECKING:
    from plait.calibration.probes import Probing


def settings(text: str, *overrides: str) -> list[Setting]:
    return list(settings_of(all_plans(text, *overrides)))


def messages(one: Probing, delays_us: list[float | None], pace_us: float | None) -> pl.DataFrame:
    """What an engine would have found: the probe's delays (None: lost), and full frames so far apart."""
    frames: list[tuple[int, int, int, int | None]] = [
        (one.probe, i, 1000 * i, None if delay is None else 1000 * i + round(delay))
        for i, delay in enumerate(delays_us)
    ]
    if one.saturate is not None and pace_us is not None:
        frames += [(one.saturate, i, i, round(10**6 + i * pace_us)) for i in range(300)]
    columns = {"flow": pl.Int64, "index": pl.Int64, "sent_us": pl.Int64, "received_us": pl.Int64}
    table = pl.DataFrame(frames, schema=columns, orient="row")
    return table.with_columns(copies=pl.col("received_us").is_not_null().cast(pl.Int64))


def found(text: str, delays_us: list[float | None], pace_us: float | None = None) -> dict[str, Figure]:
    _, (one,) = probing(settings(text))
    return {figure.name: figure for figure in figures(one, messages(one, delays_us, pace_us))}


def test_equal_links_are_one_setting_whatever_their_names_and_seeds() -> None:
    plans = [plan_of(TWO, seed=seed) for seed in (1, 2)]
    ((setting, users),) = settings_of(plans).items()
    assert users == ["h1->s1", "s1->h1", "s1->h2", "h2->s1", "h1->s2", "s2->h1", "s2->h2", "h2->s2"]
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
    probes, (one,) = probing(list(settings_of([studied])))
    forward = [q.options for q in probes.network.qdiscs if q.ifname == probes.links[0].directions[0].ifname]
    wanted = [q.options for q in studied.network.qdiscs if q.ifname == studied.links[0].directions[0].ifname]
    assert [o.kind for o in forward] == [o.kind for o in wanted]
    for own, meant in zip(forward, wanted, strict=True):
        assert own == meant or (
            isinstance(own, Netem) and own.delay_ns == 7_000_000 and own.loss_ratio == 0.02
        )
    assert {veth.mtu for veth in probes.network.veths} == {9000}
    assert one.saturate is not None


def test_saturating_packets_come_faster_than_the_rate_also_after_losses() -> None:
    (setting,) = settings(direct("a-b: {rate: 8mbit, loss: 20%}"))
    plan, (one,) = probing([setting])
    assert one.saturate is not None
    udp = plan.flows[one.saturate].application
    frame_ns = 1514 * 1000
    assert udp.interval_ns * 1.25 == pytest.approx(frame_ns * 0.8, rel=0.01)  # type: ignore[union-attr]


@pytest.mark.parametrize(("off_us", "good"), [(0, True), (9, True), (-9, True), (12, False), (-12, False)])
def test_a_delay_must_be_within_ten_microseconds(off_us: float, good: bool) -> None:
    figure = found(direct("a-b: {delay: 7ms}"), [7000 + off_us] * 50)["delay_us"]
    assert (figure.meant, figure.measured, figure.good) == (7000, 7000 + off_us, good)


@pytest.mark.parametrize(("factor", "good"), [(1.0, True), (1.004, True), (1.006, False), (0.994, False)])
def test_a_rate_must_be_within_half_a_percent(factor: float, good: bool) -> None:
    pace_us = 1514 * 8 / 5 / factor
    figure = found(direct("a-b: {rate: 5mbit}"), [0] * 50, pace_us)["rate_bps"]
    assert figure.measured == pytest.approx(5e6 * factor, rel=1e-4)
    assert figure.good is good


def test_what_is_not_limited_has_no_rate_to_be_off() -> None:
    figure = found(direct("a-b: {delay: 7ms}"), [7000] * 50)["rate_bps"]
    assert (figure.meant, figure.measured, figure.good) == (None, None, True)


@pytest.mark.parametrize(("lost", "good"), [(0, False), (20, True), (40, True), (95, False)])
def test_loss_is_judged_by_its_binomial_interval(lost: int, good: bool) -> None:
    delays: list[float | None] = [None] * lost + [0.0] * (2000 - lost)
    figure = found(direct("a-b: {loss: 1.5%}"), delays)["loss_ratio"]
    assert figure.measured == lost / 2000
    assert figure.good is good


def test_a_single_packet_lost_where_none_may_be_is_refused() -> None:
    assert not found(direct("a-b: {delay: 1ms}"), [None] + [1000.0] * 49)["loss_ratio"].good


def test_nothing_measured_is_not_good() -> None:
    assert not found(direct("a-b: {delay: 1ms}"), [None] * 50)["delay_us"].good


@pytest.mark.parametrize("ratio", [0.0001, 0.01, 0.3, 0.97])
@pytest.mark.parametrize("q", [5e-7, 0.5, 1 - 5e-7])
def test_the_binomial_quantile_is_that_of_scipy(ratio: float, q: float) -> None:
    assert binomial_quantile(q, 2000, ratio) == binom.ppf(q, 2000, ratio)


def test_every_rate_has_a_probe_that_ends() -> None:
    for rate in ("8kbit", "100gbit"):
        plan, _ = probing(settings(direct(f"a-b: {{rate: {rate}, delay: 1s}}")))
        assert plan.end_us < inf
        assert plan.end_us > max(flow.start_us for flow in plan.flows)
    assert isinstance(settings(direct("a-b: {rate: 1gbit}"))[0].tbf, Tbf)
