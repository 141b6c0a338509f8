"""Subflows use IPv4, IPv6 or both as the scenario says, and address translation changes only what it must."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

ONE_LINK = """\
title: One link
network:
  hosts: [h1, h2]
  links: {h1-h2: {rate: 10mbit, delay: 2ms}, h1-h2#2: {rate: 10mbit, delay: 2ms}}
traffic: [bulk: {from: h1, to: h2, duration: 2s}]
"""
NAT = """\
title: A way through a router that translates
network:
  hosts: [home, server]
  routers: {nat: {nat: [nat-isp]}, isp}
  links: {home-server: {rate: 10mbit}, home-nat: {}, nat-isp: {rate: 4mbit, delay: 5ms}, isp-server: {}}
traffic: [bulk: {from: home, to: server, duration: 2s, via: home-nat}]
"""


def pairs(ran: Ran, side: str) -> set[tuple[str, str]]:
    """(local, remote) addresses of the subflows that carried data."""
    used = ran.tables["subflows"].filter(
        (pl.col("side") == side) & ((pl.col("sent_bytes") > 100_000) | (pl.col("received_bytes") > 100_000))
    )
    return set(used.select("local_address", "remote_address").unique().iter_rows())


@pytest.mark.parametrize(("addresses", "start"), [("ipv4", "10.0."), ("ipv6", "fd00:")])
def test_subflows_of_one_family_take_their_links(run_trial: RunTrial, addresses: str, start: str) -> None:
    ran = run_trial(ONE_LINK, overrides=(f"network.addresses={addresses}",))
    used = pairs(ran, "client")
    assert len(used) == 2
    assert all(address.startswith(start) for pair in used for address in pair)


def test_a_connection_over_ipv6_has_subflows_over_both_families_of_each_link(run_trial: RunTrial) -> None:
    ran = run_trial(ONE_LINK, overrides=("network.addresses=dual",))
    assert pairs(ran, "client") == {
        ("fd00::1", "fd00::2"),
        ("fd00:1::1", "fd00:1::2"),
        ("10.0.0.1", "10.0.0.2"),
        ("10.0.1.1", "10.0.1.2"),
    }
    assert {(p.client_address, p.server_address) for p in ran.plan.flows[0].paths} == pairs(ran, "client")


def test_a_connection_over_ipv4_stays_there(run_trial: RunTrial) -> None:
    ran = run_trial(ONE_LINK, overrides=("network.addresses=dual", "traffic.0.bulk.via=10.0.0.2"))
    assert pairs(ran, "client") == {("10.0.0.1", "10.0.0.2"), ("10.0.1.1", "10.0.1.2")}
    assert {(p.client_address, p.server_address) for p in ran.plan.flows[0].paths} == pairs(ran, "client")


def test_the_server_sees_the_translators_address_and_the_direct_path_is_joined(run_trial: RunTrial) -> None:
    ran = run_trial(NAT)
    assert pairs(ran, "client") == {("10.0.1.1", "10.0.3.1"), ("10.0.0.1", "10.0.0.2")}
    assert pairs(ran, "server") == {("10.0.3.1", "10.0.2.1"), ("10.0.0.2", "10.0.0.1")}
    plain = run_trial(NAT.replace("nat: {nat: [nat-isp]}", "nat"))
    assert pairs(plain, "server") == {("10.0.3.1", "10.0.1.1"), ("10.0.0.2", "10.0.0.1")}
    goodput = [r.tables["flows"]["received_bytes"].item() * 8 / 2e6 for r in (ran, plain)]
    assert goodput[0] == pytest.approx(goodput[1], rel=0.02), "translation costs no bandwidth"
    assert goodput[0] > 12, "both paths carry data: 10 and 4 Mbit/s"
