"""The addresses, ports and sides that real hosts get of a plan, and back, where routers translate addresses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.dataset.model import ALL_TABLES
from plait.engine.remote.configure import wanted
from plait.engine.remote.mapping import Mapping, mapping, plan_of
from plait.engine.remote.merge import merged
from plait.engine.remote.preflight import local_pairs, needs_endpoint
from plait.engine.remote.probe import joined_pairs, probes, problems
from plait.hosts.read import parse_hosts
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

HOSTS = """\
limits: {rate: 50mbit, bytes: 1GB, time: 10min}
hosts:
  home:
    ssh: home
    addresses:
      home-cloud: {local: 192.168.1.5, public: none}
      home-cloud#2: {local: 192.168.2.5, public: none}
  cloud:
    ssh: cloud
    addresses:
      home-cloud: {local: 10.0.1.5, public: 198.51.100.1}
      home-cloud#2: {local: 10.0.2.5, public: 198.51.100.2}
"""
UP, DOWN = "from: home, to: cloud", "from: cloud, to: home"


def planned(
    way: str, kind: str = "transfer", more: str = "bytes: 1MB", hosts: str = HOSTS
) -> tuple[Plan, Mapping]:
    text = (
        "title: Two lines\nnetwork: {hosts: [home, cloud], links: {home-cloud: {}, home-cloud#2: {}}}\n"
        f"traffic: [{{{kind}: {{{way}, {more}}}}}]\ntransport: mptcp\n"
    )
    plan = resolve(expand(parse(text, "t.yaml"))[0].scenario, 1)
    return plan, mapping(plan, parse_hosts(hosts, "hosts.yaml"))


def test_a_host_binds_to_its_own_address_and_connects_to_the_public_one_of_the_other() -> None:
    plan, real = planned(UP)
    (flow,) = plan_of(plan, "home", real, 10**9).flows
    assert (flow.client.address, flow.server.address, flow.sender) == (
        "192.168.1.5",
        "198.51.100.1",
        "client",
    )
    (flow,) = plan_of(plan, "cloud", real, 10**9).flows
    assert flow.server.address == "10.0.1.5"


def test_a_server_that_nobody_can_connect_to_connects_itself_and_data_flow_as_planned() -> None:
    plan, real = planned(DOWN)
    assert real.missing == []
    for node, client, server in (
        ("home", "192.168.1.5", "198.51.100.1"),
        ("cloud", "192.168.1.5", "10.0.1.5"),
    ):
        (flow,) = plan_of(plan, node, real, 10**9).flows
        assert (flow.client.netns, flow.client.address, flow.client.port) == ("home", client, 0)
        assert (flow.server.netns, flow.server.address, flow.server.port) == ("cloud", server, 5001)
        assert flow.sender == "server"


@pytest.mark.parametrize("way", [UP, DOWN])
def test_public_addresses_are_announced_and_hidden_hosts_open_subflows(way: str) -> None:
    plan, real = planned(way)
    home, cloud = (json.loads(wanted(plan, node, real)) for node in ("home", "cloud"))
    assert home["limits"]["add_addr_accepted"] == 1
    assert home["endpoints"] == [{"address": "192.168.2.5", "flags": ["subflow"]}]
    assert cloud["endpoints"] == [{"address": "198.51.100.2", "flags": ["signal"]}]


def test_an_endpoint_that_opens_and_announces_becomes_two_behind_a_translating_router() -> None:
    plan, real = planned(UP)
    second = plan.flows[0].paths[1]
    both = ("subflow", "signal", "backup")
    assert real.endpoints("cloud", second.server_address, both) == {
        "10.0.2.5": ("subflow", "backup"),
        "198.51.100.2": ("signal", "backup"),
    }
    assert real.endpoints("home", second.client_address, both) == {"192.168.2.5": ("subflow", "backup")}
    plan, real = planned(UP, hosts=HOSTS.replace("local: 10.0.2.5", "local: 198.51.100.2"))
    assert real.endpoints("cloud", second.server_address, both) == {"198.51.100.2": both}


def subflows(side: str, *ends: tuple[str, int, str, int]) -> pl.DataFrame:
    names = ("local_address", "local_port", "remote_address", "remote_port")
    rows = [
        {"t_us": 1, "flow": 0, "side": side, "subflow": number, **dict(zip(names, end, strict=True))}
        for number, end in enumerate(ends)
    ]
    return pl.DataFrame(rows, schema=ALL_TABLES["subflows"])


@pytest.mark.parametrize("way", [UP, DOWN])
def test_subflows_get_their_paths_although_a_router_hides_one_end(way: str) -> None:
    plan, real = planned(way)
    at_home = subflows(
        "client",
        ("192.168.1.5", 40001, "198.51.100.1", 5001),
        ("192.168.2.5", 40002, "198.51.100.2", 5001),
    )
    at_cloud = subflows(
        "server", ("10.0.1.5", 5001, "203.0.113.7", 40001), ("10.0.2.5", 5001, "203.0.113.7", 61234)
    )
    empty = {name: pl.DataFrame(schema=schema) for name, schema in ALL_TABLES.items() if name != "subflows"}
    hosts = {node: {**empty, "subflows": frame} for node, frame in (("home", at_home), ("cloud", at_cloud))}
    rows = merged(plan, real, hosts)["subflows"]
    client = "client" if way == UP else "server"
    paths = {(path.client_address, path.server_address) for path in plan.flows[0].paths}
    if way == DOWN:
        paths = {(server, client) for client, server in paths}
    of_home = rows.filter(pl.col("side") == client).select("local_address", "remote_address").rows()
    of_cloud = rows.filter(pl.col("side") != client).select("remote_address", "local_address").rows()
    assert set(of_home) == set(of_cloud) == paths


@pytest.mark.parametrize("way", [UP, DOWN])
def test_hosts_are_asked_for_routes_to_public_addresses_and_for_their_own_ones(way: str) -> None:
    plan, real = planned(way)
    assert local_pairs(plan, "home", real) == [
        ("192.168.1.5", "198.51.100.1"),
        ("192.168.2.5", "198.51.100.2"),
    ]
    assert local_pairs(plan, "cloud", real) == [("10.0.1.5", None), ("10.0.2.5", None)]
    assert needs_endpoint(plan, "home", "192.168.2.5", real)
    assert not needs_endpoint(plan, "cloud", "198.51.100.2", real), "home opens the second subflow itself"


@pytest.mark.parametrize("way", [UP, DOWN])
def test_probes_of_each_line_connect_from_the_hidden_host(way: str) -> None:
    plan, real = planned(way)
    tried = list(probes(plan, real))
    assert [probe.joins for probe in tried] == [False, False, True]
    for probe, number in zip(tried, (1, 2, 1), strict=True):
        for node, server in (("home", f"198.51.100.{number}"), ("cloud", f"10.0.{number}.5")):
            (flow,) = plan_of(probe.plan, node, real, 10**9).flows
            assert (flow.client.netns, flow.client.address) == ("home", f"192.168.{number}.5")
            assert (flow.server.netns, flow.server.address, flow.server.port) == ("cloud", server, 5001)
    assert joined_pairs(plan, plan.flows[0], real) == [("192.168.2.5", "198.51.100.2")]


def probed(rows: pl.DataFrame, **flow: object) -> dict[str, pl.DataFrame]:
    row = {"flow": 0, "completed": True, "fallback": False, "connected_us": 1, "error": None, **flow}
    return {"flows": pl.DataFrame([row]), "subflows": rows}


@pytest.mark.parametrize("way", [UP, DOWN])
def test_what_is_blocked_is_named_from_the_side_that_connects(way: str) -> None:
    plan, real = planned(way)
    first, _second, joins = probes(plan, real)
    (blocked,) = problems(first, probed(subflows("client"), connected_us=None), real)
    assert "no connection from home (192.168.1.5) to cloud (198.51.100.1, port 5001)" in blocked
    assert "in the firewall of cloud" in blocked

    at_home = "client" if way == UP else "server"
    paths = [(path.client_address, path.server_address) for path in plan.flows[0].paths]
    initial, further = paths if way == UP else [(server, client) for client, server in paths]
    lines = [(initial[0], 40001, initial[1], 5001), (further[0], 40002, further[1], 5001)]
    assert list(problems(joins, probed(subflows(at_home, *lines)), real)) == []
    (absent,) = problems(joins, probed(subflows(at_home, lines[0])), real)
    assert "no subflow from home (192.168.2.5) to cloud (198.51.100.2)" in absent
    crossed = (further[0], 40002, initial[1], 5001)
    assert list(problems(joins, probed(subflows(at_home, lines[0], crossed)), real)) == [], (
        "Linux joined another address of the peer before it learned the right one: the line carries MPTCP"
    )


def test_each_path_is_tried_from_a_side_that_can_connect() -> None:
    text = HOSTS.replace("192.168.1.5, public: none", "192.168.1.5, public: 203.0.113.7")
    plan, real = planned(DOWN, hosts=text)
    openers = [plan_of(probe.plan, "home", real, 10**9).flows[0].client.netns for probe in probes(plan, real)]
    assert openers[:2] == ["cloud", "home"]
