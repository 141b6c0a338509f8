"""Traces become events of the plan, and mistakes in a trace are located."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.errors import ScenarioError
from plait.plan.links.chain import with_chains
from plait.plan.model.links import ChangeLink
from plait.plan.model.qdiscs import Netem, PlaitTrace, Tbf
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.fields.traces import Opportunities, Rows, read_trace
from plait.scenario.vary.cases import expand
from scenario_samples import mistakes_as_text

if TYPE_CHECKING:
    from pathlib import Path

    from plait.plan.model.plan import Plan

CSV = "time [s],rate [mbit],delay [ms],loss [%]\n0,5,20,0\n1.5,2,30,1\n3,5,20,0\n"


def scenario(tmp_path: Path, link: str, more: str = "") -> Path:
    path = tmp_path / "t.yaml"
    path.write_text(
        f"title: t\nnetwork: {{hosts: [a, b], links: {{a-b: {{{link}}}}}}}\n"
        f"traffic: [bulk: {{from: a, to: b, duration: 8s}}]\n{more}"
    )
    return path


def plan_of(tmp_path: Path, link: str, more: str = "") -> Plan:
    return resolve(expand(load(scenario(tmp_path, link, more)))[0].scenario, 1)


def refused(tmp_path: Path, link: str, more: str = "") -> str:
    with pytest.raises(ScenarioError) as caught:
        plan_of(tmp_path, link, more)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("1\n2x\n", "line 2: '2x' is not a time in ms"),
        ("1\n-2\n", "line 2: '-2' is not a time in ms"),
        ("1.5\n", "line 1: '1.5' is not a time in ms"),
        ("5\n4\n", "line 2: 4 ms comes after 5 ms; write times in ascending order"),
        ("99999999999\n", "line 1: '99999999999' is not a time in ms"),
        ("0\n0\n", "all opportunities are at 0 ms"),
    ],
)
def test_a_mistake_in_a_mahimahi_trace_is_reported_with_its_line(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        read_trace(text, "mahimahi", loop=True)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file has no rows"),
        ("time [s],rate [mbit]\n", "the file has no rows"),
        ("time,speed\n0s,5mbit\n", "line 1: 'speed' is not a column; write time, rate, delay or loss"),
        ("rate [mbit]\n5\n", "line 1: a trace needs the column time and one of"),
        ("time,rate,rate\n", "line 1: there are two columns rate"),
        ("time [s],rate\n0,5\n1,5\n", "line 2: rate: '5' has no unit"),
        ("time [s],rate [mbps]\n0,5\n1,5\n", "line 2: rate: 'mbps' is not a unit of a rate"),
        ("time [s],rate [mbit]\n1,5\n2,6\n", "line 2: the first row is for time 1s; write a row for time 0"),
        (
            "time [s],rate [mbit]\n0,5\n0,6\n",
            "line 3: the time 0s is not after 0s; write times in ascending order",
        ),
        ("time [s],rate [mbit]\n0,5,7\n", "line 2: there are 3 values for 2 columns"),
        ("time [s],rate [mbit]\n0,\n1,5\n", "line 2: rate: "),
        ("time [s],loss [%]\n0,101\n1,5\n", "line 2: loss: "),
        ("time [s],rate [mbit]\n0,5\n", "the trace has one row"),
    ],
)
def test_a_mistake_in_a_csv_trace_is_reported_with_its_line(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        read_trace(text, "csv", loop=True)
    assert expected in str(caught.value)


def test_units_may_stand_in_the_header_or_at_the_values() -> None:
    other = "rate,time\n5mbit,0s\n2 Mbit,1500ms\n5000kbit,3s\n"
    first, second = read_trace(CSV, "csv", loop=True), read_trace(other, "csv", loop=True)
    assert isinstance(first, Rows)
    assert isinstance(second, Rows)
    rates = [[(row.at, row.conditions["rate"]) for row in trace.rows] for trace in (first, second)]
    assert rates[0] == rates[1]


def test_a_looped_csv_begins_again_at_its_last_time() -> None:
    rows = read_trace(CSV, "csv", loop=True)
    assert isinstance(rows, Rows)
    steps = [
        (row.at // 10**6, int(row.conditions["rate"]) // 10**6) for row in rows.steps(7 * 10**9, loop=True)
    ]
    assert steps == [(0, 5), (1500, 2), (3000, 5), (4500, 2), (6000, 5)]
    once = [row.at // 10**6 for row in rows.steps(7 * 10**9, loop=False)]
    assert once == [0, 1500, 3000]


def test_a_trace_has_the_mean_rate_of_its_opportunities() -> None:
    trace = read_trace("0\n5\n5\n10\n", "mahimahi", loop=True)
    assert isinstance(trace, Opportunities)
    assert (trace.period_ms, trace.rate_bps) == (10, 4 * 1500 * 8 * 100)


def test_opportunities_take_the_place_of_the_rate(tmp_path: Path) -> None:
    (tmp_path / "x.trace").write_text("1\n2\n3\n")
    plan = plan_of(tmp_path, "delay: 3ms, forward: {trace: {file: x.trace, loop: false}}")
    forward, backward = plan.links[0].directions
    kinds = {
        side.name: [q.options for q in with_chains(plan).network.qdiscs if q.ifname == side.ifname]
        for side in (forward, backward)
    }
    netem, trace, queue = kinds["a->b"]
    assert isinstance(netem, Netem)
    assert netem.delay_ns == 3_000_000
    assert isinstance(trace, PlaitTrace)
    assert (trace.file.name, trace.repeated, trace.opportunity_bytes) == ("x.trace", False, 1500)
    assert queue.kind == "pfifo"
    assert [o.kind for o in kinds["b->a"]] == ["netem"]
    # three full frames in 3 ms, counted as tc counts
    assert forward.rate_bps == 3 * 1514 * 8 * 1000 // 3


def test_a_file_that_changes_makes_another_plan(tmp_path: Path) -> None:
    (tmp_path / "x.trace").write_text("1\n2\n3\n")
    plan = plan_of(tmp_path, "trace: {file: x.trace}")
    (tmp_path / "x.trace").write_text("1\n2\n4\n")
    assert plan_of(tmp_path, "trace: {file: x.trace}") != plan


def test_a_csv_becomes_steps_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(CSV)
    plan = plan_of(tmp_path, "forward: {trace: {file: x.csv}}", "until: 5s\n")
    assert (plan.links[0].directions[0].rate_bps, plan.links[0].directions[0].delay_ns) == (
        5_000_000,
        20_000_000,
    )
    steps = [(e.t_us, e.name, e.subject, e.text) for e in plan.events][:3]
    assert steps == [(t_us, "trace_step", "a->b", "") for t_us in (1_500_000, 3_000_000, 4_500_000)]
    (change,) = plan.events[0].actions
    assert isinstance(change, ChangeLink)
    now = change.direction
    assert (now.rate_bps, now.delay_ns, now.loss_ratio, now.in_order) == (2_000_000, 30_000_000, 0.01, True)
    options = [action.qdisc.options for action in with_chains(plan).events[0].actions]
    assert [o.rate_bps for o in options if isinstance(o, Tbf)] == [2_000_000]
    packets, line = (option for option in options if isinstance(option, Netem))
    assert (packets.delay_ns, packets.loss_ratio, packets.in_order) == (30_000_000, 0.01, True)
    assert line.rate_bps == 2_000_000
    assert plan.links[0].directions[0].in_order, "a delay that shrinks lets no packet overtake another"
    assert plan.flows[0].ideal_rate_bps is None, "no fixed rate is what the links allow"


def test_traces_can_be_swept(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / f"{name}.trace").write_text("1\n2\n" if name == "x" else "3\n4\n")
    path = scenario(
        tmp_path, "trace: {file: x.trace}", "vary: {network.links.a-b.trace.file: [x.trace, y.trace]}\n"
    )
    plans = [resolve(case.scenario, 1) for case in expand(load(path))]
    assert [plan.links[0].directions[0].trace.file.name for plan in plans] == ["x.trace", "y.trace"]


@pytest.mark.parametrize(
    ("link", "more", "expected"),
    [
        ("trace: {file: none.trace}", "", "network.links.a-b.trace.file: 'none.trace' cannot be read"),
        ("trace: {file: .}", "", "'.': this is empty or not a regular file"),
        ("trace: {file: bad.trace}", "", "'bad.trace': line 2: 'x' is not a time in ms"),
        ("trace: {file: bytes.trace}", "", "'bytes.trace': this is not text"),
        ("trace: {file: x.trace}, rate: 5mbit", "", "rate: the link has both a rate and a mahimahi trace"),
        ("trace: {file: x.csv}, rate: 5mbit", "", "'x.csv' has a column rate, which is also given here"),
        ("trace: {file: x.csv}, delay: 5ms", "", "'x.csv' has a column delay, which is also given here"),
        (
            "trace: {file: d.csv}, queue: 9pkt",
            "",
            "a link without a rate has no queue, and 'd.csv' has no rates",
        ),
        ("trace: {fiel: x.csv}", "", "trace.fiel: there is no such field here; did you mean 'file'?"),
        ("trace: {file: x.csv, format: pcap}", "", "'pcap' is not a valid value; use one of: csv, mahimahi"),
        (
            "trace: {file: x.trace}",
            "events: [{at: 1s, set: {a-b: {rate: 1mbit}}}]\n",
            "events.0.set.a-b.rate: a-b follows a trace",
        ),
        (
            "rate: 5mbit",
            "events: [{at: 1s, set: {a-b: {trace: {file: x.csv}}}}]\n",
            "events.0.set.a-b.trace: a link follows its trace from the start",
        ),
        ("trace: {file: fine.csv}", "until: 60s\n", "the traces of all links make more than 20000 changes"),
    ],
)
def test_a_mistake_around_a_trace_is_located(tmp_path: Path, link: str, more: str, expected: str) -> None:
    (tmp_path / "x.trace").write_text("1\n2\n")
    (tmp_path / "bad.trace").write_text("1\nx\n")
    (tmp_path / "bytes.trace").write_bytes(b"\xff\xfe1")
    (tmp_path / "x.csv").write_text(CSV)
    (tmp_path / "d.csv").write_text("time [s],delay [ms]\n0,5\n1,6\n")
    (tmp_path / "fine.csv").write_text("time [ms],rate [mbit]\n0,5\n1,6\n2,5\n")
    assert expected in refused(tmp_path, link, more)


def test_a_trace_without_its_file_raises_an_error_with_the_remedy() -> None:
    text = (
        "title: t\nnetwork: {hosts: [a, b], links: {a-b: {trace: {file: x.trace}}}}\n"
        "traffic: [bulk: {from: a, to: b, duration: 8s}]\n"
    )
    assert "has not been read; read the scenario with plait.scenario.read.load" in mistakes_as_text(text)
