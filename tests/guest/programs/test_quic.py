"""plait-quic carries data over one path and over two, and repeats to the byte."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import run_plan
from plait.plan.resolve import resolve
from plait.scenario import parse

if TYPE_CHECKING:
    from conftest import Ran
    from plait.engine.virtual.trial import VirtualEngine

PROGRAM = Path(__file__).parents[3] / "build" / "plait-quic"
pytestmark = [
    pytest.mark.guest,
    pytest.mark.skipif(
        not PROGRAM.is_file(),
        reason="NOT TESTED: plait-quic is not built (`make quic`); see docs/limitations.md",
    ),
]
SCENARIO = f"""\
title: QUIC
network:
  hosts: [client, server]
  links: {{client-server#1: {{rate: 4mbit, delay: 5ms}}, client-server#2: {{rate: 2mbit, delay: 20ms}}}}
programs:
  - name: server
    node: server
    run: [{PROGRAM}, server, --protocol, PROTOCOL, --at, server-eth0, --at, server-eth1]
    ready: {{log: ready}}
    wait: true
    result: json
  - name: client
    node: client
    run: [{PROGRAM}, client, --protocol, PROTOCOL, --path, "client-eth0,server-eth0", --path,
      "client-eth1,server-eth1"]
    after: server
    wait: true
    result: json
"""
BITS = 8_000_000


def run(engine: VirtualEngine, folder: Path, protocol: str, name: str = "job") -> Ran:
    job = folder / name
    job.mkdir()
    return run_plan(engine, resolve(parse(SCENARIO.replace("PROTOCOL", protocol), "t.yaml"), 1), job)


def figures(ran: Ran, program: str) -> dict[str, int]:
    return {name: value for owner, name, value in ran.tables["program_figures"].rows() if owner == program}


def test_multipath_quic_fills_both_paths_and_repeats_to_the_byte(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    first, second = (run(engine, tmp_path, "mpquic", name) for name in ("a", "b"))
    client = figures(first, "client")
    # More than the faster path could carry, and no more than both.
    assert 4 < BITS / client["completion_us"] < 6
    assert client["path2_received_bytes"] > 150_000
    for name in ("program_figures", "programs", "links"):
        assert first.tables[name].equals(second.tables[name])


def test_quic_uses_the_first_path_alone(engine: VirtualEngine, tmp_path: Path) -> None:
    ran = run(engine, tmp_path, "quic")
    client = figures(ran, "client")
    assert 3.4 < BITS / client["completion_us"] < 4
    assert client["paths"] == figures(ran, "server")["paths"] == 1
    # A handshake of one round trip: 10 ms, after that of the address resolution.
    assert 10_000 < client["handshake_us"] < 25_000


def test_tls_runs_over_mptcp_where_the_node_has_it(engine: VirtualEngine, tmp_path: Path) -> None:
    ran = run(engine, tmp_path, "tls")
    assert 4 < BITS / figures(ran, "client")["completion_us"] < 6
    assert figures(ran, "server")["requests"] == 1
