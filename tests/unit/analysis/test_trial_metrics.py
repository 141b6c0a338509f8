"""The metrics of a trial equal values that a person computes by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from fake_plans import FakeFlow, FakePath, fake_plan
from fake_tables import fake_tables, make_tables
from plait.analysis.cautions.mptcp import Observation
from plait.analysis.cautions.observations import cautions, observe
from plait.analysis.metrics.ideal import ideal_goodput_bps, payload_ratio, single_path_goodputs_bps
from plait.analysis.metrics.trial import jain_index, trial_metrics
from plait.analysis.series import MOST_SERIES, POINTS, trial_series
from plait.traffic.request import Request
from scenario_samples import plan_of

if TYPE_CHECKING:
    from plait.metrics import Metrics
from plait.plan.model.plan import Plan

BULK = {"flow": 0, "kind": "bulk", "start_us": 500_000, "end_us": 10_500_000, "completed": True}
TCP = fake_plan(FakeFlow(transport="tcp"))
MPTCP = fake_plan()
TWO_LINKS = """\
title: Two flows
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit, delay: 5ms}}}
"""
ANSWERS = Request(request_bytes=8, response_bytes=9000, loop="closed", count=1)


def subflow(number: int, t_us: int = 10_500_000, side: str = "client", **columns: Any) -> dict[str, Any]:
    here, there = (f"10.0.{number}.1", f"10.0.{number}.2")
    if side == "server":
        here, there = there, here
    addresses = {"local_address": here, "remote_address": there, "local_port": 1, "remote_port": 2}
    if side == "server":
        addresses |= {"local_port": 2, "remote_port": 1}
    return {"t_us": t_us, "flow": 0, "side": side, "subflow": number, **addresses, **columns}


def metrics(plan: Plan, **rows: list[dict[str, Any]]) -> Metrics:
    return trial_metrics(plan, make_tables(rows))


def test_bulk_goodput_counts_received_bytes_over_exactly_the_duration() -> None:
    values = metrics(TCP, flows=[BULK | {"received_bytes": 6_000_000}])
    assert values["goodput_bps"] == 6_000_000 * 8 / 10
    assert values["completion_s"] is None


def test_transfer_goodput_counts_from_connect_to_the_last_byte() -> None:
    plan = fake_plan(FakeFlow(transport="tcp", bytes=45_000_000))
    row = {"flow": 0, "start_us": 0, "end_us": 36_000_000, "completed": True, "received_bytes": 45_000_000}
    values = metrics(plan, flows=[row])
    assert values["goodput_bps"] == 10_000_000
    assert values["completion_s"] == 36
    unfinished = metrics(plan, flows=[row | {"completed": False, "end_us": None}])
    assert unfinished["goodput_bps"] is None
    assert unfinished["completion_s"] is None


def test_several_transfers_complete_with_the_last_one() -> None:
    plan = fake_plan(FakeFlow(bytes=1000), FakeFlow(bytes=1000, start_us=2_000_000))
    rows = [
        {"flow": 0, "start_us": 0, "end_us": 4_000_000, "completed": True, "received_bytes": 1_000_000},
        {
            "flow": 1,
            "start_us": 2_000_000,
            "end_us": 5_000_000,
            "completed": True,
            "received_bytes": 1_500_000,
        },
    ]
    values = metrics(plan, flows=rows)
    assert values["completion_s"] == 5
    assert values["goodput_bps"] == 2_500_000 * 8 / 5, "all bytes over the time in which any flow is active"
    assert values["flow1.completion_s"] == 4
    assert values["flow2.goodput_bps"] == 4_000_000
    assert values["jain_index"] == pytest.approx(36 / (2 * 20))
    assert values["ideal_goodput_bps"] is None, "flows that compete have no ceiling of their own"
    assert metrics(plan, flows=rows[:1])["goodput_bps"] is None, "a sum with an unknown part is not known"


def test_what_was_not_measured_is_null_and_never_zero() -> None:
    values = metrics(MPTCP)
    ideal = {"ideal_goodput_bps"}  # known from the plan
    assert {name for name, value in values.items() if value is not None} == ideal
    assert "jain_index" in values


@pytest.mark.parametrize(
    ("plan", "transport", "expected"),
    [
        (TCP, "tcp", 1448 / 1514),
        (MPTCP, "mptcp", 1424 / 1514),
        (fake_plan(mtu=9000), "tcp", 8948 / 9014),
    ],
)
def test_a_full_frame_has_the_payload_of_its_headers_arithmetic(
    plan: Plan, transport: str, expected: float
) -> None:
    assert payload_ratio(plan, plan.flows[0], transport=transport) == pytest.approx(expected)


def test_ipv6_and_missing_time_stamps_change_the_payload() -> None:
    flow = TCP.flows[0]
    v6 = flow.model_copy(update={"server": flow.server.model_copy(update={"address": "fd00::2"})})
    assert payload_ratio(TCP, v6, transport="tcp") == pytest.approx(1428 / 1514)
    spaces = [
        space.model_copy(update={"sysctls": (("net/ipv4/tcp_timestamps", "0"),)})
        if space.name == "h1"
        else space
        for space in TCP.network.namespaces
    ]
    plan = TCP.model_copy(update={"network": TCP.network.model_copy(update={"namespaces": tuple(spaces)})})
    assert payload_ratio(plan, flow, transport="tcp") == pytest.approx(1460 / 1514)


def test_one_and_two_paths_have_their_ideal_rate() -> None:
    assert ideal_goodput_bps(TCP, TCP.flows[0]) == pytest.approx(5e6 * 1448 / 1514)
    assert ideal_goodput_bps(MPTCP, MPTCP.flows[0]) == pytest.approx(10e6 * 1424 / 1514)
    assert single_path_goodputs_bps(MPTCP, MPTCP.flows[0]) == pytest.approx([5e6 * 1448 / 1514] * 2)
    unlimited = fake_plan(paths=(FakePath(None), FakePath()))
    assert ideal_goodput_bps(unlimited, unlimited.flows[0]) is None
    assert single_path_goodputs_bps(unlimited, unlimited.flows[0]) is None


@pytest.mark.parametrize(
    ("share_of_best", "expected"),
    [(1.0, 0.0), (1.5, 1.0), (1.25, 0.5), (0.5, -0.5)],
)
def test_aggregation_benefit_relates_goodput_to_the_best_path_and_the_sum(
    share_of_best: float, expected: float
) -> None:
    """Paths of 10 and 5 Mbit/s: the best alone gives 1 (in shares of it), both give 1.5."""
    plan = fake_plan(paths=(FakePath(10_000_000), FakePath(5_000_000)))
    best = 10e6 * 1448 / 1514
    received = round(share_of_best * best * 10 / 8)
    values = metrics(plan, flows=[BULK | {"received_bytes": received}])
    assert values["aggregation_benefit"] == pytest.approx(expected, abs=1e-6)


def test_aggregation_benefit_needs_more_than_one_path_and_a_gain_to_make() -> None:
    row = BULK | {"received_bytes": 1_000_000}
    assert metrics(TCP, flows=[row])["aggregation_benefit"] is None
    flow = MPTCP.flows[0].model_copy(update={"ideal_rate_bps": 5_000_000})
    shared = MPTCP.model_copy(update={"flows": (flow,)})  # both paths cross one bottleneck
    assert metrics(shared, flows=[row])["aggregation_benefit"] is None


def test_shares_of_paths_and_retransmissions_come_from_the_sender_before_the_end() -> None:
    rows = [
        subflow(0, 1_000_000, acked_bytes=100, retransmitted_segments=1),
        subflow(0, acked_bytes=6000, retransmitted_segments=3),
        subflow(1, acked_bytes=2000, retransmitted_segments=0),
        subflow(1, 11_000_000, acked_bytes=9000, retransmitted_segments=9),  # after the flow's end
        subflow(0, side="server", acked_bytes=5, retransmitted_segments=7),
    ]
    values = metrics(MPTCP, flows=[BULK], subflows=rows)
    assert values["path_share_max"] == 0.75
    assert values["h1-s1-h2.path_share"] == 0.75
    assert values["h1-s2-h2.path_share"] == 0.25
    assert values["retransmits"] == 3
    assert values["subflows_used"] == 2


def test_a_connection_that_ends_before_the_first_sample_has_its_closing_counters() -> None:
    page = MPTCP.flows[0].model_copy(
        update={"application": Request(request_bytes=8, response_bytes=9000, loop="closed", count=1)}
    )
    plan = MPTCP.model_copy(update={"flows": (page,)})
    short = BULK | {"end_us": 46_392}
    rows = [
        subflow(0, 48_506, acked_bytes=6000, retransmitted_segments=1),
        subflow(1, 48_506, acked_bytes=3000, retransmitted_segments=27),
        subflow(1, 60_000, acked_bytes=3000, retransmitted_segments=28),  # the kernel freed it
    ]
    values = metrics(plan, flows=[short], subflows=rows)
    assert values["retransmits"] == 29
    assert values["subflows_used"] == 2
    assert values["path_share_max"] == pytest.approx(2 / 3)
    assert metrics(plan, flows=[short])["retransmits"] is None, "no sample and no closing counters"


def test_consecutive_flows_of_one_connection_count_its_retransmissions_once() -> None:
    first = MPTCP.flows[0].model_copy(
        update={"application": Request(request_bytes=8, response_bytes=9000, loop="closed", count=1)}
    )
    second = first.model_copy(update={"id": 1, "name": "f2", "connection": first.id})
    plan = MPTCP.model_copy(update={"flows": (first, second)})
    rows = [
        subflow(0, 100_000, acked_bytes=6000, retransmitted_segments=3),
        subflow(0, 300_000, acked_bytes=9000, retransmitted_segments=5),
    ]
    flows = [BULK | {"end_us": 100_000}, BULK | {"flow": 1, "name": "f2", "end_us": 300_000}]
    assert metrics(plan, flows=flows, subflows=rows)["retransmits"] == 5


def test_a_subflow_that_only_opened_and_closed_was_not_used() -> None:
    rows = [subflow(0, acked_bytes=6000), subflow(1, acked_bytes=2)]
    values = metrics(MPTCP, flows=[BULK], subflows=rows)
    assert values["subflows_used"] == 1
    assert values["path_share_max"] == 1
    assert values["h1-s2-h2.path_share"] == 0


def test_round_trip_times_are_over_samples_of_sending_subflows_with_data() -> None:
    rows = [subflow(0, t, acked_bytes=100, rtt_us=rtt) for t, rtt in ((1, 10_000), (2, 30_000), (3, 20_000))]
    rows += [
        subflow(1, 1, acked_bytes=0, rtt_us=90_000),
        subflow(0, 1, side="server", acked_bytes=9, rtt_us=1),
    ]
    values = metrics(MPTCP, flows=[BULK], subflows=rows)
    assert (values["rtt_median_us"], values["rtt_max_us"]) == (20_000, 30_000)


def test_queue_lengths_and_drops_follow_from_the_counters() -> None:
    rows = [
        {"t_us": t, "link": link, "queue_bytes": queue, "dropped_packets": drops}
        for t, link, queue, drops in (
            (0, "a", 0, 0), (1, "a", 3000, 2), (0, "b", 900, 1), (1, "b", 900, 1), (0, "c", None, 4), (1, "c", None, 4),
        )
    ]  # fmt: skip
    values = metrics(MPTCP, links=rows)
    assert (values["queue_mean_bytes"], values["queue_max_bytes"]) == (1500, 3000)
    assert values["dropped_packets"] == 2 + 1 + 4


def histogram(link: str, *bins: tuple[int, int | None, int]) -> list[dict[str, Any]]:
    return [
        {"link": link, "at_least_ns": first, "below_ns": end, "packets": packets}
        for first, end, packets in bins
    ]


def test_queueing_delays_are_the_middles_of_the_bins_of_their_rank() -> None:
    first, second = (direction.name for direction in MPTCP.links[0].directions)
    rows = histogram(first, (1024, 1152, 94), (0, 1, 1), (2**20, 2**20 + 2**17, 5))
    values = metrics(MPTCP, queueing_delays=rows)
    assert values[f"{first}.queueing_delay_p50_us"] == (1024 + 1151) / 2 / 1000
    assert values[f"{first}.queueing_delay_p95_us"] == (1024 + 1151) / 2 / 1000
    assert values[f"{first}.queueing_delay_p99_us"] == (2**20 + 2**16 - 0.5) / 1000
    assert values[f"{second}.queueing_delay_p99_us"] is None
    assert values["queueing_delay_p99_us"] == values[f"{first}.queueing_delay_p99_us"]


def test_the_queueing_delay_of_a_trial_is_that_of_the_slowest_queue() -> None:
    first, second = (direction.name for direction in MPTCP.links[0].directions)
    fast, slow = histogram(first, (3, 4, 10)), histogram(second, (9, 10, 1), (64, 72, 1))
    values = metrics(MPTCP, queueing_delays=fast + slow)
    assert (values["queueing_delay_p50_us"], values["queueing_delay_p95_us"]) == (0.009, 0.0675)
    endless = metrics(MPTCP, queueing_delays=fast + histogram(second, (9, 10, 1), (2**40, None, 1)))
    assert endless["queueing_delay_p50_us"] == 0.009
    assert endless[f"{second}.queueing_delay_p95_us"] is None
    assert endless["queueing_delay_p95_us"] is None
    assert endless[f"{first}.queueing_delay_p95_us"] == 0.003


def test_without_the_table_there_are_no_queueing_delays() -> None:
    assert not [name for name in metrics(MPTCP) if "queueing_delay" in name]


def test_reinjections_are_those_of_mptcp() -> None:
    rows = [{"t_us": 1, "flow": 0, "side": "client", "retransmitted_bytes": 1448}]
    assert metrics(MPTCP, connections=rows)["reinjected_bytes"] == 1448
    assert metrics(TCP, connections=rows)["reinjected_bytes"] is None


@pytest.mark.parametrize(
    ("goodputs", "expected"),
    [([1, 1, 1], 1.0), ([1, 0], 0.5), ([3, 1], 16 / 20), ([1], None), ([0, 0], None), ([1, None], None)],
)
def test_jains_index_follows_its_formula(goodputs: list[float | None], expected: float | None) -> None:
    assert jain_index(goodputs) == (None if expected is None else pytest.approx(expected))


def test_jains_index_is_of_users_where_there_are_any() -> None:
    plan = fake_plan(*[FakeFlow(transport="tcp")] * 3)
    row = {"start_us": 0, "end_us": 10_000_000, "completed": True, "received_bytes": 2_500_000}
    flows = [row | {"flow": number} for number in range(3)]
    assert metrics(plan, flows=flows)["jain_index"] == 1
    owners = ("greedy", "greedy", "other")
    owned = tuple(
        flow.model_copy(update={"user": user}) for flow, user in zip(plan.flows, owners, strict=True)
    )
    values = metrics(plan.model_copy(update={"flows": owned}), flows=flows)
    assert values["jain_index"] == pytest.approx((4 + 2) ** 2 / (2 * (4**2 + 2**2)))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("stream: {from: h1, to: h2, message: 80B, rate: 64kbit, duration: 10s}", None),
        ("udp: {from: h1, to: h2, packet: 80B, rate: 64kbit, duration: 10s}", None),
        ("bulk: {from: h1, to: h2, duration: 10s}", 1),
    ],
)
def test_a_flow_that_keeps_its_pace_has_no_fairness_beside_one_that_takes_what_it_gets(
    call: str, expected: float | None
) -> None:
    plan = plan_of(f"{TWO_LINKS}traffic: [{{bulk: {{from: h1, to: h2, duration: 10s}}}}, {{{call}}}]\n")
    row = {"start_us": 0, "end_us": 10_000_000, "completed": True, "received_bytes": 2_500_000}
    rows = [row | {"flow": number} for number in range(2)]
    assert metrics(plan, flows=rows)["jain_index"] == expected
    owned = tuple(flow.model_copy(update={"user": flow.name}) for flow in plan.flows)
    assert metrics(plan.model_copy(update={"flows": owned}), flows=rows)["jain_index"] == 1


def test_series_recover_rates_from_counters() -> None:
    """A receiver's counter that grows by 125 000 bytes in each 100 ms is 10 Mbit/s in every bin."""
    samples = range(500_000, 10_500_001, 100_000)
    rows = [
        subflow(0, t, side="server", received_bytes=(t - 500_000) * 125_000 // 100_000, acked_bytes=0)
        for t in samples
    ]
    rows += [subflow(0, t, acked_bytes=1, received_bytes=0, rtt_us=t, cwnd_segments=10) for t in samples]
    recovered = trial_series(TCP, make_tables({"flows": [BULK], "subflows": rows}))
    (series,) = recovered.subflows
    assert recovered.duration_s == 10
    assert [value for _, value in series.goodput_bps] == pytest.approx([10e6] * 50)
    assert series.rtt_us[0] == (0.0, 500_000.0)
    assert (series.label, series.colour) == ("h1-s1-h2", 0)


def test_series_stay_small_whatever_the_length() -> None:
    plan = fake_plan(FakeFlow(duration_us=120_000_000))
    reduced = trial_series(plan, fake_tables(plan))
    assert len(reduced.subflows) == 2
    for series in reduced.subflows:
        assert 25 < len(series.goodput_bps) <= 51
        assert 50 < len(series.rtt_us) <= POINTS + 1
    assert sum(value for _, value in reduced.subflows[0].goodput_bps) * reduced.bin_s == pytest.approx(
        120 * 5e6 * 1424 / 1514, rel=0.02
    )


@pytest.mark.parametrize(("seconds", "bins"), [(0.3, 3), (10, 50), (10.04, 50), (10.15, 51)])
def test_bins_end_with_the_flow(seconds: float, bins: int) -> None:
    plan = fake_plan(FakeFlow(transport="tcp", duration_us=round(seconds * 1e6)))
    series = trial_series(plan, fake_tables(plan))
    assert len(series.subflows[0].goodput_bps) == bins
    assert series.duration_s == pytest.approx(seconds)


def test_many_subflows_are_reduced_to_those_that_carried_most() -> None:
    plan = fake_plan(*(FakeFlow(duration_us=1_000_000) for _ in range(6)))
    reduced = trial_series(plan, fake_tables(plan))
    assert len(reduced.subflows) == MOST_SERIES
    assert reduced.omitted == 4
    assert len({series.colour for series in reduced.subflows}) == MOST_SERIES


def test_series_of_nothing_are_empty() -> None:
    series = trial_series(TCP, make_tables({}))
    assert (series.subflows, series.queues, series.duration_s) == ((), (), 0.0)


def test_data_that_should_not_be_trusted_are_observed() -> None:
    def codes(plan: Plan, flow: dict[str, Any], subflows: list[dict[str, Any]]) -> list[str]:
        return [seen.code for seen in observe(plan, make_tables({"flows": [flow], "subflows": subflows}))]

    both = [subflow(0, acked_bytes=6000), subflow(1, acked_bytes=6000)]
    assert codes(MPTCP, BULK | {"fallback": False}, both) == []
    assert codes(MPTCP, BULK | {"fallback": True}, both) == ["FELL_BACK"]
    assert codes(MPTCP, BULK | {"fallback": False}, both[:1]) == ["IDLE_PATH"]
    assert codes(MPTCP, BULK | {"completed": False, "error": "connect: EHOSTUNREACH"}, []) == ["FLOW_FAILED"]
    assert codes(TCP, BULK | {"sent_sha256": "a", "received_sha256": "b"}, []) == ["CHECKSUM"]
    short = BULK | {"fallback": False, "connected_us": 10_000, "end_us": 60_000}
    assert codes(MPTCP, short, both[:1]) == [], "it ended before another subflow could join"
    late = BULK | {"completed": False, "error": None, "end_us": TCP.end_us}
    (seen,) = observe(TCP, make_tables({"flows": [late], "subflows": []}))
    assert seen.text == "flow flow1 did not complete (it still ran when the trial ended)"
    (seen,) = observe(MPTCP, make_tables({}))
    (caution,) = cautions("case", 10, {seen: [(0, None), (3, None)]})
    assert caution.message == "case: flow flow1 did not complete (it left no record) in 2 of 10 trials"
    timed = Observation("FELL_BACK", "flow f fell back to TCP", 25_000)
    (caution,) = cautions("case", 2, {timed: [(0, 25_000), (1, 31_000)]})
    assert caution.message == "case: flow f fell back to TCP at 0.025 to 0.031 s in 2 of 2 trials"
    assert caution.figures == {"trials": 2, "first_us": 25_000, "last_us": 31_000}
    (caution,) = cautions("case", 2, {timed: [(0, 25_000), (0, 26_000), (1, 31_000)]})
    assert caution.message.endswith("in 2 of 2 trials"), "a trial counts once"


def test_fake_data_are_believable() -> None:
    """The builders serve tests far from here: what they make has to look like a trial."""
    values = trial_metrics(MPTCP, fake_tables(MPTCP))
    assert 0.95 < (values["efficiency"] or 0) <= 1
    assert values["h1-s1-h2.path_share"] == pytest.approx(0.5, abs=0.02)
    assert isinstance(fake_tables(TCP)["flows"], pl.DataFrame)


def stalls(
    counts: list[int], *, first_byte_us: int | None = 150_000, end_us: int | None = 650_000
) -> Metrics:
    """Return the metrics of a transfer whose receiver has these counts at samples 100 ms apart."""
    flow = {"flow": 0, "start_us": 0, "first_byte_us": first_byte_us, "end_us": end_us}
    samples = [
        {"t_us": 100_000 * number, "flow": 0, "side": "server", "received_bytes": count}
        for number, count in enumerate(counts)
    ]
    plan = fake_plan(FakeFlow(transport="tcp", bytes=900))
    return metrics(plan, flows=[flow], connections=samples)


def test_the_longest_stall_is_between_the_first_byte_and_the_end_of_a_flow() -> None:
    counts = [0, 0, 100, 100, 100, 900, 900, 900, 900, 900]
    assert stalls(counts)["stall_max_s"] == 0.2
    assert stalls(counts, end_us=None)["stall_max_s"] == 0.4, "an unfinished transfer has no end"
    assert stalls([0, 0, 1, 2, 3, 4, 5])["stall_max_s"] == 0
    assert stalls(counts, first_byte_us=None)["stall_max_s"] is None
    assert stalls(counts[:2])["stall_max_s"] is None, "no sample after the first byte"


def test_of_several_flows_the_longest_stall_counts() -> None:
    plan = fake_plan(FakeFlow(bytes=900), FakeFlow(bytes=900))
    rows = [{"flow": flow, "start_us": 0, "first_byte_us": 0, "end_us": 900_000} for flow in (0, 1)]
    samples = [
        {"t_us": t_us, "flow": flow, "side": "server", "received_bytes": count}
        for flow, levels in enumerate(([1, 2, 2, 3], [1, 1, 1, 2]))
        for t_us, count in zip(range(0, 400_000, 100_000), levels, strict=True)
    ]
    values = metrics(plan, flows=rows, connections=samples)
    assert [values[name] for name in ("flow1.stall_max_s", "flow2.stall_max_s")] == [0.1, 0.2]
    assert values["stall_max_s"] == 0.2
    assert metrics(plan, flows=rows, connections=samples[:4])["stall_max_s"] is None
