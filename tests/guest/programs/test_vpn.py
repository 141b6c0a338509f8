"""Real VPN programs bond two lines in the guest, with Multipath TCP inside or across the tunnels."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

from conftest import Ran, run_plan
from plait.analysis.cautions.observations import observe
from plait.analysis.metrics.programs import with_connections
from plait.analysis.metrics.trial import trial_metrics
from plait.analysis.series import trial_series
from plait.errors import TrialError
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.read.library import find
from plait.scenario.templates import template_text
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.virtual.trial import VirtualEngine

PROGRAMS = ("vpncmd", "vpnserver", "wg", "openvpn", "mptcpize", "iperf3", "ping")
missing = [name for name in PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(
        bool(missing), reason=f"needs {', '.join(missing)}: `tools/system-packages test` installs them"
    ),
]
FIBRE, VDSL = 23e6, 8e6
"""The rates of the lines in vpn-kinds, bit/s."""
HEADERS = 1.05
"""A tunnel in a tunnel takes at least this for its headers: 78 of 1514 bytes."""


class Bonded:
    """One trial of vpn-kinds or vpn-bonding, and what its lines carried."""

    def __init__(self, engine: VirtualEngine, folder: Path, name: str, *overrides: str) -> None:
        model = load(name, ("vary={}", *overrides))
        folder.mkdir()
        self.ran: Ran = run_plan(engine, resolve(expand(model)[0].scenario, 1), folder, model.input_files())
        self.end = json.loads((folder / "programs/client.log").read_text())["end"]
        self.received_bps: float = self.end["sum_received"]["bits_per_second"]
        self.payload: int = self.end["sum_received"]["bytes"]

    def lines(self, host: str) -> dict[str, int]:
        """Return bytes that each line carried from `host`."""
        table = self.ran.tables["interfaces"].filter(pl.col("interface").str.starts_with(f"{host}-eth"))
        sent = pl.col("sent_bytes")
        return dict(table.group_by("interface").agg(sent.max() - sent.min()).rows())

    def over_tcp(self, port: int, transport: str) -> int:
        """Return bytes that connections to a port carried, the way that had more."""
        about = self.ran.tables["program_flows"].join(self.ran.tables["flows"], on="flow")
        chosen = about.filter((pl.col("server_port") == port) & (pl.col("transport") == transport))
        return int(chosen["received_bytes"].sum())


def vpn_environment(program: int, **values: str) -> list[str]:
    return [f'programs.{program}.environment.{name}="{value}"' for name, value in values.items()]


@pytest.mark.users
@pytest.mark.parametrize(
    ("lines", "bond", "least"),
    [
        # A tunnel in the kernel costs its headers: MPTCP inside has more than the fibre could give by itself.
        ("gre", "none", FIBRE),
        ("wireguard", "none", FIBRE),
        # TCP inside TCP: what is lost to it is the experiment's subject, that both lines are used is not.
        ("openvpn", "none", VDSL),
        ("softether", "none", VDSL),
        ("gre", "openvpn", VDSL),
    ],
)
def test_each_kind_of_tunnel_comes_up_and_both_lines_carry(
    engine: VirtualEngine, tmp_path: Path, lines: str, bond: str, least: float
) -> None:
    given = [
        *vpn_environment(1, LINES=lines, BOND=bond),
        *vpn_environment(3, SECONDS="2"),
        "programs.3.at=0s",
    ]
    bonded = Bonded(engine, tmp_path / "job", "vpn-kinds", *given)
    assert least < bonded.received_bps < FIBRE + VDSL
    moved = bonded.lines("home")
    assert sorted(moved) == ["home-eth0", "home-eth1"]
    assert all(part > bonded.payload / 10 for part in moved.values()), moved
    assert sum(moved.values()) > bonded.payload
    flows = with_connections(bonded.ran.plan, bonded.ran.tables).flows
    inside = [flow for flow in flows if flow.name.startswith("client:")]
    assert inside
    assert not any(flow.paths for flow in inside), "a path of the plan is not one of a tunnel"


@pytest.mark.parametrize(("lines", "carrying"), [("10.0.0 10.0.0", 1), ("10.0.0 10.0.1", 2)])
def test_the_template_bonds_tunnels_over_one_line_and_over_two(
    lines: str, carrying: int, engine: VirtualEngine, tmp_path: Path
) -> None:
    written = tmp_path / "bonding.yaml"
    written.write_text(template_text("bonding"), encoding="utf-8")
    given = [f'programs.0.environment.LINES="{lines}"', 'programs.2.run.7="2"', "monitors.interfaces=500ms"]
    bonded = Bonded(engine, tmp_path / "job", str(written), *given)
    moved = bonded.lines("home")
    assert sum(part > bonded.payload / 10 for part in moved.values()) == carrying, moved
    assert sum(moved.values()) > bonded.payload
    assert len(set(bonded.ran.tables["subflows"]["subflow"])) >= 2
    plan = with_connections(bonded.ran.plan, bonded.ran.tables)
    assert observe(plan, bonded.ran.tables) == [], "no subflow that the tunnels do not carry"


def test_softether_carries_all_by_tcp_and_what_is_inside_is_counted_once(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    """Its UDP acceleration would begin ten seconds after a cascade has come up, and take everything off the tunnels."""
    given = [
        *vpn_environment(1, LINES="softether", BOND="softether"),
        *vpn_environment(3, SECONDS="2"),
        "programs.3.at=12s",
    ]
    bonded = Bonded(engine, tmp_path / "job", "vpn-kinds", *given)
    assert all(part > bonded.payload / 10 for part in bonded.lines("home").values())
    assert bonded.over_tcp(5555, "tcp") > bonded.payload
    assert bonded.over_tcp(6666, "mptcp") > bonded.payload
    plan = with_connections(bonded.ran.plan, bonded.ran.tables)
    assert trial_metrics(plan, bonded.ran.tables)["goodput_bps"] == pytest.approx(
        bonded.received_bps, rel=0.1
    )
    drawn = trial_series(plan, bonded.ran.tables).subflows
    assert [subflow.path for subflow in drawn] == ["10.9.0.1 to 10.9.0.2"]


@pytest.mark.parametrize(("test", "sender"), [("udp", "home"), ("udp-reverse", "cloud")])
def test_udp_fills_both_lines_either_way(
    engine: VirtualEngine, tmp_path: Path, test: str, sender: str
) -> None:
    """Across tunnels in the kernel, for time; what does not fit is lost before the bond."""
    given = [
        "network.links.home-fibre.rate=23mbit",
        "network.links.home-vdsl.rate=8mbit",
        *vpn_environment(1, LINES="gre", BOND="openvpn"),
        *vpn_environment(3, TEST=test, UDP_SECONDS="2", UDP_RATE="40M"),
        "programs.3.at=0s",
    ]
    bonded = Bonded(engine, tmp_path / "job", "vpn-bonding", *given)
    assert (FIBRE + VDSL) / 2 < bonded.received_bps < (FIBRE + VDSL) / HEADERS
    assert bonded.end["sum_received"]["lost_packets"] > 0
    assert all(part > bonded.payload / 10 for part in bonded.lines(sender).values())
    metrics = trial_metrics(with_connections(bonded.ran.plan, bonded.ran.tables), bonded.ran.tables)
    assert (
        metrics["goodput_bps"] is None
    )  # UDP sockets are not sampled, and a control connection is no goodput
    assert metrics["client.iperf3_received_bps"] == pytest.approx(bonded.received_bps, abs=1)


def test_a_missing_package_is_named_with_the_command_that_installs_it(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    given = [*vpn_environment(1, LINES="openvpn", PATH="/usr/bin:/bin")]
    with pytest.raises(TrialError) as caught:
        Bonded(engine, tmp_path / "job", "vpn-kinds", *given)
    assert "needs openvpn, which this machine does not have: apt-get install openvpn" in str(caught.value)


def test_a_softether_server_that_does_not_come_up_shows_its_own_log(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    shipped = find("vpn-kinds")
    assert shipped is not None
    programs = tmp_path / "own"
    (programs / "vpn").mkdir(parents=True)
    shutil.copy(shipped, programs)
    script = (shipped.parent / "vpn/bond.sh").read_text()
    assert script.count("bool Enabled true") == 1
    (programs / "vpn/bond.sh").write_text(script.replace("bool Enabled true", "bool Enabled false"))
    with pytest.raises(TrialError) as caught:
        Bonded(
            engine, tmp_path / "job", str(programs / "vpn-kinds.yaml"), *vpn_environment(1, LINES="softether")
        )
    message = str(caught.value)
    assert "the SoftEther server of port 5555 does not listen; what it says is above" in message
    assert "configuration file" in message  # the last thing that its log says
