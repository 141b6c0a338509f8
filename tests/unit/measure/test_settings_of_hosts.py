"""The kernel settings of both hosts: what the scenario says of them, and what keeps MPTCP from using the lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.measure.mptcp import mptcp_text, remarks
from plait.measure.named import NamedLine
from plait.measure.probing import LineEnd
from plait.measure.settings import (
    CONGESTION_CONTROL,
    ENABLED,
    LABORATORY_CONTROLS,
    LABORATORY_SCHEDULERS,
    PATH_MANAGER,
    PATH_MANAGER_TYPE,
    SCHEDULER,
    HostSettings,
    hosts_text,
    read_settings,
)

VPS = LineEnd("vps", "198.51.100.2", "198.51.100.2", 5001)
LINES = [
    NamedLine(name, interface, LineEnd("laptop", address, None, 5001), VPS, "5001-5010", interface=interface)
    for name, interface, address in (
        ("laptop-vps", "eth0", "192.168.1.2"),
        ("laptop-vps#2", "wwan0", "10.0.0.7"),
    )
]
VALUES = {
    CONGESTION_CONTROL: "cubic",
    SCHEDULER: "default",
    PATH_MANAGER_TYPE: "0",
    ENABLED: "1",
    "net/ipv4/tcp_rmem": "4096 131072 6291456",
}
SERVER = HostSettings(VALUES, {}, 2, 0)
CLIENT = HostSettings(VALUES, {"10.0.0.7": ("subflow",)}, 2, 0)


class Host:
    """A session that answers with what a test sets."""

    def __init__(self, values: dict[str, str], state: object = None) -> None:
        self.values, self.state = values, state

    def read(self, _: object) -> dict[str, str]:
        return self.values

    def mptcp_state(self) -> object:
        return self.state


def texts(client: HostSettings = CLIENT, server: HostSettings = SERVER) -> str:
    settings = {"laptop": client, "vps": server}
    return "\n".join([*hosts_text(settings), *mptcp_text(LINES, settings)])


def remarks_on(client: HostSettings, server: HostSettings = SERVER) -> str:
    return "\n".join(remarks(LINES, {"laptop": client, "vps": server}))


def test_the_scenario_has_the_settings_of_both_hosts_and_the_client_may_join() -> None:
    text = texts()
    assert text.count("congestion_control: cubic") == 2
    assert 'net.ipv4.tcp_rmem: "4096 131072 6291456"' in text
    assert "laptop: {subflows: 2, add_addr_accepted: 1}" in text
    assert 'laptop: [{link: "laptop-vps#2", flags: [subflow]}]' in text
    assert 'vps: [{link: "laptop-vps#2", flags: [signal]}]' in text
    assert remarks_on(CLIENT) == ""


def test_an_idle_line_stays_idle_in_the_scenario_and_has_a_remark_with_the_command() -> None:
    idle = replace(CLIENT, endpoints={"192.168.1.2": ("subflow",), "10.0.0.7": ("signal",)})
    assert "laptop: []\n    vps: []" in texts(idle)
    assert "laptop has no MPTCP endpoint for wwan0, so MPTCP leaves it idle" in remarks_on(idle)
    assert "`sudo ip mptcp endpoint add 10.0.0.7 dev wwan0 subflow`" in remarks_on(idle)


def test_too_low_limits_have_a_remark_with_the_command() -> None:
    assert "allow 0 additional subflows" in remarks_on(replace(CLIENT, subflows=0))
    assert "`sudo ip mptcp limits set subflows 1`" in remarks_on(replace(CLIENT, subflows=0))


def test_what_only_root_may_list_is_left_to_plait_and_said() -> None:
    assert "which needs root" in texts(HostSettings(VALUES, None))
    assert "endpoints:" not in texts(HostSettings(VALUES, None))


@pytest.mark.parametrize(
    ("enabled", "sentence"),
    [({}, "the kernel of vps has no MPTCP"), ({ENABLED: "0"}, "vps has MPTCP disabled")],
)
def test_a_host_without_mptcp_has_a_remark(enabled: dict[str, str], sentence: str) -> None:
    assert sentence in remarks_on(CLIENT, HostSettings(enabled, {}, 2, 0))


def test_only_changed_settings_are_written_and_an_unknown_control_is_a_comment() -> None:
    values = {CONGESTION_CONTROL: "bbr3", "net/ipv4/tcp_sack": "0", "net/ipv4/tcp_ecn": "2"}
    text = "\n".join(hosts_text({"laptop": HostSettings(values, {})}))
    assert "# congestion_control: bbr3, which plait's kernel lacks" in text
    assert 'net.ipv4.tcp_sack: "0"' in text
    assert "tcp_ecn" not in text


@pytest.mark.parametrize("value", ["1\ntraffic: []", '"', "x" * 16, "{a: b}"])
def test_a_value_of_another_form_is_not_taken_from_a_host(value: str) -> None:
    host = Host({CONGESTION_CONTROL: value, ENABLED: "1"})
    assert read_settings(host).values == {ENABLED: "1"}


def test_endpoints_that_the_kernel_made_itself_are_not_settings() -> None:
    rows = [{"address": "10.0.0.7", "flags": 2 | 4}, {"address": "10.0.0.8", "flags": 2 | 16}]
    settings = read_settings(Host({}, (rows, (2, 1))))
    assert settings.endpoints == {"10.0.0.7": ("subflow", "backup")}
    assert (settings.subflows, settings.add_addr_accepted) == (2, 1)


def test_the_laboratory_kernel_has_the_congestion_controls_that_a_scenario_gets() -> None:
    config = Path(__file__).parents[3] / "kernel" / "config" / "laboratory.config"
    names = {"HSTCP": "highspeed"}
    built = [
        line.removeprefix("CONFIG_TCP_CONG_").removesuffix("=y")
        for line in config.read_text().splitlines()
        if line.startswith("CONFIG_TCP_CONG_") and "ADVANCED" not in line
    ]
    makefile = (Path(__file__).parents[3] / "kernel" / "congestion" / "Makefile").read_text()
    (objects,) = (line for line in makefile.splitlines() if line.startswith("plait := "))
    coupled = {word.removesuffix(".o") for word in objects.split()[2:]} - {"plait_coupled"}
    assert coupled < LABORATORY_CONTROLS, "a host with a BPF program of plait had a twin with cubic"
    assert {names.get(name, name.lower()) for name in built} | {"reno"} | coupled >= LABORATORY_CONTROLS


def test_the_laboratory_kernel_has_the_schedulers_that_a_scenario_gets() -> None:
    sources = (Path(__file__).parents[3] / "kernel" / "schedulers").glob("*.c")
    assert {"default", *(source.stem for source in sources)} == LABORATORY_SCHEDULERS


def test_the_scheduler_of_all_hosts_can_vary_and_is_their_own_where_they_differ() -> None:
    assert "mptcp:\n  scheduler: default\n" in texts()
    other = replace(SERVER, values={**VALUES, SCHEDULER: "roundrobin"})
    assert "    vps:\n      scheduler: roundrobin\n" in texts(server=other)
    assert "\n  scheduler:" not in texts(server=other)


def test_a_scheduler_that_plait_lacks_is_a_comment() -> None:
    values = {**VALUES, SCHEDULER: "bpf_burst"}
    text = texts(replace(CLIENT, values=values), replace(SERVER, values=values))
    assert "  # scheduler: bpf_burst, which plait's kernel lacks; its default stands for it" in text


@pytest.mark.parametrize("setting", [{PATH_MANAGER_TYPE: "1"}, {PATH_MANAGER: "userspace"}])
def test_endpoints_that_a_program_manages_are_derived_and_said(setting: dict[str, str]) -> None:
    managed = replace(CLIENT, values={**VALUES, **setting})
    assert "# path manager: on laptop a program opens subflows" in texts(managed)
    assert "endpoints:\n" not in texts(managed)
    assert "`sudo sysctl -w net.mptcp.pm_type=0`" in remarks_on(managed)
    assert "leaves it idle" not in remarks_on(replace(managed, endpoints={}))


def test_hosts_with_an_address_on_each_line_keep_their_endpoints() -> None:
    ends = [
        NamedLine(name, name, LineEnd("h1", f"10.1.{n}.1", f"10.1.{n}.1", 5001),
                  LineEnd("h2", f"10.1.{n}.2", f"10.1.{n}.2", 5001), "5001-5100")
        for n, name in ((1, "h1-h2"), (2, "h1-h2#2"), (3, "h1-h2#3"))
    ]  # fmt: skip
    settings = {
        "h1": HostSettings(VALUES, {"10.1.2.1": ("subflow",), "10.9.9.9": ("subflow",)}, 2, 1),
        "h2": HostSettings(VALUES, {"10.1.3.2": ("signal",)}, 8, 0),
    }
    text = "\n".join(mptcp_text(ends, settings))
    assert "h1: {subflows: 2, add_addr_accepted: 1}\n    h2: {subflows: 8, add_addr_accepted: 0}" in text
    assert 'h1: [{link: "h1-h2#2", flags: [subflow]}]\n    h2: [{link: "h1-h2#3", flags: [signal]}]' in text
    assert not list(remarks(ends, settings))
    alone = {**settings, "h2": HostSettings(VALUES, {}, 8, 0)}
    (idle,) = remarks(ends, alone)
    assert "h1 has no MPTCP endpoint for h1-h2#3" in idle
    assert "`sudo ip mptcp endpoint add 10.1.3.1 subflow`" in idle
