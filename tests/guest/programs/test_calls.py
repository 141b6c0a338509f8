"""Calls send UDP packets both ways between two sockets, also behind a router that translates addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.analysis.metrics.messages import message_metrics

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

CALL = """
title: A call from behind a router that translates
network:
  hosts: [phone, server]
  routers: {gateway: {nat: [gateway-isp]}, isp}
  links:
    phone-gateway: {delay: 2ms}
    gateway-isp: {rate: 4mbit, forward: {delay: 10ms, loss: 5%}, backward: {delay: 20ms, loss: 10%}}
    isp-server: {}
traffic:
  - udp: {from: phone, to: server, packet: 200B, every: 20ms, duration: 20s, back: true}
"""
PACKETS = 1000
THERE_US, BACK_US = (delay_us + 3 + (200 + 42) * 8 / 4 for delay_us in (12_000, 22_000))
"""The delays of the links, and a frame's time at 4 Mbit/s. An unset delay is 1 us."""


def packets(ran: Ran, flow: int) -> pl.DataFrame:
    return ran.tables["messages"].filter(pl.col("flow") == flow).sort("index")


def check_call(ran: Ran) -> None:
    there, back = ran.tables["flows"].sort("flow").iter_rows(named=True)
    assert [there["name"], back["name"]] == ["udp1", "udp1.back"]
    assert [there["completed"], back["completed"]] == [True, True]
    assert [there["error"], back["error"]] == [None, None]
    for number, row, least_us, loss in ((0, there, THERE_US, 0.05), (1, back, BACK_US, 0.10)):
        rows = packets(ran, number)
        assert rows.height == PACKETS
        assert row["sent_bytes"] == 200 * PACKETS
        assert row["received_bytes"] == 200 * rows["received_us"].count()
        assert rows["sent_us"].diff().drop_nulls().unique().to_list() == [20_000]
        # the first ones also wait for addresses to be resolved
        assert (rows["received_us"] - rows["sent_us"]).min() == pytest.approx(least_us, abs=3)
        assert rows["received_us"].null_count() / PACKETS == pytest.approx(loss, abs=0.03)
    first = packets(ran, 0)["received_us"].min()
    assert packets(ran, 1)["sent_us"].min() == pytest.approx(first, abs=10), "it answers at once"


def test_a_call_goes_both_ways_through_a_translation(run_trial: RunTrial) -> None:
    ran = run_trial(CALL)
    check_call(ran)
    metrics = message_metrics(ran.plan, ran.tables)
    for flow, loss, delay_us in (("udp1", 0.05, THERE_US), ("udp1.back", 0.10, BACK_US)):
        assert metrics[f"{flow}.udp_loss_ratio"] == pytest.approx(loss, abs=0.03)
        assert metrics[f"{flow}.udp_delay_p50_us"] == pytest.approx(delay_us, abs=10)
    lost = sum(packets(ran, number)["received_us"].null_count() for number in (0, 1))
    assert metrics["udp_loss_ratio"] == lost / (2 * PACKETS)


def test_a_call_needs_no_translation(run_trial: RunTrial) -> None:
    check_call(run_trial(CALL.replace("gateway: {nat: [gateway-isp]}", "gateway")))


def test_a_callee_without_packets_does_not_answer(run_trial: RunTrial) -> None:
    ran = run_trial(CALL.replace("loss: 5%", "loss: 100%"))
    there, back = ran.tables["flows"].sort("flow").iter_rows(named=True)
    assert (there["completed"], there["received_bytes"]) == (True, 0)
    assert (back["completed"], back["sent_bytes"], back["start_us"]) == (False, 0, None)
    assert back["error"] == "no packet arrived, so the address of the receiver is unknown"
    assert ran.plan.end_us > back["end_us"], "the trial does not wait for what cannot come"


def test_calls_can_follow_each_other(run_trial: RunTrial) -> None:
    """The next one begins when both directions of the one before have ended."""
    text = CALL.replace("duration: 20s, back: true", "duration: 1s, back: true, rounds: 3, round_gap: 500ms")
    flows = run_trial(text).tables["flows"].sort("flow")
    assert flows["name"].to_list() == [f"udp1.{turn}{way}" for turn in (1, 2, 3) for way in ("", ".back")]
    assert flows["completed"].all()
    ends, starts = flows["end_us"].to_list(), flows["start_us"].to_list()
    for turn in (1, 2):
        assert starts[2 * turn] >= max(ends[2 * turn - 2 : 2 * turn]) + 500_000
