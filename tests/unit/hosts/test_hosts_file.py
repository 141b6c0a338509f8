"""hosts.yaml: what plait accepts, and how it reports mistakes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plait.errors import ScenarioError
from plait.hosts.read import parse_hosts, read_hosts

GOOD = """\
limits: {rate: 50mbit, bytes: 1GB, time: 10min}
hosts:
  h1:
    ssh: alice@h1.example.org
    addresses: {h1-h2: 192.0.2.1, h1-h2#2: 198.51.100.1}
  h2:
    ssh: ssh://h2.example.org:2222
    addresses: {h1-h2: 192.0.2.2, h1-h2#2: 198.51.100.2}
    ports: 6000-6003
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse_hosts(text, "hosts.yaml")
    return str(caught.value).splitlines()


def test_a_line_is_a_link_name_that_two_hosts_have() -> None:
    hosts = parse_hosts(GOOD.replace("h1-h2#2: 198.51.100.2", "h2-h3: 198.51.100.2"), "hosts.yaml")
    assert hosts.lines() == {"h1-h2": ("h1", "h2")}
    assert hosts.hosts["h2"].port_range == range(6000, 6004)


def test_limits_are_required_and_named() -> None:
    (mistake,) = mistakes(GOOD.partition("\n")[2])
    assert mistake.startswith("hosts.yaml:1:1: limits: this field is missing; state what hosts may send")
    assert mistake.endswith("limits: {rate: 50mbit, bytes: 1GB, time: 10min}")
    (mistake,) = mistakes(GOOD.replace("rate: 50mbit, ", ""))
    assert mistake.startswith("hosts.yaml:1:1: limits.rate: this field is missing; state at which rate")


def test_all_mistakes_are_reported_at_once_with_their_places() -> None:
    text = (
        GOOD.replace("192.0.2.1", "h1.example.org")
        .replace("6000-6003", "80-90")
        .replace("ssh: alice", "shh: alice")
    )
    lines = mistakes(text)
    assert [mistake.split(" ")[0] for mistake in lines] == [
        "hosts.yaml:3:3:", "hosts.yaml:4:5:", "hosts.yaml:5:17:", "hosts.yaml:9:5:",
    ]  # fmt: skip
    assert "did you mean 'ssh'?" in lines[1]
    assert "'h1.example.org' is not an IP address" in lines[2]


@pytest.mark.parametrize("destination", ["-oProxyCommand=true", "a b", "$(id)", "host;id", "'x'", ""])
def test_a_destination_cannot_be_an_option_or_a_command(destination: str) -> None:
    (mistake,) = mistakes(GOOD.replace("alice@h1.example.org", f'"{destination}"'))
    assert "is not a destination of ssh" in mistake


@pytest.mark.parametrize("address", ["0.0.0.0", "224.0.0.1", "fe80::1%eth0", "192.0.2.0/24"])  # noqa: S104
def test_an_address_is_that_of_one_interface(address: str) -> None:
    (mistake,) = mistakes(GOOD.replace("192.0.2.1", f'"{address}"'))
    assert "hosts.h1.addresses.h1-h2" in mistake


def test_a_scenario_is_no_hosts_file(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yaml"
    path.write_text("- h1\n- h2\n", encoding="utf-8")
    with pytest.raises(ScenarioError, match="this is not a file of hosts; start with limits:"):
        read_hosts(path)
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        read_hosts(tmp_path / "none.yaml")


def test_one_address_means_both_and_none_means_that_others_cannot_connect() -> None:
    text = GOOD.replace("h1-h2: 192.0.2.1,", "h1-h2: {local: 192.168.1.5, public: none},")
    home, server = (parse_hosts(text, "hosts.yaml").hosts[name].addresses["h1-h2"] for name in ("h1", "h2"))
    assert (home.local, home.public) == ("192.168.1.5", None)
    assert (server.local, server.public) == ("192.0.2.2", "192.0.2.2")
    cloud = GOOD.replace("h1-h2: 192.0.2.2,", "h1-h2: {local: 10.0.1.5, public: 198.51.100.20},")
    assert parse_hosts(cloud, "hosts.yaml").hosts["h2"].addresses["h1-h2"].public == "198.51.100.20"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("{local: 10.0.1.5}", "this field is missing; write the address that the other side connects to"),
        ("{public: 10.0.1.5}", "this field is missing; write the address of the host's own interface"),
        ('{local: 10.0.1.5, public: "::1"}', "are of different families"),
        ("{local: none, public: 192.0.2.1}", "'none' is not an IP address"),
    ],
)
def test_an_address_with_parts_that_do_not_fit_is_reported(address: str, reason: str) -> None:
    (mistake,) = mistakes(GOOD.replace("h1-h2: 192.0.2.1,", f"h1-h2: {address},"))
    assert reason in mistake


def test_a_line_between_two_hosts_that_nobody_can_connect_to_is_refused() -> None:
    hidden = GOOD.replace("h1-h2: 192.0.2.1,", "h1-h2: {local: 192.168.1.5, public: none},")
    (mistake,) = mistakes(hidden.replace("h1-h2: 192.0.2.2,", "h1-h2: {local: 10.0.0.1, public: none},"))
    assert "neither h1 nor h2 has a public address on h1-h2" in mistake


def test_a_pipe_is_read_if_a_program_writes_to_it(tmp_path: Path) -> None:
    """As from /dev/stdin and <(..); without a writer, opening a named pipe would wait for ever."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ScenarioError, match="it is no regular file, and no program writes to it"):
        read_hosts(pipe)
    reader, writer = os.pipe()
    os.write(writer, GOOD.encode())
    os.close(writer)
    assert read_hosts(Path(f"/dev/fd/{reader}")) == parse_hosts(GOOD, "hosts.yaml")
    os.close(reader)
