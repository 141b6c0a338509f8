"""Delays, latencies, losses and times of traffic follow from the network and the scenario by arithmetic.

Every frame needs its own transmission time; frames have 66 bytes of headers over TCP, 42 over UDP. If links are chains,
a bucket holds two full frames, which pass an idle link without waiting for their own transmission.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest
from probes import DEVICES, HEADERS, transmission_us

from plait.analysis.metrics.trial import trial_metrics
from plait.plan.links.chain import with_chains
from plait.plan.model.qdiscs import Tbf

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

MSS, FRAME = 1448, 1514


def scenario(link: str, *traffic: str, more: str = "") -> str:
    entries = "".join(f"  - {entry}\n" for entry in traffic)
    return f"title: t\nnetwork: {{hosts: [a, b], links: {{a-b: {link}}}}}\ntransport: tcp\ntraffic:\n{entries}{more}\n"


WARM = "udp: {name: warm, from: a, to: b, packet: 8B, every: 100ms, duration: 100ms, start_jitter: 0s}"
"""Fills the neighbour tables, so that nothing afterwards waits for ARP."""


def messages(ran: Ran, flow: str) -> pl.DataFrame:
    number = next(planned.id for planned in ran.plan.flows if planned.name == flow)
    rows = ran.tables["messages"].filter(pl.col("flow") == number).sort("index")
    return rows.with_columns(delay_us=pl.col("received_us") - pl.col("sent_us"))


def flow_row(ran: Ran, name: str) -> dict[str, object]:
    return ran.tables["flows"].row(by_predicate=pl.col("name") == name, named=True)


def bucket_bytes(ran: Ran) -> int:
    """Return what passes an idle link in no time."""
    return (
        0
        if DEVICES
        else next(
            q.options.burst_bytes
            for q in with_chains(ran.plan, exact=False).network.qdiscs
            if isinstance(q.options, Tbf)
        )
    )


def test_a_udp_packet_alone_takes_the_delay_of_its_path_to_the_microsecond(run_trial: RunTrial) -> None:
    probe = "udp: {from: a, to: b, packet: 100B, every: 7ms, duration: 1s, after: warm}"
    ran = run_trial(scenario("{rate: 1mbit, delay: 12345us}", WARM, probe))
    rows = messages(ran, "udp2")
    assert rows.height == 143
    whole = 12_345 + int(transmission_us(HEADERS + 100, 1e6))
    assert set(rows["delay_us"]) <= {whole, whole + 1}, "both times are cut to whole us"
    assert set(rows["sent_us"].diff().drop_nulls()) == {7000}
    assert set(rows["copies"]) == {1}


def test_a_full_queue_drops_just_those_udp_packets_for_which_it_has_no_room(run_trial: RunTrial) -> None:
    """Frames of 999 bytes every 4 ms where one passes every 8 ms: the queue fills, then half are lost.

    A frame that a chain waits to have tokens for is still in its queue; on a device, it is on the line.
    """
    flood = (
        "udp: {name: flood, from: a, to: b, packet: 957B, every: 4ms, duration: 1s, after: warm, start: 1s}"
    )
    ran = run_trial(scenario("{rate: 1mbit, delay: 5ms, queue: 10pkt}", WARM, flood))
    lost, delays = expected_flood(
        bucket_bytes(ran), packets=250, frame=999, every_us=4000, queue=10 + DEVICES
    )
    rows = messages(ran, "flood")
    assert [row["index"] for row in rows.iter_rows(named=True) if row["copies"] == 0] == lost
    measured = rows["delay_us"].drop_nulls().to_list()
    assert all(abs(got - 5000 - want) <= 2 for got, want in zip(measured, delays, strict=True))
    metrics = trial_metrics(ran.plan, ran.tables)
    assert metrics["flood.udp_loss_ratio"] == len(lost) / 250
    overflow = ran.series("links", link="a->b")["overflow_packets"].max()
    assert overflow == len(lost)


def expected_flood(
    bucket: int, *, packets: int, frame: int, every_us: int, queue: int
) -> tuple[list[int], list[float]]:
    """Return which packets a link of 1 Mbit/s drops when its queue is full, and the delays of the others in us."""
    rate = 0.125  # bytes per us
    tokens, last = float(bucket), 0.0
    departures: list[float] = []
    lost, delays = [], []
    for number in range(packets):
        now = number * every_us
        waiting = sum(departure > now for departure in departures)
        if waiting >= queue:
            lost.append(number)
            continue
        begin = max(now, departures[-1]) if departures else now
        tokens, last = min(bucket, tokens + (begin - last) * rate), begin
        leave = begin + max(0.0, frame - tokens) / rate
        tokens, last = tokens + (leave - begin) * rate - frame, leave
        departures.append(leave)
        delays.append(leave - now)
    return lost, delays


@pytest.mark.parametrize("segments", [1, 2, 10])
def test_a_message_takes_the_delay_and_the_transmission_of_what_its_bucket_does_not_hold(
    run_trial: RunTrial, segments: int
) -> None:
    stream = (
        f"stream: {{from: a, to: b, message: {segments * MSS}B, every: 500ms, duration: 3s, after: warm}}"
    )
    ran = run_trial(scenario("{rate: 1mbit, delay: 10ms}", WARM, stream))
    waiting = max(0, segments * FRAME - bucket_bytes(ran)) * 8
    rows = messages(ran, "stream2")
    assert rows.height == 6
    excess = [delay - 10_000 - waiting for delay in rows["delay_us"]]
    assert all(0 <= us <= 8 for us in excess[1:]), excess
    # before the first message, the last part of the handshake has taken 66 bytes out of the bucket
    assert 0 <= excess[0] <= (66 * 8 if waiting or segments == 2 else 0) + 8, excess


def test_messages_that_find_no_room_are_late_by_what_the_link_lacks(run_trial: RunTrial) -> None:
    """Twice the rate for 4 s: the last message is due at 4 s, and 8 s of frames were before it."""
    stream = f"stream: {{from: a, to: b, message: {MSS}B, every: 6056us, duration: 4s, after: warm}}"
    ran = run_trial(scenario("{rate: 1mbit, delay: 10ms, queue: 2000pkt}", WARM, stream))
    rows = messages(ran, "stream2")
    assert rows["received_us"].null_count() == 0
    assert rows["delay_us"][10:].is_sorted()
    spans = rows.tail(300)["received_us"].diff().drop_nulls()
    assert abs(spans.mean() - FRAME * 8) < 0.002 * FRAME * 8
    assert rows["delay_us"][-1] == pytest.approx(4_000_000, rel=0.02)


def test_nagle_holds_small_messages_back_for_a_round_trip_and_nodelay_does_not(run_trial: RunTrial) -> None:
    stream = (
        "stream: {name: %s, from: a, to: b, message: 100B, every: 1ms, duration: 1s, after: %s, nodelay: %s}"
    )
    ran = run_trial(
        scenario(
            "{rate: 100mbit, delay: 25ms}",
            WARM,
            stream % ("eager", "warm", "true"),
            stream % ("nagle", "eager", "false"),
        )
    )
    eager, nagle = messages(ran, "eager")["delay_us"], messages(ran, "nagle")["delay_us"][500:]
    assert eager[500:].max() <= 25_000 + transmission_us(166, 100e6) + 10, (
        "every message leaves at once, when the window has grown"
    )
    # what waits goes with the next full segment (14 messages later) or with the acknowledgement of what is under way
    assert nagle.quantile(0.5) > 25_000 + 4000
    assert nagle.max() <= 25_000 + 50_000 + 200


def test_a_request_takes_a_round_trip_and_what_the_answer_takes_on_the_wire(run_trial: RunTrial) -> None:
    request = (
        "request: {from: a, to: b, request: 500B, response: 14480B, requests: 8, gap: 300ms, after: warm}"
    )
    ran = run_trial(scenario("{rate: 1mbit, delay: 20ms}", WARM, request))
    rows = messages(ran, "request2")
    waiting = (10 * FRAME - bucket_bytes(ran)) * 8 + transmission_us(66 + 500, 1e6)
    assert rows.height == 8
    excess = [delay - 40_000 - waiting for delay in rows["delay_us"]]
    assert all(0 <= us <= 20 for us in excess[1:]), excess
    acknowledgements = 2 if DEVICES else 1
    assert 0 <= excess[0] <= acknowledgements * 66 * 8 + 20, (
        "one before the request, and one before the answer"
    )
    pauses = [sent - got for sent, got in zip(rows["sent_us"][1:], rows["received_us"], strict=False)]
    assert all(abs(pause - 300_000) <= 1 for pause in pauses)
    assert flow_row(ran, "request2")["received_bytes"] == 8 * 14_480


def test_an_open_loop_asks_on_time_whether_answers_have_come_or_not(run_trial: RunTrial) -> None:
    request = (
        "request: {from: a, to: b, response: 100B, duration: 1s, every: 20ms, after: warm, nodelay: true}"
    )
    ran = run_trial(scenario("{rate: 10mbit, delay: 100ms}", WARM, request))
    rows = messages(ran, "request2")
    assert rows.height == 50
    assert set(rows["sent_us"].diff().drop_nulls()) == {20_000}
    frame, ack = transmission_us(166, 10e6), transmission_us(66, 10e6)
    excess = [delay - 200_000 - 2 * frame for delay in rows["delay_us"]]
    assert excess[0] <= 2 * ack + 20, "an acknowledgement is before it, and one before the answer"
    # ten are under way at any time, and the eleventh answer waits for the acknowledgement of the first
    assert excess[10] == pytest.approx(excess[0] + frame + ack, abs=20)
    assert all(0 <= us <= 20 for us in (*excess[1:10], *excess[11:]))


def test_an_on_off_source_sends_for_its_share_of_the_time(run_trial: RunTrial) -> None:
    source = "on-off: {from: a, to: b, on: 200ms, off: 300ms, rate: 800kbit, duration: 5s, after: warm}"
    ran = run_trial(scenario("{rate: 10mbit, delay: 5ms}", WARM, source))
    sent = messages(ran, "on_off2")["sent_us"]
    phases = [(t_us - sent[0]) % 500_000 for t_us in sent]
    assert len(sent) == 10 * 20, "a message of 1000 bytes every 10 ms, for 40 % of 5 s"
    assert set(phases) == set(range(0, 200_000, 10_000))


def test_a_greedy_on_off_source_is_silent_in_between(run_trial: RunTrial) -> None:
    source = "on-off: {from: a, to: b, on: 300ms, off: 700ms, duration: 4s, after: warm, send_buffer: 16KiB}"
    ran = run_trial(scenario("{rate: 10mbit, delay: 5ms}", WARM, source), overrides=("sample=10ms",))
    flow = next(flow for flow in ran.plan.flows if flow.name == "on_off2")
    rows = ran.series("connections", flow=flow.id, side="server")
    busy = (rows["received_bytes"].diff().drop_nulls() > 0).mean()
    assert 0.25 < busy < 0.36, "on for 30 % of the time, and some ms until the socket is empty"


def test_exponential_times_follow_the_seed(run_trial: RunTrial) -> None:
    source = (
        "on-off: {from: a, to: b, on: exponential 50ms, off: exponential 50ms, rate: 800kbit, duration: 20s}"
    )
    text = scenario("{rate: 100mbit, delay: 5ms}", source)
    first, again, other = (messages(run_trial(text, repeat=n), "on_off1") for n in (0, 0, 1))
    assert first.equals(again)
    assert first.height != other.height
    assert 0.4 < first.height / 2000 < 0.7, (
        "on for half of the time; each period has a message at its start at least"
    )


@pytest.mark.parametrize(("connections", "round_trips"), [(1, 12), (6, 5)])
def test_a_page_takes_as_many_round_trips_as_its_connections_leave(
    run_trial: RunTrial, connections: int, round_trips: int
) -> None:
    """One connection: connect, then 11 objects in turn.

    Six: connect, the document, one more object while five others connect, six objects, the three that are left.
    """
    page = f"page: {{from: a, to: b, objects: [1KB, 10x 1KB], connections: {connections}, after: warm}}"
    ran = run_trial(scenario("{rate: 1gbit, delay: 10ms}", WARM, page))
    metrics = trial_metrics(ran.plan, ran.tables)
    load = metrics["page_load_s"]
    assert load is not None
    assert 0 <= load - round_trips * 0.020 < 0.0005
    assert messages(ran, "page2").height == 11
    assert ran.tables["flows"]["error"].null_count() == ran.tables["flows"].height


def test_the_window_of_a_steady_flow_has_the_goodput_of_the_wire(run_trial: RunTrial) -> None:
    bulk = "bulk: {from: a, to: b, duration: 10s}"
    ran = run_trial(scenario("{rate: 10mbit, delay: 20ms}", bulk, more="measure: {from: 4s, to: -1s}"))
    metrics = trial_metrics(ran.plan, ran.tables)
    steady, whole = metrics["steady_goodput_bps"], metrics["goodput_bps"]
    assert steady is not None
    assert whole is not None
    assert steady == pytest.approx(10e6 * MSS / FRAME, rel=0.002)
    assert whole < steady, "the whole has the handshake and the start in it"


def test_a_flow_follows_another_at_once_or_after_a_gap(run_trial: RunTrial) -> None:
    ran = run_trial(
        scenario(
            "{rate: 10mbit, delay: 5ms}",
            "transfer: {from: a, to: b, bytes: 100KB, rounds: 3, round_gap: 250ms}",
            "transfer: {name: last, from: a, to: b, bytes: 10KB, after: transfer1, start: 1s, start_jitter: 0s}",
        )
    )
    rows = [flow_row(ran, name) for name in ("transfer1.1", "transfer1.2", "transfer1.3", "last")]
    gaps = [after["start_us"] - before["end_us"] for before, after in pairwise(rows)]
    assert all(0 <= gap - want <= 20 for gap, want in zip(gaps, [250_000, 250_000, 1_000_000], strict=True))
    metrics = trial_metrics(ran.plan, ran.tables)
    each = [metrics[f"{row['name']}.goodput_bps"] for row in rows]
    assert min(each) <= metrics["goodput_bps"] <= max(each), "what follows each other does not add up"


def test_both_directions_share_a_connection_and_finish_as_the_kernels_own_test_asks(
    run_trial: RunTrial,
) -> None:
    """simult_flows.sh: 16 MiB one way and 80 KiB the other over 2 x 10 Mbit/s are done within 7906 ms."""
    text = """
title: t
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, queue: 20pkt}
    a-b#2: {rate: 10mbit, queue: 20pkt}
traffic:
  - transfer: {from: a, to: b, bytes: 16MiB, back: 80KiB}
"""
    ran = run_trial(text)
    there, back = flow_row(ran, "transfer1"), flow_row(ran, "transfer1.back")
    assert there["completed"]
    assert back["completed"]
    assert (there["received_bytes"], back["received_bytes"]) == (16 * 2**20, 80 * 2**10)
    assert max(there["end_us"], back["end_us"]) - there["start_us"] <= 7_906_000
    assert len(set(ran.tables["subflows"]["flow"])) == 1, "it is one connection, sampled once"


@pytest.mark.parametrize(
    ("sample", "buffer", "late"),
    [("1ms", "notsent_lowat: 32KiB", 0.0025 + 0.001), ("1ms", "", 0.020 + 0.001), ("100ms", "", 0.020 + 0.1)],
)
def test_a_second_subflow_needs_a_connection_and_its_own_handshake(
    run_trial: RunTrial, sample: str, buffer: str, late: float
) -> None:
    """First the SYN and the first data are answered (RFC 8684, 3.1), then MP_JOIN takes two round trips (3.2).

    Each path asks for an address by ARP before. The kernel hands data to the new subflow when it next has any to hand
    out. If the other subflow may have only 32 KiB that it has not sent, that is at the next acknowledgement, one for
    two frames of the other path (2.42 ms). Otherwise the whole receive window, or a send buffer, may be on the other
    subflow already. A writer is woken when a third of the buffer is free: captured, the first data then left 10.6 ms
    after the join, and one round trip is allowed.
    """
    text = """
title: t
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, delay: 10ms}
    a-b#2: {rate: 10mbit, delay: 30ms}
traffic:
  - bulk: {from: a, to: b, duration: 1s, %s}
"""
    ran = run_trial(text % buffer, overrides=(f"sample={sample}",))
    second = trial_metrics(ran.plan, ran.tables)["second_subflow_s"]
    assert second is not None
    exact = 3 * 0.020 + 3 * 0.060
    assert exact - 0.001 <= second <= exact + late


def test_users_have_their_own_transports_and_starts(run_trial: RunTrial) -> None:
    text = scenario(
        "{rate: 50mbit, delay: 5ms}",
        "transfer: {from: a, to: b, bytes: 1MB, users: 4, spread: 2s, start_jitter: 0s, transport: [tcp, mptcp]}",
        "bulk: {name: cross, from: a, to: b, background: true}",
    )
    ran = run_trial(text)
    rows = ran.tables["flows"].filter(pl.col("name") != "cross")
    assert rows["name"].to_list() == ["user1", "user2", "user3", "user4"]
    assert rows["transport"].to_list() == ["tcp", "mptcp", "tcp", "mptcp"]
    assert [round(t_us / 1000) for t_us in rows["start_us"]] == [0, 500, 1000, 1500]
    cross = flow_row(ran, "cross")
    assert cross["completed"]
    assert cross["end_us"] >= max(rows["end_us"]), "it ends with the others"
    active_us = sum(end - start for start, end in rows.select("start_us", "end_us").iter_rows())
    goodput = trial_metrics(ran.plan, ran.tables)["goodput_bps"]
    assert goodput == pytest.approx(4 * 8e12 / active_us), "one after the other, without the background"


def test_socket_options_are_the_flows(run_trial: RunTrial) -> None:
    bulk = "bulk: {name: %s, from: a, to: b, duration: 1s, %s}"
    ran = run_trial(
        scenario(
            "{rate: 10mbit, delay: 10ms}",
            bulk % ("plain", "start: 0s"),
            bulk % ("small", "mss: 500, congestion_control: reno, after: plain"),
            bulk % ("short", "notsent_lowat: 8KiB, after: small"),
        )
    )
    ids = {flow.name: flow.id for flow in ran.plan.flows}
    last = {
        name: ran.series("subflows", flow=number, side="client").row(-2, named=True)
        for name, number in ids.items()
    }
    assert last["plain"]["mss_bytes"] == MSS
    assert last["small"]["mss_bytes"] <= 500
    assert flow_row(ran, "small")["congestion_control"] == "reno"
    unsent = {
        name: ran.series("subflows", flow=number, side="client")["notsent_bytes"].max()
        for name, number in ids.items()
    }
    assert unsent["plain"] > 100_000
    assert unsent["short"] <= 8192 + 65_536, "one write beyond the bound"


def test_all_kinds_of_traffic_give_the_same_bytes_again(run_trial: RunTrial) -> None:
    text = scenario(
        "{rate: 5mbit, delay: 10ms, loss: 1%}",
        "stream: {from: a, to: b, message: 700B, rate: 1mbit, duration: 1s}",
        "request: {from: a, to: b, response: 20KB, duration: 1s, every: exponential 50ms}",
        "page: {from: a, to: b, objects: [10KB, 8x 5KB], users: 3}",
        "udp: {from: b, to: a, packet: 200B, rate: 500kbit, duration: 1s}",
        "on-off: {from: a, to: b, on: exponential 100ms, off: exponential 100ms, duration: 1s}",
        "bulk: {from: a, to: b, duration: 1s, back: true, transport: mptcp}",
    )
    first, again = run_trial(text), run_trial(text)
    assert set(first.tables) >= {"messages", "flows"}
    assert first.tables["flows"]["error"].null_count() == first.tables["flows"].height
    assert first.digest == again.digest
