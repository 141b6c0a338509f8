"""Each flag of an endpoint and each limit has its effect on the real kernel, so an ignored one would fail a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from scenario_samples import MESH

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

FURTHER = "".join(f"    c-s#{n}: {{rate: 2mbit, delay: 2ms}}\n" for n in range(2, 10))
NINE = f"""
title: Nine links
network:
  hosts: [c, s]
  links:
    c-s: {{rate: 2mbit, delay: 2ms}}
{FURTHER}
traffic:
  - bulk: {{from: c, to: s, duration: 500ms}}
"""
SHORT_MESH = MESH.replace("duration: 10s", "duration: 1s")
TWO = """
title: A path, and another in reserve
network:
  hosts: [c, s]
  links:
    c-s: {rate: 5mbit, delay: 5ms}
    c-s#2: {rate: 5mbit, delay: 5ms}
traffic:
  - bulk: {from: c, to: s, duration: 6s}
"""
CUT = "events=[{at: 2s, cut: c-s}]"


def joined(ran: Ran) -> list[tuple[str, str]]:
    rows = ran.tables["events"].filter((pl.col("event") == "sub_established") & (pl.col("node") == "c"))
    return sorted(rows.select("local_address", "remote_address").iter_rows())


def counter(ran: Ran, node: str, name: str) -> int:
    rows = ran.tables["counters"].filter((pl.col("node") == node) & (pl.col("counter") == f"MPTcpExt{name}"))
    return int((rows["after"] - rows["before"]).sum())


def carried(ran: Ran, address: str, t_us: int) -> int:
    """Return bytes acknowledged on the subflow from an address by a time."""
    rows = ran.series("subflows", side="client", local_address=address).filter(pl.col("t_us") <= t_us)
    return 0 if rows.is_empty() else int(rows["acked_bytes"][-1])


@pytest.mark.parametrize("limit", [0, 1, 4, 8])
@pytest.mark.parametrize("host", ["c", "s"])
def test_the_lower_limit_of_both_sides_bounds_the_subflows(
    run_trial: RunTrial, host: str, limit: int
) -> None:
    ran = run_trial(NINE, overrides=(f"mptcp.limits.{host}={{subflows: {limit}}}",))
    rows = ran.series("subflows", side="server")
    assert rows["subflow"].n_unique() == 1 + limit


@pytest.mark.parametrize("accepted", [0, 1, 3, 8])
def test_the_client_joins_as_many_announced_addresses_as_it_accepts(
    run_trial: RunTrial, accepted: int
) -> None:
    ran = run_trial(
        NINE,
        overrides=(f"mptcp.limits.c={{subflows: 8, add_addr_accepted: {accepted}}}", "mptcp.endpoints.c=[]"),
    )
    assert len(joined(ran)) == accepted


def test_without_signal_nothing_is_announced(run_trial: RunTrial) -> None:
    with_signal, without = run_trial(SHORT_MESH), run_trial(SHORT_MESH, overrides=("mptcp.endpoints.s=[]",))
    assert (counter(with_signal, "c", "AddAddr"), counter(without, "c", "AddAddr")) == (1, 0)
    assert {remote for _, remote in joined(without)} == {"10.0.2.1"}


def test_without_subflow_the_client_leaves_by_its_routes_only(run_trial: RunTrial) -> None:
    ran = run_trial(SHORT_MESH, overrides=("mptcp.endpoints.c=[]",))
    assert joined(ran) == [("10.0.0.1", "10.0.3.1")]


def test_fullmesh_has_every_pair_and_plain_subflows_do_not(run_trial: RunTrial) -> None:
    flags = "flags: [subflow, fullmesh]"
    mesh = f"mptcp.endpoints.c=[{{link: c-r, {flags}}}, {{link: 'c-r#2', {flags}}}]"
    assert len(joined(run_trial(SHORT_MESH))) == 2
    assert joined(run_trial(SHORT_MESH, overrides=(mesh,))) == [
        ("10.0.0.1", "10.0.3.1"), ("10.0.1.1", "10.0.2.1"), ("10.0.1.1", "10.0.3.1"),
    ]  # fmt: skip


def test_an_announced_port_is_where_the_join_goes(run_trial: RunTrial) -> None:
    ran = run_trial(
        SHORT_MESH, overrides=("mptcp.endpoints.s=[{link: 'r-s#2', flags: [signal], port: 7000}]",)
    )
    rows = ran.tables["events"].filter((pl.col("event") == "sub_established") & (pl.col("node") == "c"))
    ports = dict(rows.select("remote_address", "remote_port").iter_rows())
    assert ports["10.0.3.1"] == 7000
    assert counter(ran, "s", "MPJoinPortAckRx") == 1
    assert counter(run_trial(SHORT_MESH), "s", "MPJoinPortAckRx") == 0


@pytest.mark.parametrize("side", ["c", "s"])
def test_a_backup_idles_until_the_primary_fails_and_then_takes_over(run_trial: RunTrial, side: str) -> None:
    flag = "subflow" if side == "c" else "signal"
    backup = f"mptcp.endpoints.{side}=[{{link: 'c-s#2', flags: [{flag}, backup]}}]"
    ran = run_trial(TWO, overrides=(backup, CUT))
    assert carried(ran, "10.0.1.1", 2_000_000) <= 2, "SYN and FIN count as a byte each"
    assert carried(ran, "10.0.0.1", 2_000_000) > 900_000
    assert carried(ran, "10.0.1.1", 6_000_000) > 900_000
    both = run_trial(TWO, overrides=(CUT,))
    assert carried(both, "10.0.1.1", 2_000_000) > 900_000
