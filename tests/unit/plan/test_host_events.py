"""Events of hosts follow the scenario's syntax and become the right events of the plan."""

from __future__ import annotations

import pytest

from plait.plan.model.mptcp import AddEndpoint, ChangeEndpoint, RemoveEndpoint, SetLimits, SetSysctl
from plait.plan.shell.script import to_shell
from scenario_samples import mistakes_as_text, plan_of

HEAD = """\
title: t
network:
  hosts: [c, s]
  routers: [r]
  links:
    c-r: {rate: 5mbit, delay: 1ms}
    c-r#2: {rate: 5mbit, delay: 2ms}
    r-s: {rate: 20mbit, delay: 3ms}
traffic: [bulk: {from: c, to: s, duration: 20s}]
"""


def text(*lines: str, head: str = HEAD) -> str:
    return head + "events:\n" + "".join(f"  - {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "{at: 5s, endpoint: {c: {}}}",
            "events.0.endpoint: there is no such field here; did you mean 'endpoints'?",
        ),
        ("{at: 5s, endpoints: {}}", "events.0.endpoints: there are 0 entries; write at least 1"),
        (
            "{at: 5s, endpoints: {c: {}}}",
            "events.0.endpoints.c: the event changes nothing; write add: {link: .., flags: [..]}",
        ),
        (
            "{at: 5s, endpoints: {x: {remove: c-r}}}",
            "events.0.endpoints.x: no host is called 'x'; use one of: c, s",
        ),
        (
            "{at: 5s, endpoints: {r: {remove: c-r}}}",
            "events.0.endpoints.r: no host is called 'r'; use one of: c, s",
        ),
        (
            "{at: 5s, endpoints: {c: {remove: r-s}}}",
            "remove.0: c has no link 'r-s', nor is that an address; ",
        ),
        (
            "{at: 5s, endpoints: {c: {remove: 10.0.9.9}}}",
            "remove.0: c has no address 10.0.9.9; it has 10.0.0.1, 10.0.1.1",
        ),
        (
            "{at: 5s, endpoints: {c: {add: {link: c-r#3, flags: [subflow]}}}}",
            "add.0.link: c has no link 'c-r#3'; did you",
        ),
        (
            "{at: 5s, endpoints: {c: {add: {link: c-r}}}}",
            "add.0.flags: this field is missing; write for example flags: [subflow]",
        ),
        (
            "{at: 5s, endpoints: {c: {add: {link: c-r, flags: [subflow, laminar]}}}}",
            "add.0.flags.1: 'laminar' is not a valid value",
        ),
        (
            "{at: 5s, endpoints: {c: {add: {link: c-r, flags: [signal, fullmesh]}}}}",
            "cannot have both the flags fullmesh (it connects) and signal (it is announced)",
        ),
        (
            "{at: 5s, endpoints: {c: {add: {link: 'c-r#2', flags: [subflow]}}}}",
            "c has an endpoint at 10.0.1.1 already",
        ),
        ("{at: 5s, endpoints: {c: {add: {address: here, flags: [subflow]}}}}", "'here' is not an address"),
        (
            "{at: 5s, endpoints: {c: {change: {link: c-r}}}}",
            "change.0: the event changes nothing; write for example backup: true",
        ),
        (
            "{at: 5s, endpoints: {c: {change: {link: c-r, flags: [backup]}}}}",
            "change.0.flags: there is no such field here",
        ),
        (
            "{at: 5s, endpoints: {c: {change: {link: c-r, backup: maybe}}}}",
            "change.0.backup: 'maybe' is not true or false",
        ),
        (
            "{at: 5s, endpoints: {s: {change: {link: r-s, fullmesh: true}}}}",
            "has the flag signal, which excludes fullmesh",
        ),
        (
            "{at: 5s, limits: {c: {}}}",
            "events.0.limits.c: the event sets nothing; write for example subflows: 2",
        ),
        (
            "{at: 5s, limits: {c: {subflows: 9}}}",
            "events.0.limits.c.subflows: 9 is out of range; write at most 8",
        ),
        (
            "{at: 5s, limits: {c: {subflow: 1}}}",
            "events.0.limits.c.subflow: there is no such field here; did you mean",
        ),
        (
            "{at: 5s, limits: {d: {subflows: 1}}}",
            "events.0.limits.d: no host is called 'd'; use one of: c, s",
        ),
        (
            "{at: 5s, sysctls: {q: {net.ipv4.tcp_sack: 0}}}",
            "events.0.sysctls.q: no host or router is called 'q'",
        ),
        ("{at: 5s, sysctls: {c: {kernel.panic: 0}}}", "events.0.sysctls.c.kernel.panic: "),
        ("{at: 5s, sysctls: {c: {}}}", "events.0.sysctls.c: there are 0 entries; write at least 1"),
        (
            "{at: 5s, limits: {c: {subflows: 1}}, down: c-r}",
            "the event has down and limits; write an event for each",
        ),
    ],
)
def test_a_mistake_is_located_and_says_what_would_be_right(line: str, expected: str) -> None:
    shown = mistakes_as_text(text(line))
    assert expected in shown
    assert "t.yaml:11:" in shown


def test_endpoints_are_followed_through_time() -> None:
    removal = "{at: 2s, endpoints: {c: {remove: 'c-r#2'}}}"
    again = "{at: 4s, endpoints: {c: {add: {link: 'c-r#2', flags: [subflow]}}}}"
    change = "{at: 3s, endpoints: {c: {change: {link: 'c-r#2', backup: true}}}}"
    assert (
        "events.1.endpoints.c.change.0.link: c has no endpoint at c-r#2 at 3s; add one first"
        in mistakes_as_text(text(removal, change))
    )
    plan = plan_of(text(removal, again, "{at: 5s, endpoints: {c: {change: {link: 'c-r#2', backup: true}}}}"))
    removed, added, changed = (event.actions[0] for event in plan.events)
    (first,) = plan.network.mptcp[0].endpoints
    assert removed == RemoveEndpoint(netns="c", address="10.0.1.1", id=first.id)
    assert isinstance(added, AddEndpoint)
    assert added.endpoint.id != first.id, "an id means one endpoint in a trial"
    assert changed == ChangeEndpoint(
        netns="c", address="10.0.1.1", id=added.endpoint.id, backup=True, fullmesh=False
    )


def test_what_is_not_given_stays_as_it_is() -> None:
    given = (
        "mptcp: {endpoints: {c: [{link: 'c-r#2', flags: [subflow, fullmesh]}]}, limits: {c: {subflows: 5}}}\n"
    )
    lines = (
        "{at: 2s, endpoints: {c: {change: {link: 'c-r#2', backup: true}}}}",
        "{at: 3s, limits: {c: {add_addr_accepted: 3}}}",
    )
    changed, limits = (event.actions[0] for event in plan_of(text(*lines, head=HEAD + given)).events)
    assert isinstance(changed, ChangeEndpoint)
    assert (changed.backup, changed.fullmesh) == (True, True)
    assert limits == SetLimits(netns="c", subflows=5, add_addr_accepted=3)


def test_the_initial_path_has_an_endpoint_where_an_event_changes_it_and_goes_without_one() -> None:
    lines = (
        "{at: 2s, endpoints: {c: {change: {link: c-r, backup: true}}}}",
        "{at: 3s, endpoints: {s: {remove: r-s}}}",
    )
    plan = plan_of(text(*lines))
    assert [end.address for end in plan.network.mptcp[0].endpoints] == ["10.0.0.1", "10.0.1.1"]
    assert plan.events[1].actions == (RemoveEndpoint(netns="s", address="10.0.2.1", id=0),)
    assert [end.address for end in plan_of(HEAD).network.mptcp[0].endpoints] == ["10.0.1.1"]


def test_paths_and_limits_are_those_of_the_whole_trial_and_there_is_no_fixed_ideal() -> None:
    head = HEAD + "mptcp: {endpoints: {c: []}}\n"
    plan = plan_of(text("{at: 2s, endpoints: {c: {add: {link: 'c-r#2', flags: [subflow]}}}}", head=head))
    (flow,) = plan.flows
    assert [path.client_address for path in flow.paths] == ["10.0.0.1", "10.0.1.1"]
    assert flow.ideal_rate_bps is None
    assert plan.network.mptcp[0].subflows == 1
    tcp = plan_of(
        text(
            "{at: 2s, endpoints: {c: {add: {link: 'c-r#2', flags: [subflow]}}}}",
            head=head + "transport: tcp\n",
        )
    )
    assert tcp.flows[0].ideal_rate_bps == 5_000_000


def test_events_of_hosts_and_links_happen_in_the_order_in_which_they_are_written() -> None:
    lines = (
        "{at: 2s, sysctls: {r: {net.ipv4.ip_forward: 0}}}",
        "{at: 2s, cut: c-r}",
        "{at: 2s, endpoints: {c: {remove: 'c-r#2'}}}",
        "{at: 1s, limits: {s: {subflows: 0}}}",
    )
    plan = plan_of(text(*lines))
    assert [(event.t_us, event.name, event.subject) for event in plan.events] == [
        (1_000_000, "limits_set", "s"),
        (2_000_000, "sysctl_set", "r"),
        (2_000_000, "link_cut", "c-r"),
        (2_000_000, "endpoint_remove", "c"),
    ]
    assert plan.events[1].actions == (SetSysctl(netns="r", path="net/ipv4/ip_forward", value="0"),)


def test_a_congestion_control_that_is_set_later_is_allowed_from_the_beginning() -> None:
    plan = plan_of(text("{at: 2s, sysctls: {c: {net.ipv4.tcp_congestion_control: vegas}}}"))
    assert ("net/ipv4/tcp_allowed_congestion_control", "cubic reno vegas") in plan.machine.sysctls


def test_more_endpoints_than_the_kernel_takes_are_refused_where_the_last_one_comes() -> None:
    links = "".join(f"    c-r#{n}: {{}}\n" for n in range(3, 10))
    head = HEAD.replace("    r-s:", links + "    r-s:") + "mptcp: {endpoints: {c: []}}\n"
    add = ", ".join(f"{{link: 'c-r#{n}', flags: [subflow]}}" for n in range(2, 10))
    assert plan_of(text(f"{{at: 1s, endpoints: {{c: {{add: [{add}]}}}}}}", head=head))
    late = "{at: 2s, endpoints: {c: {add: {link: c-r, flags: [subflow]}}}}"
    shown = mistakes_as_text(text(f"{{at: 1s, endpoints: {{c: {{add: [{add}]}}}}}}", late, head=head))
    assert "events.1.endpoints.c.add.0.link: c would have 9 endpoints; the kernel takes at most 8" in shown


def test_the_agent_as_path_manager_knows_no_such_events() -> None:
    head = HEAD + "mptcp: {subflows_per_path: 2}\n"
    assert "events.0.limits: with subflows_per_path plait opens" in mistakes_as_text(
        text("{at: 1s, limits: {c: {subflows: 1}}}", head=head)
    )


def test_the_shell_form_says_what_ip_mptcp_would() -> None:
    lines = (
        "{at: 2s, endpoints: {c: {change: {link: 'c-r#2', backup: true}}}}",
        "{at: 3s, endpoints: {c: {remove: [c-r, 'c-r#2']}}}",
        "{at: 4s, sysctls: {c: {net.ipv4.tcp_sack: 0}}}",
    )
    shown = to_shell(plan_of(text(*lines)))
    assert (
        "# at 2 s: c: endpoint 10.0.1.1: backup\n#   ip -n c mptcp endpoint change id 1 backup nofullmesh\n"
        in shown
    )
    assert "#   ip -n c mptcp endpoint delete id 0 10.0.0.1\n" in shown
    assert "#   ip netns exec c sysctl -qw net.ipv4.tcp_sack=0\n" in shown


@pytest.mark.parametrize(
    ("endpoints", "expected"),
    [
        (
            "{link: c-r, flags: [subflow]}, {address: 10.0.0.1, flags: [signal]}",
            "1: c has an endpoint at 10.0.0.1 already",
        ),
        (
            "{link: c-r, id: 7, flags: [subflow]}, {link: 'c-r#2', id: 7, flags: [subflow]}",
            "1: c has an endpoint with id 7 already; choose another",
        ),
        (
            "{link: c-r, port: 7000, flags: [signal, subflow]}",
            "0: a port is only for announced endpoints, not for the flag subflow",
        ),
    ],
)
def test_endpoints_that_the_kernel_would_refuse_are_refused_before(endpoints: str, expected: str) -> None:
    assert f"mptcp.endpoints.c.{expected}" in mistakes_as_text(
        HEAD + f"mptcp: {{endpoints: {{c: [{endpoints}]}}}}\n"
    )


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (
            HEAD.replace(
                "hosts: [c, s]",
                "hosts: {c: {scheduler: redundant, sysctls: {net.mptcp.scheduler: blest}}, s: {}}",
            ),
            "network.hosts.c: scheduler and the sysctl net.mptcp.scheduler set the same value; remove one of them",
        ),
        (
            HEAD.replace("duration: 20s", "duration: 20s, transport: tcp, scheduler: blest"),
            "TCP has no packet scheduler",
        ),
        (
            HEAD.replace("routers: [r]", "routers: {r: {scheduler: blest}}"),
            "routers.r.scheduler: there is no such field",
        ),
    ],
)
def test_a_scheduler_is_said_once_and_where_it_counts(head: str, expected: str) -> None:
    assert expected in mistakes_as_text(head)


def test_host_and_flow_choose_for_themselves() -> None:
    head = HEAD.replace("hosts: [c, s]", "hosts: {c: {scheduler: blest, congestion_control: reno}, s: {}}")
    plan = plan_of(head.replace("duration: 20s", "duration: 20s, scheduler: redundant"))
    spaces = {space.name: dict(space.sysctls) for space in plan.network.namespaces}
    assert [spaces[host]["net/mptcp/scheduler"] for host in "cs"] == ["blest", "default"]
    assert [spaces[host]["net/ipv4/tcp_congestion_control"] for host in "cs"] == ["reno", "cubic"]
    assert plan.flows[0].socket.scheduler == "redundant"
