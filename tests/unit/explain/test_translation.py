"""plait attributes a server's samples to the plan's paths behind routers that translate addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from fake_tables import fake_tables
from plait.analysis.iperf3 import iperf3_document
from plait.analysis.metrics.programs import with_connections
from plait.analysis.metrics.trial import trial_metrics
from plait.analysis.series import trial_series
from plait.explain import explain_trial
from plait.explain.cause import Cause
from scenario_samples import plan_of

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

TWO_ROUTERS = """\
title: A download behind two translating routers
network:
  hosts: [phone, server]
  routers: {home: {nat: [home-core]}, cell: {nat: [cell-core]}, core: {}}
  links:
    phone-home: {rate: 20mbit, delay: 10ms}
    phone-cell: {rate: 10mbit, delay: 20ms}
    home-core: {delay: 1ms}
    cell-core: {delay: 1ms}
    core-server: {delay: 1ms}
traffic:
  - bulk: {from: server, to: phone, duration: 5s, reverse: true}
"""
ONE_ROUTER = """\
title: Two links to one translating router, which gives both the same address
network:
  hosts: [phone, server]
  routers: {home: {nat: [home-server]}}
  links:
    phone-home: {rate: 20mbit, delay: 10ms}
    phone-home#2: {rate: 10mbit, delay: 20ms}
    home-server: {delay: 1ms}
traffic:
  - bulk: {from: server, to: phone, duration: 5s, reverse: true}
"""
Tables = dict[str, pl.DataFrame]


def outside_address(plan: Plan, router: str) -> str:
    (nat,) = (nat_rule for nat_rule in plan.network.nats if nat_rule.netns == router)
    (address,) = (
        end.addresses[0].split("/")[0]
        for veth in plan.network.veths
        for end in (veth.a, veth.b)
        if (end.netns, end.ifname) == (router, nat.outside[0])
    )
    return address


def as_translated(plan: Plan, routers: list[str]) -> Tables:
    """Return tables of a trial in which each path's client has the address of the path's router."""
    tables = fake_tables(plan)
    for path, router in zip(plan.flows[0].paths, routers, strict=True):
        here = (pl.col("side") == "server") & (pl.col("remote_address") == path.client_address)
        seen = pl.when(here).then(pl.lit(outside_address(plan, router))).otherwise(pl.col("remote_address"))
        tables["subflows"] = tables["subflows"].with_columns(remote_address=seen)
    return tables


@pytest.mark.parametrize(
    ("text", "routers"), [(TWO_ROUTERS, ["home", "cell"]), (ONE_ROUTER, ["home", "home"])]
)
@pytest.mark.parametrize("transport", ["tcp", "mptcp"])
def test_what_a_server_samples_behind_translation_belongs_to_the_plans_paths(
    text: str, routers: list[str], transport: str
) -> None:
    plan = plan_of(text, f"transport={transport}")
    names = [path.name for path in plan.flows[0].paths]
    tables = as_translated(plan, routers[: len(names)])
    assert not set(tables["subflows"].filter(side="server")["remote_address"]) & {
        path.client_address for path in plan.flows[0].paths
    }
    (explanation,) = explain_trial(plan, tables)
    assert [path.path for path in explanation.paths] == names
    assert [len(path.subflows) for path in explanation.paths] == [1] * len(names)
    assert explanation.capacity_bps is not None
    assert Cause.SUBFLOW_NEVER not in [share.cause for share in explanation.shares]
    about = with_connections(plan, tables)
    shares = {
        name.removesuffix(".path_share"): value
        for name, value in trial_metrics(about, tables).items()
        if name.endswith(".path_share")
    }
    assert list(shares) == names
    assert all(share and share > 0.2 for share in shares.values())
    series = trial_series(about, tables)
    assert [subflow.path for subflow in series.subflows] == names
    document = iperf3_document(about.flows[0], tables, "0")
    assert [subflow["path"] for subflow in document["end"]["streams"][0]["subflows"]] == names


def test_what_passes_the_routers_in_a_tunnel_of_a_program_belongs_to_the_plans_paths() -> None:
    """As through GRE from router to cloud: the server sees the client's own addresses."""
    plan = plan_of(TWO_ROUTERS)
    (explanation,) = explain_trial(plan, fake_tables(plan))
    assert [path.path for path in explanation.paths] == [path.name for path in plan.flows[0].paths]
    assert [len(path.subflows) for path in explanation.paths] == [1, 1]
    assert Cause.SUBFLOW_NEVER not in [share.cause for share in explanation.shares]


def test_a_cut_is_seen_through_translation() -> None:
    plan = plan_of(TWO_ROUTERS, "events=[{at: 1s, cut: phone-cell}, {at: 4s, up: phone-cell}]")
    (explanation,) = explain_trial(plan, as_translated(plan, ["home", "cell"]))
    cell = explanation.paths[1]
    down = next(share for share in cell.shares if share.cause == Cause.PATH_DOWN)
    assert down.time == pytest.approx(3 / 5, abs=0.03)


def test_translation_is_followed_once_and_only_where_there_is_some() -> None:
    plan = plan_of(TWO_ROUTERS)
    tables = as_translated(plan, ["home", "cell"])
    once = with_connections(plan, tables)
    assert with_connections(once, tables) == once
    plain = plan_of(TWO_ROUTERS.replace("{nat: [home-core]}", "{}").replace("{nat: [cell-core]}", "{}"))
    assert with_connections(plain, fake_tables(plain)) is plain
