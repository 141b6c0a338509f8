"""What plait asks real hosts, and which short connections stand for a plan's flows before its first trial."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.engine.engine import Job
from plait.engine.remote import preflight
from plait.engine.remote.answers import interface_of, interfaces_with, mptcp_in
from plait.engine.remote.configure import wanted
from plait.engine.remote.mapping import Mapping, mapping
from plait.engine.remote.merge import _Paths, _planned_ends
from plait.engine.remote.preflight import problems as lacks_of_hosts
from plait.engine.remote.preflight import programs_to_bring
from plait.engine.remote.probe import joined_pairs, probes
from plait.engine.remote.trial import RemoteEngine
from plait.errors import MachineError, TrialError
from plait.hosts.read import parse_hosts
from plait.scenario import parse
from plait.study.study import plan_study

if TYPE_CHECKING:
    from pathlib import Path

    from plait.plan.model.plan import Plan

HOSTS = """\
limits: {rate: 50mbit, bytes: 1GB, time: 10min}
hosts:
  h1: {ssh: h1, addresses: {h1-h2: 192.0.2.1, h1-h2#2: 198.51.100.1}}
  h2: {ssh: h2, addresses: {h1-h2: 192.0.2.2, h1-h2#2: 198.51.100.2}, ports: 6000-6010}
"""
SCENARIO = """\
title: Two lines
network: {hosts: [h1, h2], links: {h1-h2: {}, h1-h2#2: {}}}
traffic: [{transfer: {from: h1, to: h2, bytes: 6MB}}]
transport: mptcp
"""


@dataclass
class Host:
    """What a keeper answers before the first trial; this one has no `ip` and lists no endpoints."""

    name: str
    facts: dict[str, str]

    def route(self, _local: str, _remote: str) -> tuple[None, None]:
        return None, None

    def mptcp_state(self) -> None:
        return None


def planned(scenario: str = SCENARIO) -> tuple[Plan, Mapping]:
    (case,) = plan_study(parse(scenario, "two-lines.yaml"), "two-lines").cases
    plan = case.plan(1)
    return plan, mapping(plan, parse_hosts(HOSTS, "hosts.yaml"))


def test_answers_that_are_no_json_of_ip_count_as_none() -> None:
    for text in ("", "nonsense", "[" * 3000, "7"):
        assert interfaces_with("192.0.2.1", text) is None
        assert interface_of(text) is None
    assert interfaces_with("192.0.2.1", "[]") == set()
    assert interface_of("[]") == ""
    assert interface_of('[{"dev": "l1"}]') == "l1"


def test_an_interface_has_exactly_the_address_that_was_asked_for() -> None:
    answer = json.dumps(
        [{}, {"ifname": "l1", "addr_info": [{"local": "192.0.2.10"}, {"local": "2001:db8::1"}]}]
    )
    assert interfaces_with("192.0.2.1", answer) == set()
    assert interfaces_with("2001:DB8:0::1", answer) == {"l1"}


def test_a_host_that_sends_other_endpoints_fails() -> None:
    limits = '"limits": {"subflows": 2, "add_addr_accepted": 0}'
    shown = mptcp_in(f'{{"endpoints": [{{"address": "192.0.2.1", "flags": 2}}], {limits}}}', "h1")
    assert shown == ([{"address": "192.0.2.1", "flags": 2}], (2, 0))
    for text in ("{}", "[]", f'{{"endpoints": [7], {limits}}}', '{"endpoints": []}'):
        with pytest.raises(TrialError, match="h1: the host sent"):
            mptcp_in(text, "h1")


def test_each_line_has_a_probe_on_the_ports_of_the_flows_and_the_last_one_joins_them() -> None:
    plan, real = planned()
    first, second, joins = probes(plan, real)
    pairs = [
        (probe.plan.flows[0].client.address, probe.plan.flows[0].server.address) for probe in (first, second)
    ]
    assert pairs == [(path.client_address, path.server_address) for path in plan.flows[0].paths]
    assert all(
        probe.plan.flows[0].server.port == plan.flows[0].server.port for probe in (first, second, joins)
    )
    assert [probe.joins for probe in (first, second, joins)] == [False, False, True]
    assert joined_pairs(plan, plan.flows[0], real) == [("198.51.100.1", "198.51.100.2")]


def test_an_announcement_gets_the_address_of_the_plan() -> None:
    plan, real = planned()
    (flow,) = plan.flows
    second, known = flow.paths[1], _Paths(real, {})
    assert _planned_ends(flow, "h1", (None, None, "198.51.100.2", None), known)[2] == second.server_address
    assert _planned_ends(None, "h1", ("198.51.100.1", 1, None, None), known)[0] == second.client_address
    assert _planned_ends(flow, "h1", (None, None, "203.0.113.9", None), known)[2] == "203.0.113.9"


OLIA = SCENARIO.replace("bytes: 6MB", "bytes: 6MB, congestion_control: olia")
LOADS = {
    "net/ipv4/tcp_available_congestion_control": "reno cubic",
    "net/mptcp/enabled": "1",
    "kernel": "6.12.117+deb12-amd64",
    "btf": "yes",
    "bpftool": "yes",
}


def refused_program(facts: dict[str, str], *, configure: bool) -> str:
    plan, real = planned(OLIA)
    host = Host("h1", facts)
    return "\n".join(lacks_of_hosts(plan, real, {"h1": host, "h2": host}, configure=configure))


def test_a_congestion_control_that_plait_has_as_a_program_names_the_command_that_loads_it() -> None:
    assert "use --configure, or load it there: `plait bpf load olia`" in refused_program(
        LOADS, configure=False
    )


@pytest.mark.parametrize(
    ("fact", "value", "remedy"),
    [
        ("kernel", "6.1.0-56-amd64", "too old; boot Linux 6.12"),
        ("btf", "", "CONFIG_DEBUG_INFO_BTF"),
        ("bpftool", "", "apt-get install bpftool"),
    ],
)
def test_configure_loads_a_program_where_the_kernel_takes_it(fact: str, value: str, remedy: str) -> None:
    assert refused_program(LOADS, configure=True) == ""
    assert remedy in refused_program(LOADS | {fact: value}, configure=True)


def test_a_host_gets_the_programs_that_its_flows_and_its_default_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It gets one that it has too, because that may be what a killed session left, which `configure` takes away."""
    plan, real = planned(OLIA + "tcp: {congestion_control: lia}\n")
    host = Host("h1", LOADS)
    assert json.loads(wanted(plan, "h1", real))["programs"] == ["lia", "olia"]
    assert programs_to_bring(plan, host) == ["lia", "olia"]
    host.facts["net/ipv4/tcp_available_congestion_control"] = "reno cubic olia"
    for is_here, brought in ((True, ["lia", "olia"]), (False, ["lia"])):
        monkeypatch.setattr(preflight, "has_object", lambda _, is_here=is_here: is_here)
        assert programs_to_bring(plan, host) == brought


@pytest.mark.parametrize(
    ("takes", "problem"), [({}, "no struct_ops mptcp_sched_ops"), ({"takes_schedulers": "yes"}, "")]
)
def test_configure_loads_a_scheduler_where_the_kernel_takes_it(takes: dict[str, str], problem: str) -> None:
    plan, real = planned(SCENARIO + "mptcp: {scheduler: ecf}\n")
    host = Host("h1", LOADS | takes | {"net/mptcp/available_schedulers": "default"})
    problems = list(lacks_of_hosts(plan, real, {"h1": host, "h2": host}, configure=True))
    assert [problem in line for line in problems] == ([True] * 2 if problem else [])
    assert programs_to_bring(plan, host) == ["ecf"]


@pytest.mark.parametrize("capable", [False, True])
def test_a_congestion_control_that_a_host_reserves_is_refused_without_the_capability(
    *, capable: bool
) -> None:
    plan, real = planned(SCENARIO.replace("bytes: 6MB", "bytes: 6MB, congestion_control: bbr"))
    facts = {
        "net/ipv4/tcp_available_congestion_control": "reno cubic bbr",
        "net/ipv4/tcp_allowed_congestion_control": "reno cubic",
        "net/mptcp/enabled": "1",
        "user": "root",  # of a container
    } | ({"net_admin": "yes"} if capable else {})
    sessions = {name: Host(name, facts) for name in ("h1", "h2")}
    problems = list(lacks_of_hosts(plan, real, sessions, configure=False))
    assert [("CAP_NET_ADMIN" in problem, "sysctl -w" in problem) for problem in problems] == (
        [] if capable else [(True, True)] * 2
    )


def test_a_later_trial_that_never_connects_ends_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, _ = planned()
    hosts = parse_hosts(HOSTS, "hosts.yaml")
    engine = RemoteEngine(hosts)
    row = {"start_us": 0, "connected_us": None}
    monkeypatch.setattr(engine, "_connected", lambda names: {name: HostOfTrial() for name in names})
    tables = {"flows": pl.DataFrame([row], schema={"start_us": pl.Int64, "connected_us": pl.Int64})}
    monkeypatch.setattr(engine, "_exchange", lambda *_: (tables, {}))
    with pytest.raises(
        MachineError, match=r"^no connection from h1 .* for the \d+ s of a trial, so the study ends"
    ):
        engine.execute(Job(plan, {}, tmp_path))


class HostOfTrial:
    """A host whose settings are those of the plan."""

    name = "h1"

    def read(self, _settings: object) -> dict[str, str]:
        return {}
