"""Two lines bonded through tunnels: real VPN programs in the guest, and Multipath TCP inside or across them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from conftest import run_plan
from plait.plan.expand import expand
from plait.plan.resolve import resolve
from plait.scenario import load

if TYPE_CHECKING:
    from pathlib import Path

    from plait.run.virtual import VirtualEngine

PROGRAMS = ("vpncmd", "vpnserver", "wg", "openvpn", "mptcpize", "iperf3")
missing = [name for name in PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(
        bool(missing), reason=f"needs {', '.join(missing)}: `tools/system-packages test` installs them"
    ),
]
SECONDS = 4
FIBRE, VDSL = 23e6, 8e6
"""The rates of the lines in vpn-kinds, bit/s."""


@pytest.mark.parametrize(
    ("lines", "bond", "least"),
    [
        # A tunnel in the kernel costs its headers: MPTCP inside has more than the fibre could give by itself.
        ("wireguard", "none", FIBRE),
        # TCP inside TCP: what is lost to it is the experiment's subject, that both lines are used is not.
        ("softether", "softether", VDSL),
    ],
)
def test_a_bond_uses_both_lines(
    engine: VirtualEngine, tmp_path: Path, lines: str, bond: str, least: float
) -> None:
    overrides = (f"programs.1.environment.LINES={lines}", f"programs.1.environment.BOND={bond}")
    model = load("vpn-kinds", (*overrides, f'programs.3.environment.SECONDS="{SECONDS}"', "vary={}"))
    folder = tmp_path / "job"
    folder.mkdir()
    ran = run_plan(engine, resolve(expand(model)[0].scenario, 1), folder, model.input_files())
    end = json.loads((folder / "programs/client.log").read_text())["end"]
    assert end["sum_received"]["bits_per_second"] > least
    assert end["sum_received"]["bits_per_second"] < FIBRE + VDSL
    moved = {
        name: frame["sent_bytes"].max() - frame["sent_bytes"].min()
        for (name,), frame in ran.tables["interfaces"].group_by("interface")
        if name.startswith("home-eth")
    }
    payload = end["sum_received"]["bytes"]
    assert sorted(moved) == ["home-eth0", "home-eth1"]
    assert all(part > payload / 10 for part in moved.values()), moved
    assert sum(moved.values()) > payload
