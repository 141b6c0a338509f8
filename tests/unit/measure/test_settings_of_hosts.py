"""The kernel settings of both hosts: what the scenario says of them, and what keeps MPTCP from using the lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.measure.interfaces import OwnLine
from plait.measure.settings import (
    CONGESTION_CONTROL,
    ENABLED,
    LABORATORY_CONTROLS,
    HostSettings,
    hosts_text,
    mptcp_text,
    read_settings,
    remarks,
)
from plait.measure.survey import LinesRequest, Survey

LINES = (OwnLine("eth0", "192.168.1.2", None, 1500), OwnLine("wwan0", "10.0.0.7", None, 1500))
SURVEY = Survey(LinesRequest("vps"), "laptop", "vps", "198.51.100.2", LINES)
VALUES = {CONGESTION_CONTROL: "cubic", ENABLED: "1", "net/ipv4/tcp_rmem": "4096 131072 6291456"}
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


def texts(client: HostSettings = CLIENT) -> str:
    settings = {"laptop": client, "vps": SERVER}
    return "\n".join([*hosts_text(settings), *mptcp_text(SURVEY, settings)])


def remarks_on(client: HostSettings, server: HostSettings = SERVER) -> str:
    return "\n".join(remarks(SURVEY, {"laptop": client, "vps": server}))


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
    assert read_settings(host).values == {ENABLED: "1"}  # type: ignore[arg-type]


def test_endpoints_that_the_kernel_made_itself_are_not_settings() -> None:
    rows = [{"address": "10.0.0.7", "flags": 2 | 4}, {"address": "10.0.0.8", "flags": 2 | 16}]
    settings = read_settings(Host({}, (rows, (2, 1))))  # type: ignore[arg-type]
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
    assert {names.get(name, name.lower()) for name in built} | {"reno"} >= LABORATORY_CONTROLS
