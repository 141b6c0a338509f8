"""A page is explained with all of its connections, and the traffic beside it is that which ran meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from fake_tables import make_tables
from plait.analysis.wording import micros
from plait.explain import explain_trial
from plait.explain.capacity import LinkSamples
from plait.explain.cause import Cause
from plait.explain.causes.losses import _retransmitted
from plait.explain.causes.sharing import _competing
from plait.explain.causes.starting import _start
from plait.explain.facts import flow_facts
from scenario_samples import plan_of

if TYPE_CHECKING:
    from plait.explain.model import FlowExplanation
    from plait.plan.model.plan import Plan

TEXT = """\
title: Pages beside a bulk flow
network: {hosts: [a, b], links: {a-b: {rate: 20mbit, delay: 5ms}}}
traffic:
  - bulk: {name: long, from: b, to: a, duration: 3s, reverse: true}
  - page: {name: site, from: a, to: b, objects: [50KB, 4x 25KB], connections: 3, rounds: 2}
transport: tcp
"""
STEP_US, LINK_STEP = 100_000, 250_000
TIMES = {"long": (0, 3_000_000), "site.1": (1_000_000, 1_400_000), "site.2": (2_400_000, 2_800_000)}
OBJECTS = (50_000, 25_000, 25_000, 25_000, 25_000)
CARRIED = {"long": 6_000_000, "site.1": 50_000, "site.1.c2": 50_000, "site.1.c3": 50_000}
"""Bytes of each connection; those of site.2 carry the same."""
KERNEL = {"rwnd_limited_us": 0, "sndbuf_limited_us": 0}


def pages() -> tuple[Plan, dict[str, pl.DataFrame]]:
    """Return the plan and the tables of two rounds, whose link the bulk flow keeps full."""
    plan = plan_of(TEXT)
    rows: dict[str, list[dict[str, Any]]] = {"flows": [], "subflows": [], "connections": [], "messages": []}
    for flow in plan.flows:
        start, end = next(times for name, times in TIMES.items() if flow.name.startswith(name))
        total = CARRIED[flow.name.replace("site.2", "site.1")]
        rows["flows"].append(
            {
                "flow": flow.id,
                "name": flow.name,
                "kind": flow.kind,
                "start_us": start,
                "connected_us": start,
                "end_us": end,
                "received_bytes": total,
                "completed": True,
            }
        )
        path = flow.paths[0]
        for t in range(start, end + 1, STEP_US):
            sent = total * (t - start) // (end - start)
            sample = {
                "t_us": t,
                "flow": flow.id,
                "side": flow.sender,
                "sent_bytes": sent,
                "acked_bytes": sent,
            }
            ends = {"local_address": path.server_address, "remote_address": path.client_address}
            rows["connections"].append(sample | {"unsent_bytes": 0})
            busy = {
                "busy_us": (t - start) // (1 if flow.kind == "page" else 2),
                "retransmitted_bytes": 1000 * (t > start),
            }
            rows["subflows"].append(
                sample | ends | {"subflow": 0, "state": "ESTABLISHED", "rtt_us": 10_000} | KERNEL | busy
            )
        if flow.kind == "page":
            rows["messages"] += [
                {"flow": flow.id, "index": n, "sent_us": start, "received_us": end, "bytes": size}
                for n, size in enumerate(OBJECTS)
            ]
    rows["links"] = [
        {"t_us": n * STEP_US, "link": "b->a", "sent_bytes": n * LINK_STEP, "queue_bytes": 900_000}
        for n in range(31)
    ]
    return plan, make_tables(rows)


def first_page() -> FlowExplanation:
    """Return the explanation of the first round."""
    return next(flow for flow in explain_trial(*pages()) if flow.flow == "site.1")


def test_a_page_counts_all_its_connections_and_names_only_traffic_that_ran_meanwhile() -> None:
    page = first_page()
    assert page.named == (Cause.COMPETING_TRAFFIC,)
    assert page.paths[0].goodput_bps == pytest.approx(150_000 * 8 / 0.4)
    # 150 kB of payload are 157 kB of frames, of 1 MB that the link carried in 0.4 s.
    assert page.shares[0].evidence == (
        "Other flows (long) took 84 % of what b->a carried.",
        "While b->a counted as full, it carried 100 % of its rate.",
    )


def test_a_page_says_what_an_idle_network_takes_for_its_largest_object() -> None:
    page = first_page()
    assert page.delivery is not None
    assert page.delivery.base_max_us is not None
    assert page.delivery.base_us < page.delivery.base_max_us
    median, longest = micros(page.delivery.base_us), micros(page.delivery.base_max_us)
    assert page.sentences[1].endswith(f"an idle network takes at most {median} (median) to {longest}.")


def test_no_share_is_said_of_a_return_path_whose_acks_nobody_counted() -> None:
    """The table `links` counts all frames, and what the flow acknowledges there is not apart."""
    plan, tables = pages()
    on_return = tables["links"].with_columns(link=pl.lit("a->b"))
    site = next(flow for flow in plan.flows if flow.name == "site.1")
    facts = flow_facts(tables, LinkSamples(plan, on_return), site)
    assert facts is not None
    plan.crossing["a->b"] = plan.crossing["b->a"]
    assert _competing(facts, ("a->b",))[0] == (
        "Other flows (long) used a->b, which also carried the requests and ACKs of this flow."
    )


def test_the_kernels_accounting_of_a_page_covers_all_its_connections() -> None:
    """The first of three connections of 0.4 s is always busy, the others half of the time; each retransmitted 1 kB."""
    kernel = first_page().kernel
    assert kernel is not None
    assert (kernel.lifetime_us, kernel.busy_us) == (1_200_000, 800_000)
    plan, tables = pages()
    site = next(flow for flow in plan.flows if flow.name == "site.1")
    facts = flow_facts(tables, LinkSamples(plan, tables["links"]), site)
    assert facts is not None
    assert _retransmitted(facts) == ["TCP retransmitted 3.00 kB."]


def test_late_messages_show_the_windows_of_all_connections_of_a_page() -> None:
    """How long a flow lasted is no evidence of a window that was small after a pause."""
    plan, tables = pages()
    site = next(flow for flow in plan.flows if flow.name == "site.1")
    further = [flow.id for flow in plan.flows if flow.application.page_flow == site.id]
    cwnd = pl.when(pl.col("flow").is_in(further)).then(30).otherwise(10 + pl.col("t_us") // 1_200_000)
    tables["subflows"] = tables["subflows"].with_columns(cwnd_segments=cwnd, mss_bytes=pl.lit(1000))
    facts = flow_facts(tables, LinkSamples(plan, tables["links"]), site)
    assert facts is not None
    (evidence,) = _start(replace(facts, own_bytes={"a-b": np.ones(facts.slices)}), ())
    assert evidence == f"The congestion window on {site.paths[0].name} was 10.0 kB to 30.0 kB in the samples."
    assert _start(facts, ()) == ["The flow lasted 400 ms, 40 round trips of its longest path."]
