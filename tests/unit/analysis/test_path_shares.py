"""Path shares, switches, duplicates and reordering follow from hand-made counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from fake_plans import FakeFlow, fake_plan
from plait.analysis.metrics import path_shares
from plait.analysis.model import CaseSummary, Statistics, Summary
from plait.analysis.values import show
from plait.dataset.model import ALL_TABLES
from plait.report.page.tables import split

if TYPE_CHECKING:
    from plait.plan.model.plan import Flow, Plan

SECOND = 1_000_000


def measured(
    plan: Plan,
    sent: list[list[int]],
    arrived: list[list[int]],
    taken: list[int],
    reinjected: list[int | None] | None = None,
) -> path_shares.Metrics:
    """Return the metrics of flows of two subflows, each with these counters at samples half a second apart."""
    of_each = [tables_of(flow, sent, arrived, taken, reinjected) for flow in plan.flows]
    tables = {name: pl.concat([tables[name] for tables in of_each]) for name in of_each[0]}
    return path_shares.share_metrics(plan, tables)


def tables_of(
    flow: Flow,
    sent: list[list[int]],
    arrived: list[list[int]],
    taken: list[int],
    reinjected: list[int | None] | None,
) -> dict[str, pl.DataFrame]:
    rows = [
        {
            "t_us": i * SECOND // 2, "flow": flow.id, "side": side, "subflow": n, "local_address": local,
            "remote_address": remote, "sent_bytes": sent[n][i], "received_bytes": arrived[n][i],
        }
        for n, path in enumerate(flow.paths)
        for side, local, remote in (
            ("client", path.client_address, path.server_address),
            ("server", path.server_address, path.client_address),
        )
        for i in range(len(taken))
    ]  # fmt: skip
    stream = [
        {"t_us": i * SECOND // 2, "flow": flow.id, "side": "server", "received_bytes": count}
        for i, count in enumerate(taken)
    ] + [
        {"t_us": i * SECOND // 2, "flow": flow.id, "side": "client", "retransmitted_bytes": count}
        for i, count in enumerate(reinjected or [0] * len(taken))
    ]
    ends = [{"flow": flow.id, "start_us": 0, "end_us": (len(taken) - 1) * SECOND // 2}]
    return {
        name: pl.DataFrame(records, schema=ALL_TABLES[name]) if records else ALL_TABLES[name].to_frame()
        for name, records in (("subflows", rows), ("connections", stream), ("flows", ends))
    }


def test_the_worst_second_counts_and_not_the_mean_of_the_transfer() -> None:
    # half a second each: both, both, both, then the first alone for a second, then the second alone for one
    sent = [[0, 5, 10, 15, 25, 35, 35, 35], [0, 5, 10, 15, 15, 15, 25, 35]]
    metrics = measured(fake_plan(), sent, sent, [a + b for a, b in zip(*sent, strict=True)])
    assert metrics["path_share_window_max"] == 1
    assert metrics["observed_1path_share"] == 0.5


def test_the_first_second_is_left_out() -> None:
    sent = [[0, 100, 200, 210, 220], [0, 0, 0, 10, 20]]
    metrics = measured(fake_plan(), sent, sent, [0, 100, 200, 220, 240])
    assert metrics["path_share_window_max"] == 0.5


def test_a_flow_shorter_than_its_first_window_has_no_such_share() -> None:
    sent = [[0, 1, 2, 3], [0, 1, 2, 3]]
    assert measured(fake_plan(), sent, sent, [0, 2, 4, 6])["path_share_window_max"] is None


def test_whoever_sees_one_path_of_a_redundant_flow_sees_all_and_half_of_what_comes_is_a_copy() -> None:
    sent = [[0, 50, 100], [0, 50, 100]]
    metrics = measured(fake_plan(), sent, sent, [0, 50, 100], reinjected=[0, 50, 100])
    assert metrics["observed_1path_share"] == 1
    assert metrics["duplicate_bytes"] == 100
    assert metrics["out_of_order_max_bytes"] == 0


def test_waiting_bytes_are_distinguished_from_duplicates() -> None:
    arrived = [[0, 0, 60, 90], [0, 40, 40, 40]]  # 40 wait for the first 60; 10 of 130 are copies
    metrics = measured(fake_plan(), arrived, arrived, [0, 0, 100, 120], reinjected=[0, 10, 10, 10])
    assert metrics["out_of_order_max_bytes"] == 40
    assert metrics["duplicate_bytes"] == 10


def test_what_still_waits_when_a_flow_ends_is_neither_a_copy_nor_forgotten() -> None:
    """A slow path holds the stream back until the end; nothing was sent twice."""
    arrived = [[0, 300, 600, 900], [0, 0, 10, 20]]
    metrics = measured(fake_plan(), arrived, arrived, [0, 0, 10, 20])
    assert metrics["out_of_order_max_bytes"] == 900
    assert metrics["out_of_order_mean_bytes"] == (0 + 300 + 600 + 900) / 4
    assert metrics["duplicate_bytes"] == 0


def test_copies_are_at_most_what_was_reinjected_by_then() -> None:
    """100 bytes were sent again late: what is ahead before that waits, although it never reaches the stream."""
    arrived = [[0, 500, 500, 500], [0, 0, 0, 100]]
    metrics = measured(fake_plan(), arrived, arrived, [0, 0, 0, 0], reinjected=[0, 0, 0, 100])
    assert metrics["duplicate_bytes"] == 100
    assert metrics["out_of_order_max_bytes"] == 500


def test_copies_of_several_flows_are_added_and_what_waits_is_that_of_the_worst() -> None:
    arrived = [[0, 500, 500, 500], [0, 0, 0, 100]]
    two = fake_plan(FakeFlow(), FakeFlow())
    metrics = measured(two, arrived, arrived, [0, 0, 0, 0], reinjected=[0, 0, 0, 100])
    assert metrics["duplicate_bytes"] == 200
    assert metrics["out_of_order_max_bytes"] == 500


def test_copies_are_null_where_reinjections_were_not_sampled() -> None:
    arrived = [[0, 500], [0, 0]]
    metrics = measured(fake_plan(), arrived, arrived, [0, 0], reinjected=[None, None])
    assert [metrics[name] for name in path_shares.HELD_BACK] == [None, None, None]


def test_switches_and_runs_are_bounds_that_the_samples_prove() -> None:
    fro = [[0, 10, 10, 20, 20], [0, 0, 10, 10, 20]]
    both = [[0, 10, 20, 30, 40], [0, 9, 19, 28, 40]]
    total = [[0, 10, 20, 30, 40], [0, 19, 39, 58, 80]]
    assert measured(fake_plan(), fro, fro, total[0])["path_switches_per_s"] == pytest.approx(1.5)
    assert measured(fake_plan(), both, both, total[1])["path_switches_per_s"] == 2, (
        "once in each half second, at least"
    )
    assert measured(fake_plan(), fro, fro, total[0])["path_run_max_bytes"] == 10
    assert measured(fake_plan(), both, both, total[1])["path_run_max_bytes"] is None
    alone = [[0, 10, 20, 30, 30], [0, 0, 0, 0, 7]]
    metrics = measured(fake_plan(), alone, alone, [0, 10, 20, 30, 37])
    assert (metrics["path_switches_per_s"], metrics["path_run_max_bytes"]) == (0.5, 30)
    assert show("path_switches_per_s", 1.5) == "1.5"


def case(name: str, value: float | None, **settings: object) -> CaseSummary:
    metrics = {"path_share_window_max": Statistics(n=1, mean=value)}
    return CaseSummary(name=name, settings=settings, trials=1, failed=0, metrics=metrics)


def summary(cases: list[CaseSummary]) -> Summary:
    return Summary(scenario="s", digest="sha256:0", cases=tuple(cases), comparisons=())


def test_the_report_shows_the_split_when_schedulers_differ_and_only_then() -> None:
    alike = [case("a", 0.5, transport="tcp"), case("b", 0.5, transport="mptcp")]
    assert split(summary(alike)) == ""
    differ = [case("a", 0.505, scheduler="capped"), case("b", 0.9, scheduler="minrtt")]
    assert "50.5 %" in split(summary(differ))
