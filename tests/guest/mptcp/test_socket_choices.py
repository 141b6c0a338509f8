"""Packets on the wire show the scheduler, congestion control, mark and DSCP that each host and flow chooses."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import polars as pl
import pytest

from result_folders import run_unreported

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Ran, RunTrial

pytestmark = pytest.mark.guest

TWO = """
title: Two paths, and a flow in either direction
network:
  hosts: {a: {%s}, b: {}}
  links:
    a-b: {rate: 10mbit, delay: 5ms}
    a-b#2: {rate: 10mbit, delay: 5ms}
traffic:
  - transfer: {name: one, from: a, to: b, bytes: 300KB, start_jitter: 0s%s}
  - transfer: {name: two, from: a, to: b, bytes: 300KB, start: 2s, start_jitter: 0s}
  - transfer: {name: back, from: b, to: a, bytes: 300KB, start: 4s, start_jitter: 0s}
"""


def copies(ran: Ran) -> list[float]:
    """Return for each flow how often it sent each byte, over both subflows."""
    sent = ran.tables["subflows"].group_by("flow", "side", "subflow").agg(pl.col("sent_bytes").max())
    totals = sent.group_by("flow", "side").agg(pl.col("sent_bytes").sum())
    return (
        totals.group_by("flow").agg(pl.col("sent_bytes").max()).sort("flow")["sent_bytes"] / 300_000
    ).to_list()


@pytest.mark.parametrize(
    ("host", "flow", "expected"),
    [
        ("", "", [False, False, False]),
        ("", ", scheduler: redundant", [True, False, False]),
        ("scheduler: redundant", "", [True, True, False]),
        ("scheduler: redundant", ", scheduler: roundrobin", [False, True, False]),
    ],
)
def test_the_scheduler_of_a_flow_overrides_that_of_its_host(
    run_trial: RunTrial, host: str, flow: str, expected: list[bool]
) -> None:
    """Redundant sends each byte on both subflows; the others send it once. The data of `back` are the other host's."""
    sent = copies(run_trial(TWO % (host, flow)))
    assert [copies_of_flow > 1.6 for copies_of_flow in sent] == expected, sent
    assert all(copies_of_flow < 1.1 or copies_of_flow > 1.6 for copies_of_flow in sent)


def test_the_congestion_control_of_a_flow_overrides_that_of_its_host(run_trial: RunTrial) -> None:
    ran = run_trial(TWO % ("congestion_control: reno", ", congestion_control: vegas"))
    assert ran.tables["flows"]["congestion_control"].to_list() == ["vegas", "reno", "cubic"]


MARKED = """\
title: Three flows that filters can tell apart
network:
  hosts: [a, b]
  links:
    a-b: {rate: 10mbit, delay: 5ms}
    a-b#2: {rate: 10mbit, delay: 5ms}
monitors: {capture: {on: [a, b], bytes: 128}}
programs:
  - {node: a, at: 1s, run: ip rule add priority 1 fwmark 7 blackhole}
traffic:
  - bulk: {from: a, to: b, duration: 2s, mark: 7, dscp: 46}
  - bulk: {from: a, to: b, duration: 2s, dscp: 10, transport: tcp}
  - bulk: {from: a, to: b, duration: 2s}
"""


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert shutil.which("tshark"), "install tshark: `tools/system-packages test` does"
    folder = tmp_path_factory.mktemp("marked")
    (folder / "marked.yaml").write_text(MARKED, encoding="utf-8")
    study = run_unreported(folder / "marked.yaml", folder / "out", fresh=True)
    assert not study.failed
    return next((folder / "out/trials").glob("*/000"))


def test_every_packet_of_either_side_has_its_flows_dscp(marked: Path) -> None:
    """Of all subflows, from the first SYN to the last FIN; RFC 2474: the upper six bits of the field."""
    seen: dict[tuple[int, str], set[int]] = {}
    for file in sorted((marked / "pcap").iterdir()):
        fields = ("tcp.srcport", "tcp.dstport", "ip.src", "ip.dsfield.dscp")
        command = ["tshark", "-r", str(file), "-Y", "tcp", "-T", "fields", *(f"-e{name}" for name in fields)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        for line in done.stdout.splitlines():
            source, target, address, dscp = line.split("\t")
            flow = min(int(source), int(target)) - 5001
            seen.setdefault((flow, address), set()).add(int(dscp))
    assert {key: value for key, value in seen.items() if key[0] == 0} == {
        (0, address): {46} for address in ("10.0.0.1", "10.0.0.2", "10.0.1.1", "10.0.1.2")
    }
    assert seen[1, "10.0.0.1"] == seen[1, "10.0.0.2"] == {10}
    assert {dscp for (flow, _), values in seen.items() if flow == 2 for dscp in values} == {0}


def test_a_rule_for_a_mark_catches_all_subflows_of_its_flow_and_no_other_flow(marked: Path) -> None:
    rows = pl.read_parquet(marked / "subflows.parquet").filter(pl.col("side") == "server")
    late = rows.filter(pl.col("t_us") >= 1_300_000).group_by("flow", "subflow")
    grown = late.agg((pl.col("received_bytes").max() - pl.col("received_bytes").min()).alias("bytes"))
    by_flow = {
        flow: part["bytes"].to_list() for (flow,), part in grown.partition_by("flow", as_dict=True).items()
    }
    assert by_flow[0] == [0, 0], "neither subflow gets anything through"
    assert min(by_flow[1] + by_flow[2]) > 50_000
    before = rows.filter((pl.col("flow") == 0) & (pl.col("t_us") <= 1_000_000))
    assert before.group_by("subflow").agg(pl.col("received_bytes").max())["received_bytes"].min() > 50_000
