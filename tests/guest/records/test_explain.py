"""`plait explain` finds the planted causes in real trials, and agrees with the kernel and with captured packets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.cli.results.explain import _advised
from plait.explain import explain_trial
from plait.explain.cause import Cause
from plait.explain.causes import CAUSES
from plait.study.verify import try_out
from planted.causes import Planted, PlantedRow, planted, run_and_explain, table
from result_folders import run_unreported

if TYPE_CHECKING:
    from conftest import RunTrial
    from plait.engine.virtual.trial import VirtualEngine

"""docs/reference/explain.md explains why: all data waited for the data in flight as the link became slower."""
LEAST_RIGHT = 102
SET = planted()


@pytest.fixture(scope="module")
def rows(engine: VirtualEngine, tmp_path_factory: pytest.TempPathFactory) -> dict[int, PlantedRow]:
    rows_by_number = {}
    for scenario in SET:
        row, explanation = run_and_explain(scenario, engine, tmp_path_factory.mktemp("planted"))
        rows_by_number[scenario.number] = row
        assert sum(share.time for share in explanation.shares) == pytest.approx(1, abs=1e-9)
        for path in explanation.paths:
            assert sum(share.time for share in path.shares) == pytest.approx(1, abs=1e-9)
        if explanation.basis == "time" and explanation.capacity_bps and explanation.goodput_bps is not None:
            # Goodput and costs add up to the capacity, except for rounding at a full link.
            cost = sum(share.cost_bps or 0 for share in explanation.shares)
            spare = sum(path.capacity_bps or 0 for path in explanation.paths if path.backup)
            total = pytest.approx(explanation.capacity_bps + spare, rel=0.08)
            assert cost + explanation.goodput_bps == total, scenario.scenario["title"]
    return rows_by_number


@pytest.mark.parametrize(
    "scenario", SET, ids=lambda scenario: f"{scenario.number}-{scenario.kind}-{scenario.reason or ''}"
)
def test_the_planted_cause_is_named_first_and_none_where_none_is(
    scenario: Planted, rows: dict[int, PlantedRow]
) -> None:
    row = rows[scenario.number]
    assert (row.named, row.reason if scenario.reason else None) == (scenario.cause, scenario.reason)


def test_all_causes_are_right_and_at_least_23_of_25_of_the_held_out_ones(rows: dict[int, PlantedRow]) -> None:
    causes = [row for row in rows.values() if row.planted.cause is not None]
    assert len(causes) >= 25
    assert sum(row.right for row in causes) >= LEAST_RIGHT
    held_out = [row for row in causes if row.planted.held_out]
    assert sum(row.right for row in held_out) / len(held_out) >= 23 / 25
    assert all(row.named is None for row in rows.values() if row.planted.cause is None)


def test_an_effect_is_reported_only_if_it_exceeds_the_spread(engine: VirtualEngine, tmp_path: Path) -> None:
    """A larger buffer helps; a mark on the packets does not."""
    text = json.dumps(SET[3].scenario | {"transport": "tcp", "repeat": 1, "sample": "100ms"})
    (tmp_path / "tried.yaml").write_text(text, encoding="utf-8")
    study = run_unreported(tmp_path / "tried.yaml", tmp_path / "out", engine=engine)
    what_ifs = [
        ["traffic.0.bulk.dscp=10"],
        ["traffic.0.bulk.duration=3s", "traffic.0.bulk.receive_buffer=null"],
    ]
    explanation = try_out(
        study.folder, study.explain(), lambda _: engine, what_ifs=what_ifs, verify=True, seeds=3
    )
    (flow,) = explanation.cases[0].flows
    assert flow.first == Cause.RECEIVE_WINDOW
    verified, *_, marked, other = flow.tried
    assert (verified.cause, verified.verdict, marked.verdict, other.verdict) == (
        Cause.RECEIVE_WINDOW,
        "faster",
        "no effect seen",
        "faster",
    )
    assert verified.then != Cause.RECEIVE_WINDOW
    assert marked.before_bps == pytest.approx(verified.before_bps)
    assert verified.difference_bps is not None
    assert verified.difference_bps > max(verified.spread_bps or 0, 0.2 * (verified.before_bps or 0))


LOSSY = {
    "title": "A lossy line",
    "network": {
        "hosts": ["home", "vps"],
        "links": {
            "home-vps": {"rate": "20mbit", "delay": "20ms", "queue": "100KB", "loss": "1%"},
            "home-vps#2": {"rate": "5mbit", "delay": "20ms", "queue": "50KB"},
        },
    },
    "transport": "tcp",
    "traffic": [{"bulk": {"from": "vps", "to": "home", "reverse": True, "duration": "5s"}}],
    "repeat": 1,
}


def test_a_loss_that_nobody_can_remove_is_answered_by_another_congestion_control(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    """`--verify` only removed the loss, which no person can."""
    (tmp_path / "lossy.yaml").write_text(json.dumps(LOSSY), encoding="utf-8")
    study = run_unreported(tmp_path / "lossy.yaml", tmp_path / "out", engine=engine)
    explanation = try_out(
        study.folder, study.explain(), lambda _: engine, verify=True, advised=_advised, seeds=3
    )
    (flow,) = explanation.cases[0].flows
    assert flow.first == Cause.LOSS_RECOVERY
    (advised,) = [tried for tried in flow.tried if tried.what == "congestion control bbr on both hosts"]
    assert (advised.cause, advised.verdict) == (None, "faster")


def test_every_cause_that_can_be_planted_is_planted(rows: dict[int, PlantedRow]) -> None:
    unplanted = {
        Cause.AT_CAPACITY,
        Cause.ON_TIME,
        Cause.NOT_KNOWN,
        Cause.MEMORY_PRESSURE,
        Cause.RECEIVE_MEMORY,  # test_a_receiver_whose_memory_is_full_of_small_messages_is_named has it
        "delayed-ack",  # test_a_request_in_two_writes_waits_for_the_delayed_ack_of_the_server_and_not_without_nagle
        Cause.SOCKET_BUFFER,  # tests/unit/explain/test_program_udp.py has it, with what the kernel counts
    }
    assert {row.planted.cause for row in rows.values()} - {None} == set(CAUSES) - unplanted


def test_the_planted_causes_give_the_table_in_the_docs(rows: dict[int, PlantedRow]) -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "explain.md").read_text(encoding="utf-8")
    documented = text[text.index("planted:begin") : text.index("planted:end")]
    for made in table(list(rows.values())).splitlines():
        # Evidence contains figures of one kernel; only cause and verdict are promised.
        assert "|".join(made.split("|")[:4]) in documented, (
            "replace the table: PYTHONPATH=tests/support python -m planted.causes"
        )


def test_large_buffers_collapse_where_tcp_has_little_memory_and_memory_is_named(run_trial: RunTrial) -> None:
    """docs/explanation/large-buffers.md: 24 MiB for all of TCP, buffers of up to 64 MiB each."""
    explanations = {}
    for case in range(4):
        ran = run_trial("large-buffers", case=case)
        explanations[case] = explain_trial(ran.plan, ran.tables)[0]
        pruned = ran.tables["counters"].filter(pl.col("counter") == "MPTcpExtRcvPruned")
        assert (len(pruned) > 0) == (case == 3), "only with little memory and large buffers"
    assert [explanation.completed for explanation in explanations.values()] == [True, True, True, False]
    goodputs = [explanation.goodput_bps or 0 for explanation in explanations.values()]
    assert goodputs[1] > goodputs[0] > 1e9, "with memory to spare the larger buffer is the faster"
    assert goodputs[3] < 0.02 * goodputs[2]
    assert explanations[3].first == Cause.MEMORY_PRESSURE
    assert all(
        Cause.MEMORY_PRESSURE not in explanation.named for explanation in list(explanations.values())[:2]
    )


NAGLE = """\
title: Messages that do not fill their last segment
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit, delay: 20ms}}}
traffic:
  - stream: {from: h1, to: h2, rate: 2mbit, message: 4KB, duration: 4s}
transport: tcp
"""


def test_a_stream_waits_for_nagles_algorithm_and_not_without_it(run_trial: RunTrial) -> None:
    waits = run_trial(NAGLE)
    (explanation,) = explain_trial(waits.plan, waits.tables)
    assert (explanation.basis, explanation.first) == ("messages", "nagle")
    assert explanation.sentences[0].startswith("stream1 kept its pace of 2 Mbit/s")
    quick = run_trial(NAGLE.replace("duration: 4s", "duration: 4s, nodelay: true"))
    (explanation,) = explain_trial(quick.plan, quick.tables)
    assert (explanation.first, explanation.delivery and explanation.delivery.late) == (None, 0)


REQUESTS = """\
title: Requests in two writes
network: {hosts: [a, b], links: {a-b: {rate: 100mbit, delay: 1ms}}}
traffic:
  - request: {from: a, to: b, request: 66000B, response: 200B, duration: 3s}
"""


def test_a_request_in_two_writes_waits_for_the_delayed_ack_of_the_server_and_not_without_nagle(
    run_trial: RunTrial,
) -> None:
    """The agent writes the first 64 KiB of a request, and then the rest, which is less than a segment."""
    waits = run_trial(REQUESTS)
    (explanation,) = explain_trial(waits.plan, waits.tables)
    assert (explanation.basis, explanation.named) == ("messages", ("delayed-ack",))
    assert explanation.shares[0].where == ("b",)
    assert explanation.delivery is not None
    assert explanation.delivery.p50_us is not None
    assert explanation.delivery.p50_us > 40_000, "a delayed ACK (TCP_DELACK_MIN)"
    quick = run_trial(REQUESTS.replace("duration: 3s", "duration: 3s, nodelay: true"))
    (explanation,) = explain_trial(quick.plan, quick.tables)
    assert (explanation.first, explanation.delivery and explanation.delivery.late) == (None, 0)


SMALL_MESSAGES = """\
title: Small messages over a lossy path
network: {hosts: [a, b], links: {a-b: {rate: 10mbit, delay: 5ms, loss: 3%}, a-b#2: {rate: 10mbit, delay: 20ms}}}
traffic: [{stream: {from: a, to: b, rate: 3.2mbit, message: 400B, duration: 60s}}]
"""


def test_a_receiver_whose_memory_is_full_of_small_messages_is_named(run_trial: RunTrial) -> None:
    """docs/explanation/small-messages.md: of 20 trials of 6.12, this one and two others stand still for 28 to 34 s."""
    ran = run_trial(SMALL_MESSAGES)
    (explanation,) = explain_trial(ran.plan, ran.tables)
    assert explanation.first == Cause.RECEIVE_MEMORY, explanation.sentences
    share = next(share for share in explanation.shares if share.cause == Cause.RECEIVE_MEMORY)
    assert share.time > 0.4
    assert "receive buffer of 187 kB." in share.evidence[0]
    larger = run_trial(SMALL_MESSAGES.replace("60s", "60s, receive_buffer: 2MiB"))
    (explanation,) = explain_trial(larger.plan, larger.tables)
    assert Cause.RECEIVE_MEMORY not in {share.cause for share in explanation.shares}


DEAD_LINE = """\
title: A call while its line loses everything
network:
  hosts: [home, server]
  routers: [cable, lte]
  links: {home-cable: {rate: 50mbit, delay: 8ms}, cable-server: {rate: 1gbit, delay: 2ms},
          home-lte: {rate: 20mbit, delay: 25ms}, lte-server: {rate: 1gbit, delay: 2ms}}
traffic:
  - stream: {from: home, to: server, message: 160B, every: 20ms, duration: 30s, nodelay: true}
events:
  - {at: 10s, set: {home-cable: {loss: 100%}}}
  - {at: 20s, set: {home-cable: {loss: 0%}}}
"""


def test_a_line_that_loses_everything_is_down_and_not_the_fault_of_the_line_that_remains(
    run_trial: RunTrial,
) -> None:
    ran = run_trial(DEAD_LINE)
    (explanation,) = explain_trial(ran.plan, ran.tables)
    assert explanation.first == Cause.PATH_DOWN, explanation.sentences
    down = next(share for share in explanation.shares if share.cause == Cause.PATH_DOWN)
    assert down.where == ("home-cable-server",)
    assert (
        down.time > 0.45
    )  # ten of thirty seconds, and four until TCP's timer retransmits over the line again


PROGRAMS = """\
title: iperf3 with a small receive buffer
network: {hosts: [h1, h2], links: {h1-h2: {rate: 20mbit, delay: 20ms}, h1-h2#2: {rate: 10mbit, delay: 20ms}}}
tcp: {receive_buffer_max: 64KiB}
programs:
  - {name: server, node: h2, run: 'iperf3 -s -1', transport: mptcp, ready: {tcp: 5201}}
  - {name: client, node: h1, run: 'iperf3 -c h2 -t 2', after: server, wait: true, transport: mptcp}
"""


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed here")
def test_connections_of_programs_are_explained_like_flows(run_trial: RunTrial) -> None:
    ran = run_trial(PROGRAMS)
    control, data = explain_trial(ran.plan, ran.tables)
    assert (control.background, control.first) == (True, Cause.SENDER_IDLE)
    assert (data.background, data.first) == (False, Cause.RECEIVE_WINDOW)
    assert len(data.paths) == 2
    assert data.capacity_bps == pytest.approx(30e6 * 1424 / 1514)
