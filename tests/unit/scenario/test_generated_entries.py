"""Generated entries: traffic by permutations, and programs of several nodes, follow their seed and their names."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.scenario import parse
from plait.scenario.generators.traffic import derangement
from plait.traffic.bulk import Bulk
from plait.traffic.transfer import Transfer
from scenario_samples import all_plans, mistakes_as_text, plan_of

FAT_TREE = "title: t\nnetwork: {generator: fat-tree, k: 4}\n"
FROZEN = ["e", "d", "f", "c", "b", "a"]


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 130), st.integers(0, 2**53 - 1))
def test_a_permutation_sends_each_host_to_one_other_and_none_to_itself(n: int, seed: int) -> None:
    names = [f"h{i}" for i in range(n)]
    order = derangement(names, seed)
    assert sorted(order) == sorted(names)
    assert all(a != b for a, b in zip(names, order, strict=True))


def test_every_derangement_is_about_equally_likely() -> None:
    counts = Counter(tuple(derangement(["a", "b", "c", "d"], seed)) for seed in range(1800))
    assert len(counts) == 9  # of 4 there are 9
    assert min(counts.values()) > 150  # 200 each in the mean, standard deviation 13
    assert max(counts.values()) < 250


def test_a_seed_gives_the_same_permutation_for_ever() -> None:
    assert derangement(["a", "b", "c", "d", "e", "f"], 1) == FROZEN


def test_a_permutation_is_of_the_hosts_that_are_named_and_has_the_flows_that_each_says() -> None:
    plan = plan_of(
        FAT_TREE
        + "traffic: [{permutation: {seed: 2, hosts: ['p0*', p3e1h1], each: {transfer: {bytes: 1MB}}}}]\n"
        "transport: tcp"
    )
    senders = {flow.client.netns for flow in plan.flows}
    assert (
        senders
        == {flow.server.netns for flow in plan.flows}
        == {"p0e0h0", "p0e0h1", "p0e1h0", "p0e1h1", "p3e1h1"}
    )
    assert {flow.transport for flow in plan.flows} == {"tcp"}
    assert {flow.application for flow in plan.flows} == {Transfer(bytes=1_000_000)}
    assert len({flow.name for flow in plan.flows}) == 5


def test_the_seed_of_a_permutation_varies() -> None:
    plans = all_plans(
        FAT_TREE + "traffic: [{permutation: {each: {bulk: {duration: 1s}}}}]\n"
        "vary: {traffic.0.permutation.seed: [1, 2], traffic.0.permutation.each.bulk.duration: [1s, 2s]}"
    )
    pairs = [tuple((flow.client.netns, flow.server.netns) for flow in plan.flows) for plan in plans]
    assert pairs[0] == pairs[1] != pairs[2] == pairs[3]
    assert [plan.flows[0].application for plan in plans] == [
        Bulk(duration_us=s * 10**6) for s in (1, 2, 1, 2)
    ]


def text(programs: str, more: str = "") -> str:
    return f"title: t\nnetwork: {{generator: swarm, n: 3}}\ntraffic: []\nprograms:\n{programs}{more}"


SERVER = "  - {name: serve, node: seeder, run: a, ready: {tcp: 80}}\n"
FETCH = "  - {name: fetch, node: 'peer*', after: serve, wait: true, run: b, transport: [mptcp, tcp]}\n"


def test_a_pattern_gives_each_node_a_program_of_its_own_and_transports_in_turn() -> None:
    plan = plan_of(text(SERVER + FETCH))
    assert [(program.name, program.netns, program.transport) for program in plan.programs] == [
        ("serve", "seeder", "mptcp"),
        ("fetch-peer1", "peer1", "mptcp"),
        ("fetch-peer2", "peer2", "tcp"),
        ("fetch-peer3", "peer3", "mptcp"),
    ]
    assert plan.programs[3].directory.endswith("/fetch-peer3")
    between = {(peers.source, peers.target): (peers.transport, len(peers.paths)) for peers in plan.peers}
    assert between["peer1", "peer3"] == ("mptcp", 2)
    assert between["peer1", "peer2"][0] == "tcp"


def test_a_list_of_nodes_needs_no_names() -> None:
    plan = plan_of(text("  - {node: [peer3, 'seed*'], wait: true, run: b}\n"))
    assert [(program.name, program.netns) for program in plan.programs] == [
        ("peer3-0", "peer3"),
        ("seeder-1", "seeder"),
    ]


def test_a_program_that_waits_for_a_group_waits_for_all_members() -> None:
    last = "  - {name: look, node: seeder, after: [fetch, serve], wait: true, run: c}\n"
    plan = plan_of(text(SERVER + FETCH + last))
    assert plan.programs[-1].after == ("fetch-peer1", "fetch-peer2", "fetch-peer3", "serve")


def test_a_group_varies_as_one_and_its_size_with_the_network() -> None:
    vary = "vary: {network.n: [1, 2], programs.1.transport: [[tcp], [mptcp, tcp]]}\n"
    plans = all_plans(text(SERVER + FETCH, vary))
    assert [[program.transport for program in plan.programs[1:]] for plan in plans] == [
        ["tcp"],
        ["mptcp"],
        ["tcp", "tcp"],
        ["mptcp", "tcp"],
    ]


def test_a_scenario_returns_a_group_as_written() -> None:
    asked = parse(text(SERVER + FETCH), "t.yaml").model_dump(mode="json")["programs"]
    assert len(asked) == 2
    assert (asked[1]["node"], asked[1]["transport"]) == ("peer*", ["mptcp", "tcp"])


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("{node: 'pear*', wait: true, run: b}", "programs.0.node: no host or router matches 'pear*'"),
        ("{node: [peer1, s1], wait: true, run: b}", "no host or router matches 's1'"),
        ("{node: [], wait: true, run: b}", "programs.0.node: the list is empty"),
        ("{node: 'peer*', wait: true, rum: b}", "programs.0.rum: there is no such field here"),
        ("{node: 'peer*', wait: true, run: b, transport: [quic]}", "programs.0.transport"),
        ("{node: 'peer*', wait: true, run: b, transport: []}", "programs.0.transport"),
        ("{node: peer1, wait: true, run: b, transport: [tcp]}", "programs.0.transport"),
        (
            "{node: 'peer*', wait: true, run: b, after: others}",
            "programs.0.after.0: no program above is called",
        ),
    ],
)
def test_mistakes_of_a_group_are_reported_once_at_its_entry(entry: str, expected: str) -> None:
    report = mistakes_as_text(text(f"  - {entry}\n"))
    assert expected in report
    assert report.startswith("t.yaml:5:")
    assert len(report.splitlines()) == 1 + ("rum" in entry)


def test_values_under_vary_are_not_checked_for_a_group_with_a_mistake() -> None:
    vary = "vary: {programs.1.transport: [[tcp], [mptcp, tcp]], programs.0.name: [a, b]}\n"
    report = mistakes_as_text(text(SERVER + FETCH.replace("peer*", "pear*"), vary))
    assert "no host or router matches 'pear*'" in report
    assert len(report.splitlines()) == 1


def test_programs_of_two_transports_in_a_node_differ_by_their_names() -> None:
    both = "  - {name: look, node: peer2, wait: true, run: c, transport: mptcp}\n"
    assert "those of 'fetch-peer2' in the same node tcp" in mistakes_as_text(text(SERVER + FETCH + both))
