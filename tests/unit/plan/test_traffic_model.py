"""Each field of traffic has its effect in the plan and the shell, and plait locates mistakes."""

from __future__ import annotations

import pytest

from plait.analysis.metrics.users import goodput_bps, users
from plait.plan.model.sockets import SocketOptions
from plait.plan.shell.script import to_shell
from plait.traffic.bulk import Bulk
from plait.traffic.gaps import Gap
from plait.traffic.on_off import OnOff
from plait.traffic.page import Page
from plait.traffic.request import Request
from plait.traffic.stream import Stream
from plait.traffic.transfer import First, Transfer
from plait.traffic.udp import Udp
from scenario_samples import direct, mistakes_as_text, plan_of

LINK = "a-b: {rate: 10mbit, delay: 10ms}"


def job(entry: str, more: str = "") -> object:
    return plan_of(direct(LINK, entry, more)).flows[0].application


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "stream: {from: a, to: b, message: 1KB, rate: 8mbit, duration: 1s}",
            Stream(message_bytes=1000, interval_ns=1_000_000, count=1000),
        ),
        (
            "stream: {from: a, to: b, message: 1KB, every: 300ms, duration: 1s}",
            Stream(message_bytes=1000, interval_ns=300_000_000, count=4),
        ),
        (
            "bulk: {from: a, to: b, start: 1s, start_jitter: 0s, stop: 3s}",
            Bulk(duration_us=2_000_000),
        ),
        (
            "page: {from: a, to: b, objects: [5KB, 2x 1KB]}",
            Page(request_bytes=400, objects=(5000, 1000, 1000)),
        ),
    ],
)
def test_an_entry_becomes_an_application_with_nothing_left_to_decide(entry: str, expected: object) -> None:
    assert job(entry) == expected


def test_random_times_have_a_seed_of_their_own_from_the_trials() -> None:
    text = direct(LINK, "on-off: {from: a, to: b, on: exponential 1s, off: 2s, duration: 10s, count: 2}")
    first, second = (flow.application for flow in plan_of(text, seed=1).flows)
    other = plan_of(text, seed=2).flows[0].application
    assert isinstance(first, OnOff)
    assert isinstance(second, OnOff)
    assert isinstance(other, OnOff)
    assert first.on == Gap(mean_us=1_000_000, exponential=True)
    assert first.off == Gap(mean_us=2_000_000)
    assert len({first.seed, second.seed, other.seed}) == 3


def test_loops_are_open_with_every_and_closed_without() -> None:
    closed = job("request: {from: a, to: b, response: 1KB, requests: 3, gap: 5ms}")
    opened = job("request: {from: a, to: b, response: 1KB, duration: 1s, every: 5ms}")
    assert isinstance(closed, Request)
    assert isinstance(opened, Request)
    assert (closed.loop, closed.count, opened.loop, opened.duration_us) == ("closed", 3, "open", 1_000_000)


def test_a_probe_waits_for_what_the_queue_can_hold() -> None:
    probe = job("udp: {from: a, to: b, packet: 100B, every: 1ms, duration: 1s}")
    assert isinstance(probe, Udp)
    full_queue_us = 100 * 1514 * 8 / 10
    assert probe.drain_us >= 10_000 + full_queue_us


def test_repetitions_follow_each_other_and_others_follow_all_of_them() -> None:
    plan = plan_of(
        "title: t\nnetwork: {hosts: [a, b], links: {a-b: {rate: 10mbit}}}\ntraffic:\n"
        "  - transfer: {from: a, to: b, bytes: 1KB, rounds: 3, round_gap: 2s}\n"
        "  - bulk: {from: a, to: b, duration: 1s, after: transfer1}\n"
    )
    assert [flow.name for flow in plan.flows] == ["transfer1.1", "transfer1.2", "transfer1.3", "bulk2"]
    assert [flow.after for flow in plan.flows] == [(), (0,), (1,), (0, 1, 2)]
    assert [flow.start_us for flow in plan.flows][1:3] == [2_000_000, 2_000_000]


def test_users_are_numbered_over_all_entries_and_take_transports_in_turn() -> None:
    plan = plan_of(
        "title: t\nnetwork: {hosts: [a, b], links: {a-b: {rate: 10mbit}}}\ntraffic:\n"
        "  - page: {from: a, to: b, objects: [1KB, 2x 1KB], connections: 2, users: 2, transport: [tcp, mptcp]}\n"
        "  - bulk: {from: a, to: b, duration: 1s, users: 1, transport: tcp}\n"
    )
    assert [flow.name for flow in plan.flows] == ["user1", "user1.c2", "user2", "user2.c2", "user3"]
    assert [flow.transport for flow in plan.flows] == ["tcp", "tcp", "mptcp", "mptcp", "tcp"]
    assert list(users(plan.flows)) == ["user1", "user2", "user3"]


def test_the_other_direction_shares_the_connection() -> None:
    plan = plan_of(direct(LINK, "transfer: {from: a, to: b, bytes: 1MB, back: 2KB}"))
    there, back = plan.flows
    assert (there.connection, back.connection, back.carrier) == (None, 0, 0)
    assert (there.sender, back.sender) == ("client", "server")
    assert there.paths[0].forward == back.paths[0].backward
    assert (there.application, back.application) == (Transfer(bytes=1_000_000), Transfer(bytes=2000))


def test_socket_options_reach_the_plan() -> None:
    entry = (
        "bulk: {from: a, to: b, duration: 1s, transport: tcp, mark: 7, dscp: 46, nodelay: true, notsent_lowat: 16KiB, "
        "mss: 1000, congestion_control: reno, send_buffer: 64KiB}"
    )
    assert plan_of(direct(LINK, entry)).flows[0].socket == SocketOptions(
        congestion_control="reno",
        send_buffer=65536,
        mark=7,
        dscp=46,
        nodelay=True,
        notsent_lowat=16384,
        mss=1000,
    )


def test_bind_and_connect_choose_both_ends() -> None:
    links = "a-b: {rate: 10mbit}, a-b#2: {rate: 10mbit}"
    text = direct(
        links.replace("a-b#2", '"a-b#2"'),
        "bulk: {from: a, to: b, duration: 1s, bind: 'a-b#2', connect: 10.0.1.2}",
    )
    flow = plan_of(text).flows[0]
    assert (flow.client.address, flow.server.address) == ("10.0.1.1", "10.0.1.2")


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (
            "stream: {from: a, to: b, message: 1KB, duration: 1s}",
            "the flow needs a rate, or every",
        ),
        (
            "stream: {from: a, to: b, rate: 1mbit, duration: 1s}",
            "stream.message: this field is missing; write for example message: 1KB",
        ),
        (
            "udp: {from: a, to: b, packet: 4B, every: 1ms, duration: 1s}",
            "udp.packet: '4B' is out of range",
        ),
        (
            "udp: {from: a, to: b, packet: 9B, every: 1ms}",
            "the flow ends after a duration or at a time (stop)",
        ),
        (
            "udp: {from: a, to: b, packet: 9B, every: 1ms, duration: 1s, transport: tcp}",
            "no such field here",
        ),
        (
            "on-off: {from: a, to: b, on: 1s, off: gaussian 1s, duration: 1s}",
            "'gaussian' is not a known distribution",
        ),
        ("on-off: {from: a, to: b, on: 1s, off: 1s, message: 1KB, duration: 1s}", "message needs a rate"),
        (
            "request: {from: a, to: b, response: 1KB}",
            "the flow ends after a number of requests (requests), after a duration",
        ),
        ("request: {from: a, to: b, response: 1KB, requests: 1, duration: 1s}", "write exactly one of them"),
        (
            "request: {from: a, to: b, response: 1KB, requests: 1, gap: 1s, every: 1s}",
            "every does not wait for it; remove one of them",
        ),
        ("page: {from: a, to: b, objects: []}", "page.objects: there are 0 entries; write at least 1"),
        ("page: {from: a, to: b, objects: [10x]}", "page.objects.0"),
        ("bulk: {from: a, to: b, duration: 1s, stop: 2s}", "write exactly one of them"),
        ("bulk: {from: a, to: b, start: 3s, stop: 2s}", "the flow would stop before its start"),
        (
            "bulk: {from: a, to: b, stop: 2s, rounds: 2}",
            "which after and rounds do not allow; write duration instead",
        ),
        ("bulk: {from: a, to: b, duration: 1s, after: bulk9}", "bulk.after: no flow above is called 'bulk9'"),
        (
            "bulk: {from: a, to: b, duration: 1s, round_gap: 1s}",
            "the time between rounds; add rounds",
        ),
        ("bulk: {from: a, to: b, duration: 1s, spread: 1s}", "spread needs users or a count"),
        (
            "bulk: {from: a, to: b, duration: 1s, users: 2, count: 2}",
            "users and count both set the number of flows",
        ),
        ("bulk: {from: a, to: b, duration: 1s, users: 2, name: x}", "remove the name"),
        (
            "bulk: {from: a, to: b, duration: 1s, transport: [tcp]}",
            "a list of transports needs users or a count",
        ),
        ("bulk: {from: a, to: b, duration: 1s, background: true}", "all flows are in the background"),
        ("bulk: {from: a, to: b, duration: 1s, mss: 1000}", "refuses TCP_MAXSEG on MPTCP sockets"),
        ("bulk: {from: a, to: b, duration: 1s, dscp: 64}", "bulk.dscp: 64 is out of range"),
        ("bulk: {from: a, to: b, duration: 1s, mark: 0}", "bulk.mark: 0 is out of range"),
        ("bulk: {from: a, to: b, duration: 1s, notsent_lowat: 5}", "bulk.notsent_lowat"),
        ("bulk: {from: a, to: b, duration: 1s, nodelay: 2}", "is not true or false"),
        ("bulk: {from: a, to: b, duration: 1s, bind: a-c}", "bulk.bind: a has no link 'a-c'"),
        (
            "bulk: {from: a, to: b, duration: 1s, connect: 10.9.9.9}",
            "bulk.connect: no path from a to b satisfies the other fields and ends at 10.9.9.9",
        ),
        (
            "bulk: {from: a, to: b, duration: 1s, via: a-b, bind: a-b}",
            "via sets the initial path, as bind and connect do",
        ),
        (
            "stream: {from: a, to: b, message: 1B, every: 1us, duration: 10s}",
            "the flows would send 10000000 messages, most of them stream1",
        ),
    ],
)
def test_a_mistake_is_located_and_says_what_would_be_right(entry: str, expected: str) -> None:
    assert expected in mistakes_as_text(direct(LINK, entry))


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    wrong = direct(LINK, more="measure: {from: 5s, to: 2s}\n")
    assert "measure: the window ends before it starts" in mistakes_as_text(wrong)
    window = plan_of(direct(LINK, more="measure: {from: 5s, to: -1s}\n")).measure
    assert window is not None
    assert (window.from_us, window.to_us) == (5_000_000, -1_000_000)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("traffic.0.stream.rate", "[1mbit, 2mbit]"),
        ("traffic.0.stream.message", "[100B, 1KB]"),
        ("traffic.0.stream.nodelay", "[true, false]"),
        ("traffic.0.stream.dscp", "[0, 46]"),
        ("measure.from", "[0s, 1s]"),
    ],
)
def test_new_fields_can_be_varied(field: str, values: str) -> None:
    text = direct(
        LINK,
        "stream: {from: a, to: b, message: 1KB, rate: 1mbit, duration: 1s}",
        more=f"measure: {{to: -1ms}}\nvary:\n  {field}: {values}\n",
    )
    assert plan_of(text, case=0).flows != plan_of(text, case=1).flows or "measure" in field
    assert plan_of(text, case=0) != plan_of(text, case=1)


def test_goodput_is_over_the_time_in_which_anything_goes_on() -> None:
    plan = plan_of(direct(LINK, "transfer: {from: a, to: b, bytes: 1MB, count: 3}"))

    def row(start_s: float, end_s: float) -> dict[str, object]:
        return {
            "completed": True,
            "received_bytes": 1_000_000,
            "start_us": int(start_s * 1e6),
            "end_us": int(end_s * 1e6),
        }

    side_by_side = {0: row(0, 2), 1: row(0, 2), 2: row(0, 2)}
    in_turn = {0: row(0, 1), 1: row(5, 6), 2: row(5.5, 7)}
    assert goodput_bps(plan.flows, side_by_side) == pytest.approx(3 * 8e6 / 2)
    assert goodput_bps(plan.flows, in_turn) == pytest.approx(3 * 8e6 / 3)
    assert goodput_bps(plan.flows, {0: row(0, 1)}) is None


def test_the_shell_form_says_what_ordinary_programs_cannot_do() -> None:
    text = (
        "title: t\nnetwork: {hosts: [a, b], links: {a-b: {rate: 10mbit}}}\ntransport: tcp\ntraffic:\n"
        "  - udp: {from: a, to: b, packet: 100B, every: 10ms, duration: 2s, mark: 3}\n"
        "  - request: {from: a, to: b, response: 1KB, requests: 5, gap: 1s, after: udp1}\n"
        "  - page: {from: a, to: b, objects: [1KB, 3x 1KB], connections: 2}\n"
    )
    shell = to_shell(plan_of(text))
    assert "iperf3 -c 10.0.0.2 -p 5001 -B 10.0.0.1 -u -b 80000 -l 100 -t 2" in shell
    assert "(a trial also sets SO_MARK 3)" in shell
    assert "netperf -H 10.0.0.2" in shell
    assert "after the end of udp1" in shell
    assert "a further connection of page3" in shell


def test_a_transfer_may_begin_with_a_few_bytes_and_a_pause_on_both_sides() -> None:
    text = direct(LINK, "transfer: {from: a, to: b, bytes: 1MiB, back: 80KiB, first: 100B, gap: 200ms}")
    there, back = plan_of(text).flows
    assert there.application == Transfer(bytes=2**20, first=First(bytes=100, pause_us=200_000))
    assert back.application == Transfer(bytes=80 * 1024, first=First(bytes=100, pause_us=200_000))
    assert "each side writes 100 bytes, waits 0.2 s, and then writes the rest" in to_shell(plan_of(text))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("bytes: 1MB, first: 100B", "first and gap need each other"),
        ("bytes: 1MB, gap: 1s", "first and gap need each other"),
        ("file: x.bin, first: 100B, gap: 1s", "first needs a number of bytes, not a file"),
        (
            "bytes: 100B, first: 100B, gap: 1s",
            "first is 100B, but the whole transfer has 100B; lower first",
        ),
        ("bytes: 1MB, back: 50B, first: 100B, gap: 1s", "first is 100B, but the whole transfer has 50B"),
    ],
)
def test_a_start_that_cannot_be_is_refused(fields: str, message: str) -> None:
    assert message in mistakes_as_text(direct(LINK, f"transfer: {{from: a, to: b, {fields}}}"))


def test_udp_back_is_a_flow_of_its_own_over_the_same_sockets() -> None:
    link = "a-b: {rate: 10mbit, forward: {delay: 10ms}, backward: {delay: 300ms}}"
    entry = "udp: {from: a, to: b, packet: 200B, every: 20ms, duration: 2s, back: true}"
    there, back = plan_of(direct(link, entry)).flows
    assert (back.name, back.connection, back.sender, there.sender) == ("udp1.back", 0, "server", "client")
    assert isinstance(there.application, Udp)
    assert isinstance(back.application, Udp)
    same = {"packet_bytes": 200, "interval_ns": 20_000_000, "count": 100}
    assert there.application.model_dump(include=set(same)) == same
    assert back.application.model_dump(include=set(same)) == same
    assert back.application.drain_us - there.application.drain_us == 290_000, "of its own direction"
    assert back.server == there.server
    assert "the other direction of udp1's sockets" in to_shell(plan_of(direct(link, entry)))


BEHIND = """
title: A phone behind a router that translates
network:
  hosts: [phone, server]
  routers: {gateway: {nat: [gateway-isp]}, isp}
  links: {phone-gateway: {}, gateway-isp: {rate: 4mbit}, isp-server: {}}
traffic: [%s]
"""


@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        (
            "udp: {from: server, to: phone, packet: 200B, rate: 1mbit, duration: 1s}",
            "write from: phone, to: server, and back: true if packets should go both ways",
        ),
        (
            "bulk: {from: server, to: phone, duration: 1s}",
            "invert reverse, so that the other side connects",
        ),
        (
            "bulk: {from: phone, to: server, reverse: true, duration: 1s}",
            "invert reverse, so that the other side connects",
        ),
        (
            "request: {from: server, to: phone, response: 1KB, requests: 1}",
            "let phone send the requests (from: phone, to: server)",
        ),
    ],
)
def test_what_a_translation_keeps_out_is_named_with_the_remedy(entry: str, remedy: str) -> None:
    message = mistakes_as_text(BEHIND % entry)
    assert (
        "phone is behind gateway, which translates addresses (nat) and admits only answers from server; "
        in message
    )
    assert remedy in message


def test_without_a_translation_links_are_what_is_missing() -> None:
    text = BEHIND.replace("{nat: [gateway-isp]}", "{}").replace("gateway-isp: {rate: 4mbit}, ", "")
    assert "server cannot be reached from phone; connect them by links" in mistakes_as_text(
        text % "bulk: {from: phone, to: server, duration: 1s}"
    )
