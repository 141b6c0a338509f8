"""Sockets of `ss` and counters of `nstat` in a report become a network, or comments beside that of its script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from plait.cli import import_
from plait.errors import RequestError, ScenarioError
from plait.importers import observed
from plait.importers.draft import Draft
from plait.plan.resolve import resolve
from plait.scenario import load, parse
from plait.scenario.vary.cases import expand

SOCKETS = """\
State  Recv-Q Send-Q  Local Address:Port   Peer Address:Port Process
ESTAB  0      1448000      10.0.2.1%c2:38111    10.0.1.2:5201
\t reno wscale:7,7 rtt:35.0/4 mss:1328 pmtu:1400 delivery_rate 7100000bps minrtt:20.5
\t tcp-ulp-mptcp flags:Jjecb token:aa01(id:1)/5f3a9c01(id:1) seq:9
tcp   ESTAB  0      1448000      10.0.1.1:43210      10.0.1.2:5201
\t reno wscale:7,7 rtt:101.2/0.4 pmtu:1500 bytes_sent:50212345 delivery_rate 44100000bps retrans:0/3 minrtt:100
\t tcp-ulp-mptcp flags:Mmec token:0000(id:0)/5f3a9c01(id:0) seq:9
tcp   ESTAB  0      0      [2001:db8::1]:43210      [2001:db8::2]:22
\t cubic wscale:7,7 minrtt:1
mptcp ESTAB  0      0            10.0.1.1:43210      10.0.1.2:5201
\t subflows:1 subflows_max:2 add_addr_accepted_max:2 token:5f3a9c01 csum_enabled retransmits:2
"""
COUNTERS = """\
#kernel
TcpOutSegs                      35000              0.0
TcpRetransSegs                  70                 0.0
MPTcpExtMPCapableSYNTX          1                  0.0
MPTcpExtMPCapableFallbackACK    0                  0.0
00:28:03.178 # MPTcpExtRcvPruned            12                0.0
"""
SCRIPT = "ip netns add a\nip netns add b\nip link add c netns a type veth peer name d netns b\n"


def test_subflows_become_links_with_half_their_rtt_and_what_they_delivered() -> None:
    draft = observed.draft(SOCKETS, "ss.txt")
    observed.observe(SOCKETS, draft)
    scenario = parse(draft.text(), "t.yaml")
    plan = resolve(expand(scenario)[1].scenario, 1)
    first, second = (link.directions[0] for link in plan.links)
    assert (first.rate_bps, first.delay_ns) == (44_100_000, 50_000_000), (
        "the initial subflow is the first path"
    )
    assert (second.rate_bps, second.delay_ns) == (7_100_000, 10_250_000)
    assert {veth.mtu for veth in plan.network.veths} == {1500, 1400}
    assert draft.endpoints == [
        ("client", "client-server", ["subflow"]),
        ("client", "client-server#2", ["subflow", "backup"]),
    ]
    assert scenario.tcp.congestion_control == "reno"
    settings = {space.name: dict(space.sysctls) for space in plan.network.namespaces}
    assert [settings[host]["net/mptcp/checksum_enabled"] for host in ("client", "server")] == ["1", "1"]


def test_the_connection_with_the_most_bytes_counts_and_subflows_of_an_address_share_a_link() -> None:
    """A control connection of iperf3 comes first, and one address has subflows to both of the server."""
    control = SOCKETS.splitlines(keepends=True)[4:7]
    shared = "ESTAB 0 0 10.0.2.1:38112 10.0.2.2:5201\n\t minrtt:18 delivery_rate 900000bps"
    text = (
        "".join(control).replace("bytes_sent:50212345", "bytes_sent:165").replace("5f3a9c01", "77777777")
        + SOCKETS
        + f"{shared} tcp-ulp-mptcp flags:Jjecb token:aa01(id:2)/5f3a9c01(id:1)\n"
    )
    draft = observed.draft(text, "ss.txt")
    assert [(asked, remark) for _, _, asked, remark in draft.links] == [
        ({"rate": "44.1mbit", "delay": "50ms"}, "10.0.1.1"),
        ({"rate": "8mbit", "delay": "9ms", "mtu": "1400"}, "10.0.2.1"),
    ]
    assert any(remark.startswith("1 further MPTCP connections") for remark in draft.remarks)


def test_sockets_of_a_server_that_sends_make_a_download() -> None:
    swapped = SOCKETS.replace("10.0.1.1:43210      10.0.1.2:5201", "10.0.1.2:5201      10.0.1.1:43210")
    assert "from: server, to: client, reverse: true" in observed.draft(swapped, "ss.txt").text()
    assert "from: client, to: server, duration" in observed.draft(SOCKETS, "ss.txt").text()


def test_counters_that_counted_are_explained() -> None:
    draft = Draft("x")
    observed.observe(COUNTERS, draft)
    assert draft.observations == [
        "nstat: MPTcpExtRcvPruned 12: MPTCP dropped segments that subflows had acknowledged: small buffers",
        "nstat: TcpRetransSegs 70: 0.2 % of the segments sent",
    ]


def test_the_files_of_a_report_become_one_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name, text in (("report.sh", SCRIPT), ("ss.txt", SOCKETS), ("nstat.txt", COUNTERS)):
        (tmp_path / name).write_text(text)
        files.append(tmp_path / name)
    import_.command(files, out=tmp_path / "out.yaml")
    text = (tmp_path / "out.yaml").read_text()
    assert load(tmp_path / "out.yaml").network.hosts.keys() == {"a", "b"}, (
        "the script's network, not the sockets'"
    )
    assert "# The report shows:" in text
    assert "smallest RTT 100 ms, delivered 44.1 Mbit/s, 3 retransmissions" in text
    (tmp_path / "notes.txt").write_text("It is slow.\n")
    with pytest.raises(RequestError, match=r"notes\.txt: this is neither"):
        import_.command([*files, tmp_path / "notes.txt"])
    capsys.readouterr()


@pytest.mark.parametrize(
    "text",
    [
        COUNTERS,
        "ESTAB 0 0 10.0.0.1:1 10.0.0.2:2\n\tminrtt:none\n",
        "ESTAB 0 0 :1 :2\n minrtt:\n",
        "ESTAB 0 0 a:1 b:2\n" * 5000,
    ],
)
def test_sockets_without_an_rtt_are_refused_with_the_command_that_shows_it(text: str) -> None:
    with pytest.raises(ScenarioError, match="ss -tinM"):
        observed.draft(text, "x")


def test_words_of_sockets_cannot_leave_their_comment() -> None:
    text = "ESTAB 0 0 10.0.0.1\x1b[2Jnetwork:1 10.0.0.2:2\n\tminrtt:5 x\x1b[2J wscale:1\n"
    draft = observed.draft(text, "a\nb")
    observed.observe(text, draft)
    assert parse(draft.text(), "t.yaml").network.hosts.keys() == {"client", "server"}
    assert "\x1b" not in draft.text()


def test_extreme_figures_are_refused_by_the_scenarios_own_check() -> None:
    text = "ESTAB 0 0 a:5000 b:80\n\tminrtt:999999999 delivery_rate 999999999999999bps pmtu:999999\n"
    with pytest.raises(ScenarioError):
        parse(observed.draft(text, "x").text(), "t.yaml")


def test_a_pipe_without_a_writer_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RequestError, match="it is no regular file, and no program writes to it"):
        import_.command([tmp_path / "pipe"])


def test_a_script_that_a_guest_cannot_open_is_refused() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"from mininet.topo import Topo\n")
    os.close(writer)
    with pytest.raises(RequestError, match="a guest runs a Mininet script from its own file"):
        import_.command([Path(f"/dev/fd/{reader}")])
    os.close(reader)
