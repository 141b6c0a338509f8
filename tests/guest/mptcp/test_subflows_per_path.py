"""The agent as path manager opens the requested number of subflows between one pair of addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

ONE_PAIR = """
title: Several subflows over one pair of addresses
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 20mbit, delay: 5ms}
traffic:
  - bulk: {from: h1, to: h2, duration: 2s}
"""
JOINED = pl.col("event") == "sub_established"


def counter(ran: Ran, node: str, name: str) -> int:
    rows = ran.tables["counters"].filter((pl.col("node") == node) & (pl.col("counter") == f"MPTcpExt{name}"))
    return int((rows["after"] - rows["before"]).sum())


@pytest.mark.parametrize(("each", "reverse"), [(2, False), (8, True), (32, False)])
def test_every_subflow_comes_up_from_a_port_of_its_own(run_trial: RunTrial, each: int, reverse: bool) -> None:
    ran = run_trial(
        ONE_PAIR,
        overrides=(f"mptcp.subflows_per_path={each}", f"traffic.0.bulk.reverse={str(reverse).lower()}"),
    )
    client, server = ("h2", "h1") if reverse else ("h1", "h2")
    joined = ran.tables["events"].filter(JOINED & (pl.col("node") == client))
    assert len(joined) == each - 1
    assert joined["local_id"].unique().to_list() == [0], "the address of the initial subflow has id 0"
    assert counter(ran, server, "MPJoinAckRx") == each - 1
    rows = ran.series("subflows", side="client")
    assert rows["local_port"].n_unique() == rows["subflow"].n_unique() == each
    assert rows.select("local_address", "remote_address").n_unique() == 1
    carried = (
        ran.series("subflows", side=ran.plan.flows[0].sender).group_by("subflow").agg(pl.max("acked_bytes"))
    )
    assert (carried["acked_bytes"] > 0).all()


def test_a_mesh_of_two_by_two_has_all_pairs_twice(run_trial: RunTrial) -> None:
    ran = run_trial(
        """
title: Two paths
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 5mbit, delay: 5ms}
    h1-h2#2: {rate: 5mbit, delay: 5ms}
mptcp: {subflows_per_path: 2, endpoints: {h1: [{link: 'h1-h2#2', flags: [subflow, backup]}]}}
traffic:
  - bulk: {from: h1, to: h2, duration: 3s}
"""
    )
    rows = ran.series("subflows", side="client").group_by("local_address", "remote_address")
    assert dict(rows.agg(pl.n_unique("subflow")).select("local_address", "subflow").iter_rows()) == {
        "10.0.0.1": 2,
        "10.0.1.1": 2,
    }
    backups = ran.tables["events"].filter(
        JOINED & (pl.col("node") == "h2") & (pl.col("remote_address") == "10.0.1.1")
    )
    assert backups["backup"].to_list() == [True, True]
    idle = ran.series("subflows", side="client", local_address="10.0.1.1")
    assert idle["acked_bytes"].max() <= 2, "a backup carries nothing while the primary works"
