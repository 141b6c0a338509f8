"""Which interfaces of a machine are lines to a server, by what `ip` lists, and the sentence for each that is none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plait.errors import RequestError
from plait.measure import run
from plait.measure import survey as surveys
from plait.measure.interfaces import OwnLine, own_lines
from plait.measure.survey import LinesRequest, Survey, survey

if TYPE_CHECKING:
    from collections.abc import Callable

SERVER = "198.51.100.2"


def address(name: str, *locals_: str) -> dict[str, Any]:
    return {
        "ifname": name,
        "mtu": 1492,
        "addr_info": [{"local": local, "scope": "global"} for local in locals_],
    }


def machine(
    routes: list[dict[str, Any]], through: dict[str, str], *rows: dict[str, Any]
) -> Callable[..., list[dict[str, Any]]]:
    """Return an `ip` with default routes, the interface by source address of packets to the server, and addresses."""

    def ask(*words: str) -> list[dict[str, Any]]:
        if words[1:3] == ("route", "show"):
            return routes
        if words[:2] == ("route", "get"):
            return [{"dev": through[words[4]]}] if words[4] in through else []
        return [address("lo"), *rows]

    return ask


ETH0, WWAN0 = address("eth0", "192.168.1.2"), address("wwan0", "10.0.0.7")
ROUTES = [
    {"dst": "default", "dev": "wwan0", "gateway": "10.0.0.1", "metric": 700},
    {"dst": "default", "dev": "eth0", "gateway": "192.168.1.1", "metric": 100},
    {"dst": "default", "dev": "eth0", "gateway": "192.168.1.1", "table": "101"},
    {"dst": "default", "type": "unreachable", "dev": "lo", "metric": 4278198272},
]
STRAIGHT = {"192.168.1.2": "eth0", "10.0.0.7": "wwan0"}


def test_interfaces_with_a_default_route_in_any_table_are_lines_each_once() -> None:
    lines = own_lines(SERVER, (), machine(ROUTES, STRAIGHT, ETH0, WWAN0, address("docker0", "172.17.0.1")))
    assert lines == [
        OwnLine("eth0", "192.168.1.2", "192.168.1.1", 1492),
        OwnLine("wwan0", "10.0.0.7", "10.0.0.1", 1492),
    ]


def test_the_hops_of_one_route_are_lines_each() -> None:
    hops = [{"dev": "eth0", "gateway": "192.168.1.1"}, {"dev": "wwan0", "gateway": "10.0.0.1"}]
    lines = own_lines(SERVER, (), machine([{"dst": "default", "nexthops": hops}], STRAIGHT, ETH0, WWAN0))
    assert [line.interface for line in lines] == ["eth0", "wwan0"]


def test_named_interfaces_need_no_default_route() -> None:
    assert [line.interface for line in own_lines(SERVER, ("wwan0",), machine([], STRAIGHT, ETH0, WWAN0))] == [
        "wwan0"
    ]


@pytest.mark.parametrize(
    ("named", "routes", "through", "sentence"),
    [
        (
            ("wlan9",),
            ROUTES,
            STRAIGHT,
            "wlan9: this machine has no such interface with an address (it has eth0, wwan0",
        ),
        ((), [], STRAIGHT, "no interface of this machine has a default route that leads to 198.51.100.2"),
        (("lo",), ROUTES, STRAIGHT, "lo: it has no address from which it can reach 198.51.100.2"),
        (
            (),
            ROUTES,
            {**STRAIGHT, "10.0.0.7": "eth0"},
            (
                "wwan0: packets from its address 10.0.0.7 to 198.51.100.2 leave through eth0, so the line would carry "
                "nothing. Give it a route of its own: `sudo ip rule add from 10.0.0.7 table 102 && sudo ip route add "
                "default via 10.0.0.1 dev wwan0 table 102`"
            ),
        ),
        (
            (),
            ROUTES,
            {"192.168.1.2": "eth0"},
            "wwan0: packets from its address 10.0.0.7 to 198.51.100.2 have no route",
        ),
    ],
)
def test_what_is_no_line_has_its_sentence(
    named: tuple[str, ...], routes: list[dict[str, Any]], through: dict[str, str], sentence: str
) -> None:
    with pytest.raises(RequestError) as refused:
        own_lines(SERVER, named, machine(routes, through, ETH0, WWAN0))
    assert sentence in str(refused.value)


def of_server(monkeypatch: pytest.MonkeyPatch, addresses: list[str], lines: dict[str, list[OwnLine]]) -> None:
    """Let names resolve to `addresses`, and the machine have `lines` to them."""

    def listed(server: str, named: object) -> list[OwnLine]:
        if server not in lines:
            raise RequestError(f"no line to {server}")
        return lines[server]

    entries = [(0, 0, 0, "", (text, 0)) for text in addresses]
    monkeypatch.setattr(surveys.socket, "getaddrinfo", lambda *_, **__: entries)
    monkeypatch.setattr(surveys.socket, "gethostname", lambda: "my-laptop.lan")
    monkeypatch.setattr(surveys, "own_lines", listed)


def test_nodes_have_the_names_of_the_hosts_and_links_those_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [OwnLine("eth0", "192.168.1.2", None, 1500), OwnLine("wwan0", "10.0.0.7", None, 1500)]
    of_server(monkeypatch, [SERVER], {SERVER: lines})
    surveyed = survey(LinesRequest("alice@vps.example.org", ssh_config=Path("/dev/null")))
    assert surveyed.labels == {"my_laptop-vps": "eth0", "my_laptop-vps#2": "wwan0"}


def test_a_server_of_both_families_is_reached_over_that_of_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    six = [OwnLine("eth0", "2001:db8::2", None, 1500)]
    of_server(monkeypatch, ["2001:db8:1::2", SERVER], {"2001:db8:1::2": six})
    assert survey(LinesRequest("vps", ssh_config=Path("/dev/null"))).address == "2001:db8:1::2"


def test_a_server_out_of_reach_of_all_lines_has_a_sentence_for_each_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_server(monkeypatch, ["2001:db8:1::2", SERVER], {})
    with pytest.raises(RequestError, match=rf"no line to {SERVER}\nno line to 2001:db8:1::2"):
        survey(LinesRequest("vps", ssh_config=Path("/dev/null")))


def test_what_ssh_does_not_accept_is_refused() -> None:
    with pytest.raises(RequestError, match="--server -oProxyCommand=x: ssh does not accept it"):
        survey(LinesRequest("-oProxyCommand=x", ssh_config=Path("/dev/null")))


def test_a_machine_with_one_line_is_told_so_before_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    line = OwnLine("eth0", "192.168.1.2", "192.168.1.1", 1500)
    request = LinesRequest("vps")
    monkeypatch.setattr(run, "survey", lambda _: Survey(request, "laptop", "vps", SERVER, (line,)))
    monkeypatch.setattr(run, "connected", lambda *_: pytest.fail("measured"))
    messages: list[str] = []
    with pytest.raises(pytest.fail.Exception, match="measured"):
        run.measured_from_here(request, messages.append)
    assert messages[0] == f"lines to vps ({SERVER}): eth0"
    assert messages[1].startswith("eth0 is the only line of this machine, so MPTCP has nothing to combine")
