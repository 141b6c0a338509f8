"""plait refuses what the real kernel does not provide before any trial runs, and lists what it does provide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plait.errors import ScenarioError
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from plait.study.preflight.kernel import refuse_what_is_missing

if TYPE_CHECKING:
    from plait.engine.virtual.trial import VirtualEngine

pytestmark = pytest.mark.guest

LINKED = """\
title: One link
network:
  hosts:
    h1: {%s}
    h2: {}
  links:
    h1-h2: {rate: 20mbit, delay: 5ms}
traffic:
  - bulk: {from: h1, to: h2, duration: 1s}
"""


def refused(engine: VirtualEngine, more: str = "", *, host: str = "") -> str:
    cases = expand(parse(LINKED % host + more, "t.yaml"))
    with pytest.raises(ScenarioError) as caught:
        refuse_what_is_missing(cases, engine.inventory)
    return str(caught.value)


def test_plait_accepts_what_the_kernel_provides(engine: VirtualEngine) -> None:
    inventory = engine.inventory()
    assert {"reno", "cubic", "bbr"} <= set(inventory.congestion_controls)
    assert "default" in inventory.schedulers
    assert inventory.sysctls["net/mptcp/checksum_enabled"].value == "0"
    everything = "sysctls: {net.ipv4.tcp_sack: 0, net.mptcp.close_timeout: 5, net.ipv4.tcp_rmem: [4096, 8192, 16384]}\n"
    everything += "events: [{at: 1ms, sysctls: {h1: {net.ipv4.conf.h1-eth0.arp_filter: 1}}}]\n"
    names = ", ".join(inventory.congestion_controls)
    cases = expand(parse(LINKED % "" + everything + f"vary: {{congestion_control: [{names}]}}\n", "t.yaml"))
    refuse_what_is_missing(cases, engine.inventory)


@pytest.mark.parametrize(
    ("more", "host", "expected"),
    [
        (
            "tcp: {congestion_control: cubix}\n",
            "",
            "t.yaml:10:7: tcp.congestion_control: this kernel has no congestion control 'cubix'; did you mean 'cubic'?",
        ),
        (
            "events: [{at: 500ms, sysctls: {h2: {net.ipv4.tcp_sak: 0}}}]\n",
            "",
            "t.yaml:10:37: events.0.sysctls.h2.net.ipv4.tcp_sak: this kernel has no sysctl net.ipv4.tcp_sak; did you",
        ),
        (
            "events: [{at: 500ms, sysctls: {h2: {net.ipv4.tcp_sack: yes}}}]\n",
            "",
            "t.yaml:10:37: events.0.sysctls.h2.net.ipv4.tcp_sack: the kernel rejects 'yes'",
        ),
        (
            "events: [{at: 500ms, sysctls: {h2: {net.mptcp.scheduler: fastest}}}]\n",
            "",
            "events.0.sysctls.h2.net.mptcp.scheduler: this kernel has no MPTCP scheduler 'fastest'",
        ),
        (
            "",
            "scheduler: minrt",
            "network.hosts.h1.scheduler: this kernel has no MPTCP scheduler 'minrt'; did you mean",
        ),
        (
            "",
            "congestion_control: qubic",
            "network.hosts.h1.congestion_control: this kernel has no congestion control",
        ),
        (
            "  - bulk: {from: h1, to: h2, duration: 1s, scheduler: blst}\n",
            "",
            "traffic.1.bulk.scheduler: this kernel has no MPTCP scheduler 'blst'",
        ),
        (
            "mptcp: {scheduler: fastest}\n",
            "",
            "t.yaml:10:9: mptcp.scheduler: this kernel has no MPTCP scheduler 'fastest'; there is: ",
        ),
        (
            "vary: {traffic.*.bulk.congestion_control: [reno, bbr9]}\n",
            "",
            "t.yaml:10:50: vary.traffic.*.bulk.congestion_control.1: this kernel has no congestion control 'bbr9'",
        ),
        (
            "",
            "sysctls: {net.ipv4.tcp_sackk: 1}",
            "t.yaml:4:20: network.hosts.h1.sysctls.net.ipv4.tcp_sackk: this kernel has no sysctl net.ipv4.tcp_sackk;",
        ),
        ("sysctls: {net.mptcp.schedule: x}\n", "", "in net.mptcp there is: add_addr_timeout, "),
        ("", "sysctls: {net.ipv4.tcp_mem: 5}", "net.ipv4.tcp_mem is the same for all hosts"),
        (
            "",
            "sysctls: {net.ipv4.conf.h1-eth0.rp_filter: 1}",
            "plait sets this before the interfaces exist; write net.ipv4.conf.default.rp_filter",
        ),
        (
            "sysctls: {net.mptcp.close_timeout: soon}\n",
            "",
            "t.yaml:10:11: sysctls.net.mptcp.close_timeout: the kernel rejects 'soon': setting sysctl net/mptcp/",
        ),
        ("sysctls: {net.mptcp.close_timeout: x}\n", "", "EINVAL (Invalid argument); its default is '60'"),
        ("sysctls: {net.ipv4.tcp_sackk: 1}\n", "", "did you mean 'net.ipv4.tcp_sack'?"),
        ("sysctls: {net.mptcp.scheduler: none}\n", "", "this kernel has no MPTCP scheduler 'none'"),
    ],
)
def test_plait_refuses_what_the_kernel_lacks_at_its_place(
    engine: VirtualEngine, more: str, host: str, expected: str
) -> None:
    assert expected in refused(engine, more, host=host)


def test_plait_reports_everything_missing_at_once_without_repetition(engine: VirtualEngine) -> None:
    text = refused(
        engine,
        "vary: {scheduler: [a1, a2], congestion_control: [b1, b2]}\n",
        host="sysctls: {net.ipv4.nothing: 1}",
    )
    assert len(text.splitlines()) == 5


def test_missing_programs_are_refused_together_with_all_other_mistakes(engine: VirtualEngine) -> None:
    more = "tcp: {congestion_control: cubix}\nprograms: [{node: h1, run: [no-such-program, -x]}]\n"
    messages = refused(engine, more).splitlines()
    assert messages[0].startswith("t.yaml:10:7: tcp.congestion_control: ")
    assert messages[1].startswith(
        "t.yaml:11:29: programs.0.run.0: there is no program 'no-such-program' on this machine"
    )


def test_a_missing_program_of_several_nodes_is_reported_once_at_its_entry(
    engine: VirtualEngine,
) -> None:
    entries = (
        "programs: [{node: [h1, h2], name: one, run: sleep 1}, {node: [h1, h2], name: two, run: [no-such]}]\n"
    )
    (message,) = refused(engine, entries).splitlines()
    assert message.startswith("t.yaml:10:89: programs.1.run.0: there is no program 'no-such'")
