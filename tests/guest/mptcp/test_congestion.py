"""Coupled congestion control equals Reno (wVegas: Vegas) on one path, and takes one flow's share of a bottleneck."""

from __future__ import annotations

import polars as pl
import polars.selectors as cs
import pytest

pytestmark = pytest.mark.guest

LOSS_BASED = ("lia", "olia", "balia")
COUPLED = (*LOSS_BASED, "wvegas")

ALONE = """
title: One path
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 10mbit, delay: 20ms, queue: QUEUE}
traffic:
  - bulk: {from: h1, to: h2, duration: 15s, transport: TRANSPORT}
tcp: {congestion_control: CC}
sample: 20ms
"""

DISJOINT = """
title: Two paths of their own
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 10mbit, delay: 10ms}
    h1-h2#2: {rate: 10mbit, delay: 10ms}
traffic:
  - bulk: {from: h1, to: h2, duration: 20s}
tcp: {congestion_control: CC}
"""

SHARED = """
title: One MPTCP connection and one TCP flow on a bottleneck
network:
  hosts: [h1, h2, server]
  routers: [in, out]
  links:
    h1-in: {delay: 1ms}
    h1-in#2: {delay: 1ms}
    h2-in: {delay: 1ms}
    in-out: {rate: 20mbit, delay: 10ms, queue: 100pkt}
    out-server: {delay: 1ms}
traffic:
  - bulk: {name: multi, from: h1, to: server, duration: 60s}
  - bulk: {name: single, from: h2, to: server, duration: 60s, transport: tcp, congestion_control: reno}
mptcp: {scheduler: minrtt}
tcp: {congestion_control: CC}
"""

RED = "queue: 200pkt, aqm: {red: {points: {25pkt: 0%, 50pkt: 10%, 100pkt: 100%}, weight_log: 0}}"
"""Random early detection on the queue itself: every packet is as likely to be lost, whoever sent it."""

CONGESTED = """
title: One path is free, the other has two TCP flows
network:
  hosts: [h1, h2, server]
  routers: [r]
  links:
    h1-server: {rate: 10mbit, delay: 20ms}
    h1-r: {delay: 10ms}
    h2-r: {delay: 10ms}
    r-server: {rate: 10mbit, delay: 10ms}
traffic:
  - bulk: {name: multi, from: h1, to: server, duration: 40s}
  - bulk: {name: single, from: h2, to: server, duration: 40s, count: 2, transport: tcp, congestion_control: reno}
mptcp: {scheduler: minrtt}
tcp: {congestion_control: CC}
"""


def mbps(ran) -> dict[str, float]:
    """Return goodput by flow."""
    rows = ran.tables["flows"].rows(named=True)
    return {row["name"]: row["received_bytes"] * 8 / (row["end_us"] - row["start_us"]) for row in rows}


def sent_by_subflow(ran) -> list[int]:
    """Return bytes that the first flow sent on each subflow, in the order in which they joined."""
    last = ran.series("subflows", side="client", flow=0).group_by("subflow").last().sort("subflow")
    return last["sent_bytes"].to_list()


def alone(run_trial, algorithm: str, transport: str, queue: str = "30pkt"):
    text = ALONE.replace("CC", algorithm).replace("TRANSPORT", transport).replace("QUEUE", queue)
    return run_trial(text)


@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
def test_one_path_alone_is_reno_to_the_segment(run_trial, transport) -> None:
    reno = alone(run_trial, "reno", transport)
    assert reno.tables["subflows"]["retransmitted_segments"].max() > 10, "losses are what is to be compared"
    for algorithm in LOSS_BASED:
        ran = alone(run_trial, algorithm, transport)
        for table in ("subflows", "links", "flows"):
            same = ran.tables[table].drop(cs.starts_with("congestion_control"))
            expected = reno.tables[table].drop(cs.starts_with("congestion_control"))
            assert same.equals(expected), f"{algorithm}: {table} differ from reno's"


def test_one_path_alone_under_wvegas_keeps_ten_segments_queued(run_trial) -> None:
    ran = alone(run_trial, "wvegas", "tcp", queue="100pkt")
    settled = ran.series("subflows", side="client").filter(pl.col("t_us") > 8_000_000)
    path = 10e6 * 40e-3 / 8 / 1514
    backlog = settled["cwnd_segments"].mean() - path
    assert 9 < backlog < 12, f"{backlog:.1f} segments beyond the path's {path:.1f}"
    assert settled["retransmitted_segments"].max() == 0


@pytest.mark.parametrize("algorithm", COUPLED)
def test_two_disjoint_paths_are_filled(run_trial, algorithm) -> None:
    goodput = sum(mbps(run_trial(DISJOINT.replace("CC", algorithm))).values())
    assert goodput > 0.9 * 20 * 1428 / 1514


def test_on_a_shared_bottleneck_coupled_subflows_take_no_more_than_one_tcp_flow(run_trial) -> None:
    ratio = {}
    for algorithm in ("reno", *COUPLED):
        goodput = mbps(run_trial(SHARED.replace("CC", algorithm)))
        ratio[algorithm] = goodput["multi"] / goodput["single"]
    assert all(ratio[algorithm] <= 1.15 for algorithm in COUPLED), ratio
    assert 1.5 < ratio["reno"] < 2.5, ratio


@pytest.mark.parametrize(("algorithm", "least", "most"), [("reno", 1.8, 2.3), ("lia", 0.9, 1.15)])
def test_where_losses_fall_on_packets_alike_lia_takes_one_share_and_uncoupled_reno_two(
    run_trial, algorithm, least, most
) -> None:
    text = SHARED.replace("queue: 100pkt", RED).replace("CC", algorithm)
    ratios = []
    for seed in range(3):
        goodput = mbps(run_trial(text, repeat=seed))
        ratios.append(goodput["multi"] / goodput["single"])
    assert least < sum(ratios) / len(ratios) < most, ratios


def test_coupled_subflows_move_away_from_congestion_and_lose_nothing_by_it(run_trial) -> None:
    share, goodput = {}, {}
    for algorithm in ("reno", *LOSS_BASED):
        ran = run_trial(CONGESTED.replace("CC", algorithm))
        sent = sent_by_subflow(ran)
        share[algorithm] = sent[1] / sum(sent)
        goodput[algorithm] = mbps(ran)["multi"]
    assert all(share[algorithm] < 0.8 * share["reno"] for algorithm in LOSS_BASED), share
    assert share["olia"] < min(share["lia"], share["balia"]), share
    best = 10 * 1428 / 1514
    assert all(goodput[algorithm] > 0.97 * best for algorithm in LOSS_BASED), goodput
