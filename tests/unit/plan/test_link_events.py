"""Events of links follow the scenario's syntax and become the right events of the plan."""

from __future__ import annotations

import pytest

from plait.plan.links.chain import with_chains
from plait.plan.model.plan import ChangeQdisc, Event, SetDevice
from plait.plan.model.qdiscs import Bfifo, Netem, Pfifo, Tbf
from plait.plan.shell.script import to_shell
from scenario_samples import mistakes_as_text, plan_of

HEAD = """\
title: t
network:
  hosts: [a, b]
  switches: [s]
  links:
    a-b: {rate: 10mbit, delay: 10ms, queue: 1bdp}
    a-s: {rate: 4mbit, loss: 1%, backward: {queue: 64KiB}}
    s-b: {}
traffic: [bulk: {from: a, to: b, duration: 20s}]
"""


def events(*lines: str, head: str = HEAD) -> tuple[Event, ...]:
    """Return the events of a stock kernel."""
    return with_chains(plan_of(text(*lines, head=head)), exact=False).events


def text(*lines: str, head: str = HEAD) -> str:
    return head + "events:\n" + "".join(f"  - {line}\n" for line in lines)


def changes(event: Event) -> dict[tuple[str, str], object]:
    """Return the options by (interface in wire, handle)."""
    return {
        (action.qdisc.ifname, action.qdisc.handle): action.qdisc.options
        for action in event.actions
        if isinstance(action, ChangeQdisc)
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{down: a-b}", "t.yaml:11:5: events.0.at: this field is missing; write for example at: 5s"),
        (
            "{at: 5s}",
            "events.0: the event changes nothing; add one of down, cut, up, set, handover, endpoints, limits, sysctls",
        ),
        ("{at: 5s, down: a-b, up: a-s}", "the event has down and up; write an event for each"),
        ("{at: 5, down: a-b}", "events.0.at: 5 has no unit"),
        ("{at: 2h, down: a-b}", "events.0.at: '2h' is out of range"),
        ("{at: 5s, donw: a-b}", "events.0.donw: there is no such field here; did you mean 'down'?"),
        ("{at: 5s, down: a-c}", "t.yaml:11:14: events.0.down: there is no link 'a-c'; did you mean 'a-s'?"),
        ("{at: 5s, down: []}", "events.0.down: there are 0 entries; write at least 1"),
        (
            "{at: 5s, down: a->b}",
            "'a->b' is one direction of a-b, but this event takes a link; write cut: a->b",
        ),
        ("{at: 5s, cut: a->c}", "there is no direction 'a->c'; did you mean 'a->s'?"),
        ("{at: 5s, up: a-b}", "a-b is neither down nor cut at 5s; remove this event"),
        ("{at: 5s, set: {a->b: {rate: 1mbit}}}", "write a-b: {forward: {..}}"),
        ("{at: 5s, set: {b->a: {rate: 1mbit}}}", "write a-b: {backward: {..}}"),
        ("{at: 5s, set: {}}", "events.0.set: there are 0 entries; write at least 1"),
        (
            "{at: 5s, set: {a-b: {}}}",
            "events.0.set.a-b: the event sets nothing; add a condition, such as rate: 2mbit",
        ),
        ("{at: 5s, set: {a-b: {rat: 1mbit}}}", "events.0.set.a-b.rat: there is no such field here; did you"),
        ("{at: 5s, set: {a-b: {mtu: 1400}}}", "events.0.set.a-b.mtu: there is no such field here"),
        ("{at: 5s, set: {a-b: {rate: null}}}", "events.0.set.a-b.rate: an event cannot remove the rate"),
        (
            "{at: 5s, set: {s-b: {rate: 1mbit}}}",
            "s-b has no rate, and an event can only change a rate; add one under",
        ),
        ("{at: 5s, set: {s-b: {queue: 9pkt}}}", "a link without a rate has no queue"),
        (
            "{at: 5s, set: {a-b: {jitter: 11ms}}}",
            "events.0.set.a-b.jitter: the jitter is greater than the delay",
        ),
        ("{at: 5s, set: {a-b: {queue: 1000B}}}", "1KB is less than one frame (1514 bytes)"),
        ("{at: 5s, handover: {from: a-b}}", "events.0.handover.to: this field is missing"),
        ("{at: 5s, handover: {from: a-b, to: a-x}}", "events.0.handover.to: there is no link 'a-x'"),
        (
            "{at: 5s, handover: {from: a-b, to: a-s, gap: 1s, overlap: 1s}}",
            "either a gap or an overlap; remove one of them",
        ),
        (
            "{at: 5s, handover: {from: a-b, to: a-s, how: die}}",
            "'die' is not a valid value; use one of: cut, down",
        ),
    ],
)
def test_a_mistake_in_an_event_is_located_with_a_remedy(line: str, expected: str) -> None:
    assert expected in mistakes_as_text(text(line))


def test_events_in_an_impossible_order_are_reported() -> None:
    both = ("{at: 5s, down: a-b}", "{at: 3s, down: a-b}")
    assert "events.0.down: a-b is down since 3s already" in mistakes_as_text(text(*both))
    assert "events.1.cut: a->b is cut since 1s already" in mistakes_as_text(
        text("{at: 1s, cut: a-b}", "{at: 2s, cut: a->b}")
    )
    assert "neither down nor cut at 9s" in mistakes_as_text(
        text("{at: 5s, down: a-b}", "{at: 7s, up: a-b}", "{at: 9s, up: a-b}")
    )
    assert events("{at: 5s, down: a-b}", "{at: 7s, up: a-b}", "{at: 9s, down: a-b}")


def test_an_event_after_the_end_is_a_mistake() -> None:
    assert "events.0.at: 5s is after the end of the trial (until: 4s)" in mistakes_as_text(
        text("{at: 5s, down: a-b}", head=HEAD + "until: 4s\n")
    )


def test_a_change_that_needs_another_kind_of_queue_is_refused() -> None:
    wanted = "events.0.set.a-b: the event would change the kind of queue or of link of a-b"
    assert wanted in mistakes_as_text(text("{at: 5s, set: {a-b: {queue: 64KiB}}}"))


def test_events_happen_in_the_order_of_time_and_those_of_one_time_as_written() -> None:
    planned = events("{at: 5s, down: [a-b, a-s]}", "{at: 2s, cut: a->b}", "{at: 5s, up: a->b}")
    assert [(e.t_us, e.name, e.subject) for e in planned] == [
        (2_000_000, "link_cut", "a->b"),
        (5_000_000, "link_down", "a-b"),
        (5_000_000, "link_down", "a-s"),
        (5_000_000, "link_up", "a->b"),
    ]


def test_a_link_goes_down_at_both_ends_and_comes_back_with_its_routes() -> None:
    plan = plan_of(text("{at: 5s, down: a-b}", "{at: 6s, up: a-b}"))
    down, up = plan.events
    assert [(d.netns, d.ifname, d.up) for d in down.actions if isinstance(d, SetDevice)] == [
        ("a", "a-eth0", False),
        ("b", "b-eth0", False),
    ]
    assert not any(d.routes for d in down.actions if isinstance(d, SetDevice))
    for device in up.actions:
        assert isinstance(device, SetDevice)
        assert device.up
        assert device.addresses == ()  # IPv4 addresses stay
        routes = [r for r in plan.network.routes if (r.netns, r.device) == (device.netns, device.ifname)]
        assert routes
        assert device.routes == tuple(routes)


def test_ipv6_addresses_are_put_back() -> None:
    head = HEAD.replace(
        "hosts: [a, b]", "hosts: {a: {addresses: {a-b: 'fd00::1/64'}}, b: {addresses: {a-b: 'fd00::2/64'}}}"
    )
    _, up = events("{at: 5s, down: a-b}", "{at: 6s, up: a-b}", head=head)
    assert [d.addresses for d in up.actions if isinstance(d, SetDevice)] == [("fd00::1/64",), ("fd00::2/64",)]


def test_a_cut_loses_all_packets_of_a_direction_and_up_brings_the_old_loss_back() -> None:
    cut, up = events("{at: 5s, cut: a->s}", "{at: 6s, up: a->s}")
    (lost,), (back,) = changes(cut).values(), changes(up).values()
    assert isinstance(lost, Netem)
    assert isinstance(back, Netem)
    assert (lost.loss_ratio, back.loss_ratio) == (1.0, 0.01)


def test_conditions_that_change_while_a_link_is_cut_hold_when_it_is_up_again() -> None:
    _, change, up = events(
        "{at: 5s, cut: a-s}", "{at: 6s, set: {a-s: {delay: 7ms, loss: 2%}}}", "{at: 7s, up: a-s}"
    )
    assert {o.loss_ratio for o in changes(change).values() if isinstance(o, Netem)} == {1.0}
    assert {(o.loss_ratio, o.delay_ns) for o in changes(up).values() if isinstance(o, Netem)} == {
        (0.02, 7_000_000)
    }


def test_a_rate_that_changes_leaves_the_queue_as_long_as_it_was() -> None:
    plan = with_chains(
        plan_of(text("{at: 5s, set: {a-b: {rate: 2mbit}}}", "{at: 6s, set: {a-b: {queue: 1bdp}}}"))
    )
    first = {q.ifname: q.options for q in plan.network.qdiscs if isinstance(q.options, Pfifo)}
    slower, shorter = plan.events
    assert {o.rate_bps for o in changes(slower).values() if isinstance(o, Tbf)} == {2_000_000}
    queues = {ifname: o for (ifname, _), o in changes(slower).items() if isinstance(o, Pfifo)}
    assert queues  # a tbf that changes sets its queue's limit in its own unit
    assert all(first[ifname] == options for ifname, options in queues.items())
    now = {o.limit_packets for o in changes(shorter).values() if isinstance(o, Pfifo)}
    assert now == {-(-2_000_000 * 20 // (8000 * 1514))}


def test_one_direction_is_set_separately() -> None:
    (event,) = events("{at: 5s, set: {a-s: {rate: 3mbit, backward: {rate: 1mbit}}}}")
    rates = [o.rate_bps for o in changes(event).values() if isinstance(o, Tbf)]
    assert rates == [3_000_000, 1_000_000]
    assert [type(o) for o in changes(event).values()] == [Tbf, Pfifo, Tbf, Bfifo]
    assert event.text == "a-s: rate 3mbit, backward rate 1mbit"


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ("gap: 200ms", [(5_000_000, "link_down", "a-b"), (5_200_000, "link_up", "a-s")]),
        ("overlap: 200ms", [(5_000_000, "link_up", "a-s"), (5_200_000, "link_down", "a-b")]),
        (
            "how: cut, set: {rate: 1mbit}",
            [(5_000_000, "link_cut", "a-b"), (5_000_000, "link_set", "a-s"), (5_000_000, "link_up", "a-s")],
        ),
    ],
)
def test_a_handover_is_a_link_that_goes_and_one_that_comes(options: str, order: list[object]) -> None:
    planned = events("{at: 0s, down: a-s}", f"{{at: 5s, handover: {{from: a-b, to: a-s, {options}}}}}")
    assert [(e.t_us, e.name, e.subject) for e in planned[1:]] == order


def test_the_link_that_comes_may_be_there_already() -> None:
    planned = events("{at: 5s, handover: {from: a-b, to: a-s}}")
    assert [(e.name, e.subject) for e in planned] == [("link_down", "a-b")]


def test_the_time_of_an_event_can_be_swept() -> None:
    from plait.plan.resolve import resolve
    from plait.scenario import parse
    from plait.scenario.vary.cases import expand

    scenario = parse(text("{at: 5s, down: a-b}") + "vary: {events.0.at: [1s, 3s]}\n", "t.yaml")
    assert [resolve(case.scenario, 1).events[0].t_us for case in expand(scenario)] == [1_000_000, 3_000_000]


def test_the_shell_form_says_what_happens_when() -> None:
    shown = to_shell(plan_of(text("{at: 5s, down: a-b}", "{at: 6.5s, set: {a-s: {loss: 3%}}}")))
    assert "# at 5 s: a-b down\n#   ip -n a link set dev a-eth0 down\n" in shown
    assert "# at 6.5 s: a-s: loss 3%\n#   tc -n wire qdisc change dev w1b root handle 1: netem" in shown
