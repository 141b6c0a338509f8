"""Paths that share a link carry less at once than the sum of what each carries alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from fake_tables import fake_tables, make_tables
from plait.explain import explain_trial
from plait.explain.capacity import LinkSamples, capacity_bps
from plait.explain.causes.buffers import _needed_bytes
from plait.explain.facts import flow_facts
from plait.explain.link_evidence import full_sentences
from plait.explain.wording import causes
from scenario_samples import plan_of

if TYPE_CHECKING:
    from plait.explain.model import FlowExplanation
    from plait.plan.model.plan import Plan

TWO_TUNNELS = """\
title: Two tunnels over the better line, and one over the other
network:
  hosts: [home, server]
  routers: [fibre, core]
  links:
    home-fibre: {}
    home-fibre#2: {}
    fibre-core: {rate: 25mbit, delay: 10ms, queue: 50KB}
    home-core: {rate: 8mbit, delay: 15ms, queue: 40KB}
    core-server: {rate: 100mbit, delay: 1ms}
transport: mptcp
mptcp:
  endpoints: {home: [{link: home-core, flags: [subflow]}, {link: "home-fibre#2", flags: [subflow]}], server: []}
traffic: [{bulk: {from: server, to: home, reverse: true, duration: 10s}}]
"""
PAYLOAD = 1424 / 1514


def test_the_capacity_of_a_flow_is_what_its_paths_carry_at_once() -> None:
    plan = plan_of(TWO_TUNNELS)
    (flow,) = explain_trial(plan, fake_tables(plan))
    assert flow.together_bps == pytest.approx(33e6 * PAYLOAD)
    assert flow.capacity_bps == pytest.approx(58e6 * PAYLOAD)
    assert flow.sentences[0].endswith(
        "of what its three paths, which share links, carry at once (31.0 Mbit/s)."
    )


def test_what_a_cause_costs_is_within_what_the_paths_carry_at_once() -> None:
    """Two paths that both stand still lose the rate of their link once, not twice."""
    plan = plan_of(TWO_TUNNELS)
    (flow,) = explain_trial(plan, fake_tables(plan))
    costs = {share.cause: share.cost_bps or 0.0 for share in flow.shares}
    shared = costs.pop("shared-bottleneck")
    assert flow.goodput_bps is not None
    assert flow.together_bps is not None
    assert flow.capacity_bps is not None
    assert sum(costs.values()) + flow.goodput_bps == pytest.approx(flow.together_bps, rel=0.08)
    assert shared + sum(costs.values()) + flow.goodput_bps == pytest.approx(flow.capacity_bps, rel=0.08)


def test_paths_without_a_common_limit_add_up() -> None:
    plan = plan_of(TWO_TUNNELS, "network.links.fibre-core.rate=100mbit", "network.links.core-server.rate=1gbit",
                   "network.links.home-fibre.rate=10mbit", "network.links.home-fibre#2.rate=10mbit")  # fmt: skip
    (flow,) = explain_trial(plan, fake_tables(plan))
    assert flow.together_bps == flow.capacity_bps == pytest.approx(28e6 * PAYLOAD)
    assert "the combined capacity of its three paths (26.3 Mbit/s)" in flow.sentences[0]


FILE = """\
title: A file over two lines and the link behind both
network:
  hosts: [c, s]
  routers: [m]
  links: {c-m: {rate: 10mbit, delay: 5ms}, "c-m#2": {rate: 10mbit, delay: 15ms}, m-s: {rate: 15mbit, delay: 10ms}}
transport: mptcp
traffic: [{transfer: {name: file, from: c, to: s, bytes: 2MB}}]
"""
ONLY_SPARE = ("mptcp.endpoints={c: [{link: 'c-m#2', flags: [subflow, backup]}], s: []}",)


def sent_by(
    plan: Plan, sent_bytes: tuple[int, int], until_us: int, end_us: int, copied: int = 0
) -> FlowExplanation:
    """Return the explanation of a file whose paths send evenly until a time, and whose data arrive until the end.

    `copied`: how many of these bytes both the connection and its subflows sent again.
    """
    flow, step = plan.flows[0], 100_000
    row = {"flow": flow.id, "name": flow.name, "kind": flow.kind, "start_us": 0, "connected_us": 0, "end_us": end_us,
           "sent_bytes": sum(sent_bytes), "received_bytes": sum(sent_bytes) - copied, "completed": True}  # fmt: skip
    rows: dict[str, list[dict[str, Any]]] = {"flows": [row], "connections": [], "subflows": []}
    for t_us in range(0, end_us + 1, step):
        both = {"t_us": t_us, "flow": flow.id, "side": flow.sender}
        again = copied * min(t_us, until_us) // until_us
        rows["connections"].append(both | {"unsent_bytes": 0, "retransmitted_bytes": again})
        for number, (path, total) in enumerate(zip(flow.paths, sent_bytes, strict=True)):
            sent = total * min(t_us, until_us) // until_us
            ends = {"local_address": path.client_address, "remote_address": path.server_address}
            sample = {"subflow": number, "state": "ESTABLISHED", "sent_bytes": sent, "acked_bytes": sent,
                      "retransmitted_bytes": again // 2, "notsent_bytes": 0, "backup": int(path.backup)}  # fmt: skip
            rows["subflows"].append(both | ends | sample)
    (explained,) = explain_trial(plan, make_tables(rows))
    return explained


def test_what_waits_for_a_shared_link_is_carried_in_later_slices() -> None:
    """Both paths send at the rates of their own links; then the last bytes leave the queue of the link behind."""
    explained = sent_by(plan_of(FILE), (1_100_000, 1_100_000), until_us=1_000_000, end_us=1_600_000)
    costs = {share.cause: share.cost_bps or 0.0 for share in explained.shares}
    assert explained.together_bps == pytest.approx(15e6 * PAYLOAD)
    assert explained.capacity_bps == pytest.approx(20e6 * PAYLOAD)
    assert explained.goodput_bps == pytest.approx(11e6)
    assert costs.pop("shared-bottleneck") == pytest.approx(5e6 * PAYLOAD)
    assert sum(costs.values()) == pytest.approx(15e6 * PAYLOAD - 11e6)


@pytest.mark.parametrize("sent_bytes", [(1_999_000, 1000), (1_000_000, 1_800_000)])
def test_a_backup_costs_at_most_what_it_adds_to_the_other_paths(sent_bytes: tuple[int, int]) -> None:
    """The path alone carries 10 of the 15 Mbit/s of the link that the backup also crosses, in its place as well."""
    explained = sent_by(plan_of(FILE, *ONLY_SPARE), sent_bytes, until_us=2_000_000, end_us=2_000_000)
    costs = {share.cause: share.cost_bps or 0.0 for share in explained.shares}
    assert costs["backup"] <= 5e6 * PAYLOAD
    assert explained.goodput_bps == pytest.approx(sum(sent_bytes) * 4)
    assert explained.goodput_bps + sum(costs.values()) == pytest.approx(15e6 * PAYLOAD)


def test_the_cost_of_a_shared_link_is_no_part_of_what_the_paths_carry_at_once() -> None:
    """It may exceed the cost of the main cause, so the sentence says what it is beside."""
    explained = sent_by(plan_of(FILE), (1_000_000, 400_000), until_us=1_000_000, end_us=2_000_000)
    assert len(explained.named) > 1
    assert explained.named[-1] == "shared-bottleneck"
    within, beyond = causes(explained)[0], causes(explained)[-2]
    assert within.startswith("Within what its paths carry at once, the flow was limited by ")
    assert beyond.startswith("Beyond that, it was limited by shared-bottleneck: ")
    assert "With links of their own, its paths would carry up to 4.70 Mbit/s more." in beyond
    assert not any("and cost 4.70 Mbit/s" in sentence for sentence in explained.sentences)


def test_the_largest_cause_of_paths_that_share_links_is_none_of_them() -> None:
    """It is as the table ranks it: a link that paths share comes last."""
    plan = plan_of(FILE, "network.links.m-s.rate=18.5mbit")
    explained = sent_by(plan, (1_000_000, 900_000), until_us=950_000, end_us=1_000_000)
    costs = {share.cause: share.cost_bps or 0.0 for share in explained.shares}
    assert not explained.named
    assert max(costs, key=lambda cause: costs[cause]) == "shared-bottleneck"
    assert "shared-bottleneck" not in explained.sentences[-1]


def test_a_path_carried_what_its_receiver_counted() -> None:
    """The acknowledgements of the last bytes are on their way when a flow ends."""
    plan = plan_of(FILE, "transport=tcp")
    tables = fake_tables(plan)
    late = pl.col("acked_bytes") * (pl.col("side") == "server") // 2
    tables["subflows"] = tables["subflows"].with_columns(acked_bytes=late)
    (explained,) = explain_trial(plan, tables)
    # The tables follow from the plan's seed. A path also counts copies, which are below 2 % in them.
    assert explained.paths[0].goodput_bps == pytest.approx(explained.goodput_bps, rel=0.02)
    unseen = tables | {"subflows": tables["subflows"].filter(pl.col("side") == "client")}
    (explained,) = explain_trial(plan, unseen)
    assert explained.paths[0].goodput_bps == 0, "the sender alone: what was acknowledged"


def test_goodput_and_costs_are_at_most_what_the_paths_carry_at_once() -> None:
    """Each path retransmits what the other one also sends again, so the sender shows less than what arrives."""
    plan = plan_of(FILE)
    sent, copied = (1_100_000, 1_100_000), 200_000
    explained = sent_by(plan, sent, until_us=1_000_000, end_us=1_300_000, copied=copied)
    assert explained.goodput_bps == pytest.approx((sum(sent) - copied) * 8 / 1.3)
    costs = {share.cause: share.cost_bps or 0.0 for share in explained.shares}
    assert costs.pop("shared-bottleneck") < 5e6 * PAYLOAD
    assert sum(costs.values()) > 0
    assert explained.goodput_bps + sum(costs.values()) <= 15e6 * PAYLOAD + 1
    assert explained.sentences[1].endswith("; this counts copies of what another path carried as well.")
    assert "copies" not in sent_by(plan, sent, until_us=1_000_000, end_us=1_300_000).sentences[1]


def test_a_full_link_is_said_to_carry_what_it_carried() -> None:
    plan = plan_of(FILE)
    tables = fake_tables(plan)
    bits = int(plan.directions["m->s"].rate_bps * 0.85)
    rows = [{"t_us": t_us, "link": "m->s", "sent_bytes": bits * t_us // 8_000_000, "queue_packets": 3}
            for t_us in range(0, 5_000_000, 100_000)]  # fmt: skip
    flow = plan.flows[0]
    facts = flow_facts(tables, LinkSamples(plan, make_tables({"links": rows})["links"]), flow)
    assert facts is not None
    assert full_sentences(facts.network, ("m->s", "no-link")) == [
        "While m->s counted as full, it carried 85 % of its rate."
    ]


def test_what_neither_side_counted_is_not_known() -> None:
    plan = plan_of(FILE)
    tables = fake_tables(plan)
    path = plan.flows[0].paths[1]
    on_path = pl.any_horizontal(pl.col("local_address", "remote_address") == path.client_address)
    counts = ("received_bytes", "acked_bytes", "rwnd_limited_us", "retransmitted_bytes")
    lost = [pl.when(~on_path).then(name).alias(name) for name in counts]
    tables["subflows"] = tables["subflows"].with_columns(lost)
    (explained,) = explain_trial(plan, tables)
    assert explained.paths[0].goodput_bps
    assert explained.paths[1].goodput_bps is None
    assert explained.kernel is None, "a time that no subflow counted is no number"
    assert f"what {path.name} carried was not measured" in explained.sentences[1]
    assert not any("nan" in text for share in explained.shares for text in share.evidence)


def test_paths_of_which_one_has_no_rate_hold_no_known_amount() -> None:
    plan = plan_of(FILE, "network.links.c-m.rate=null", "network.links.m-s.rate=null")
    (flow,) = plan.flows
    assert [capacity_bps(plan, path) for path in flow.paths] == [None, 10e6]
    tables = fake_tables(plan)
    facts = flow_facts(tables, LinkSamples(plan, tables["links"]), flow)
    assert facts is not None
    assert _needed_bytes(facts) is None
