"""Permutation traffic sends each host to one other, follows its seed, and has the flows that each entry names."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from plait.plan.model.applications import Bulk, Transfer
from plait.scenario.generators.traffic import derangement
from scenario_samples import all_plans, plan_of

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
