"""What does not cross a line has a sentence with its remedy, and the scenario repeats what the line does."""

from __future__ import annotations

import pytest

from plait.errors import RequestError
from plait.measure.crossing import Crossing, check_ports, crossing_remarks, udp_remarks
from plait.measure.named import NamedLine
from plait.measure.probing import LineEnd

WELL = Crossing(connects=True, mptcp=True, full_packets=True, mtu=1500)
CLOSED = Crossing(connects=False, mptcp=None, full_packets=True)


def named(*labels: str) -> list[NamedLine]:
    server = LineEnd("vps", "198.51.100.2", "198.51.100.2", 5001)
    return [
        NamedLine(label, label, LineEnd("laptop", "10.0.0.7", None, 5001), server, "5001-5010")
        for label in labels
    ]


def remarks_on(**lines: Crossing) -> str:
    return "\n".join(crossing_remarks(named(*lines), lines))


def test_lines_that_carry_all_need_no_words() -> None:
    assert remarks_on(eth0=WELL, wwan0=WELL) == ""


def test_ports_closed_to_all_lines_are_closed_at_the_server() -> None:
    assert "vps: TCP port 5001 is closed: `sudo ufw allow 5001:5010/tcp`" in remarks_on(
        eth0=CLOSED, wwan0=CLOSED
    )


def test_a_port_closed_to_one_line_is_blocked_by_that_line() -> None:
    text = remarks_on(eth0=WELL, wwan0=CLOSED)
    assert text.startswith("wwan0: no TCP connection to port 5001 of vps")
    assert "ufw" not in text


def test_a_line_that_removes_options_is_named() -> None:
    stripped = Crossing(connects=True, mptcp=False, full_packets=True, mtu=1500)
    assert remarks_on(eth0=stripped, wwan0=WELL).startswith("eth0 removes MPTCP's options")


def test_a_line_that_loses_full_packets_has_the_command_that_makes_them_smaller() -> None:
    hole = Crossing(connects=True, mptcp=True, full_packets=False)
    assert "`sudo ip link set eth0 mtu 1280`" in remarks_on(eth0=hole)


def test_too_few_ports_are_refused_with_a_range_that_suffices() -> None:
    check_ports(named(*"abcde"))
    with pytest.raises(RequestError, match="such as 5001-5012"):
        check_ports(named(*"abcdef"))


def test_a_line_that_drops_handshakes_is_not_said_to_remove_options() -> None:
    dropped = Crossing(connects=True, mptcp=False, full_packets=True, mtu=1500, drops_mptcp=True)
    assert remarks_on(eth0=dropped, wwan0=WELL).startswith("eth0 drops handshakes with MPTCP's options")
    assert "removes" not in remarks_on(eth0=dropped, wwan0=WELL)


def test_a_line_that_loses_announcements_is_named_and_one_without_any_is_not() -> None:
    lost = Crossing(connects=True, mptcp=True, full_packets=True, mtu=1500, announcements=False)
    assert remarks_on(eth0=lost, wwan0=WELL).startswith("eth0 loses the announcements (ADD_ADDR) of vps")


def test_udp_that_one_line_blocks_is_not_that_of_the_server() -> None:
    (blocked,) = udp_remarks(named("eth0", "wwan0"), ["wwan0"])
    assert blocked.startswith("wwan0: no UDP packet to port 5001 of vps arrives, and those of other lines do")
    (closed,) = udp_remarks(named("eth0", "wwan0"), ["eth0", "wwan0"])
    assert "`sudo ufw allow 5001:5010/udp`" in closed
    assert not list(udp_remarks(named("eth0"), []))
