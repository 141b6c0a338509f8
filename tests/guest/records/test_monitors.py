"""Monitors agree with arithmetic, with the other tables, and with tshark."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import polars as pl
import pytest

import plait
from plait.errors import ScenarioError
from plait.report import build
from plait.scenario import parse
from result_folders import run_unreported

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

TWO = """\
title: Two unlike paths
network:
  hosts: [client, server]
  links:
    client-server: {rate: 8mbit, delay: 10ms}
    client-server#2: {rate: 2mbit, delay: 25ms}
traffic:
  - bulk: {from: client, to: server, duration: 2s, start: 1s, start_jitter: 0s}
"""
ECHO, ARP = 98, 42
"""Bytes of frames."""
BASIC = ("flows", "connections", "subflows", "links", "events", "counters", "queueing_delays")


def trial(tmp_path: Path, monitors: str, text: str = TWO) -> tuple[Path, dict[str, pl.DataFrame]]:
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / "watched.yaml"
    file.write_text(text + monitors, encoding="utf-8")
    study = run_unreported(file, tmp_path / "out", fresh=True)
    assert not study.failed
    folder = next((tmp_path / "out" / "trials").glob("*/000"))
    return folder, {path.stem: pl.read_parquet(path) for path in folder.glob("*.parquet")}


@pytest.mark.parametrize(
    "asked",
    [
        "{interfaces: 3ms, counters: 7ms, capture: {on: [client, server], bytes: 64}}",
        "{interfaces: 10ms, counters: 2ms}",
        "{capture: client}",
    ],
)
def test_measuring_does_not_change_what_is_measured(tmp_path: Path, asked: str) -> None:
    _, plain = trial(tmp_path / "a", "")
    folder, watched = trial(tmp_path / "b", f"monitors: {asked}\n")
    assert set(plain) == set(BASIC)
    extra = {"interfaces": "interfaces", "counters": "counter_series"}
    assert set(watched) == {*BASIC, *(table for name, table in extra.items() if name in asked)}
    assert (folder / "pcap").exists() == ("capture" in asked)
    for table in BASIC:
        assert plain[table].equals(watched[table]), table


def test_a_trial_that_is_sampled_more_often_is_the_same_trial(tmp_path: Path) -> None:
    _, plain = trial(tmp_path / "a", "")
    _, closely = trial(tmp_path / "b", "sample: 9ms\n")
    for table in ("flows", "events", "counters"):
        assert plain[table].equals(closely[table]), table
    for table in ("connections", "subflows", "links"):
        # 900 ms and its multiples are moments of both.
        both = [rows.filter(pl.col("t_us") % 900_000 == 0) for rows in (plain[table], closely[table])]
        assert both[0].height > 0
        assert both[0].equals(both[1]), table


def test_flows_that_are_not_sampled_keep_their_last_rows_and_say_so(tmp_path: Path) -> None:
    text = TWO.replace("start_jitter: 0s", "start_jitter: 0s, count: 4") + "measure: {from: 500ms}\n"
    _, every = trial(tmp_path / "a", "", text)
    folder, some = trial(tmp_path / "b", "sample: {flows: 2}\n", text)
    for table in ("flows", "links", "events", "counters"):
        assert every[table].equals(some[table]), table
    for table, mine in (("connections", ["flow", "side"]), ("subflows", ["flow", "side", "subflow"])):
        both = [rows.filter(pl.col("flow").is_in([0, 2])) for rows in (every[table], some[table])]
        assert both[0].equals(both[1]), table
        others = [rows.filter(pl.col("flow").is_in([1, 3])) for rows in (every[table], some[table])]
        last = others[0].group_by(mine, maintain_order=True).last().select(others[1].columns)
        assert others[1].sort(mine).to_dicts() == last.sort(mine).to_dicts(), table
    study = plait.open(folder.parents[2])
    full = plait.open(tmp_path / "a" / "out").trials.row(0, named=True)
    values = study.trials.row(0, named=True)
    unknown = {name for name, value in values.items() if value is None and full[name] is not None}
    flows = {
        name.removesuffix(".steady_goodput_bps") for name in full if name.endswith(".steady_goodput_bps")
    }
    assert len(flows) == 4
    assert {name.rpartition(".")[0] for name in unknown if "." in name} == set(sorted(flows)[1::2])
    assert {"rtt_max_us", "steady_goodput_bps", "stall_max_s", "out_of_order_max_bytes"} <= unknown
    assert {name: value for name, value in values.items() if name not in unknown} == {
        name: value for name, value in full.items() if name not in unknown
    }
    explained = study.explain()
    assert len(explained.cases[0].flows) == 2
    assert "2 of 4 flows sampled; the others have no explanation." in str(explained)
    build(study.folder)
    page = (study.folder / "report.html").read_text(encoding="utf-8")
    assert "2 of 4 flows sampled." in page
    assert "[unsampled]" in page or "unsampled" in page


def test_an_idle_path_answers_after_its_two_delays_and_a_full_one_after_its_queue(tmp_path: Path) -> None:
    _, tables = trial(tmp_path, "monitors: {ping: 100ms}\n")
    probes = tables["probes"]
    assert probes["t_us"].unique().sort().to_list()[:3] == [0, 100_000, 200_000]
    for path, delay_us, mbit in (("client-server", 10_000, 8), ("client-server#2", 25_000, 2)):
        on_path = probes.filter(pl.col("path") == path).sort("t_us")
        round_trip_us = 2 * delay_us + 2 * ECHO * 8 / mbit
        # The first one waits for ARP: one more round trip.
        first_us = round_trip_us + 2 * delay_us + 2 * ARP * 8 / mbit
        assert on_path["rtt_us"][0] == pytest.approx(first_us, abs=20)
        idle = on_path.filter(pl.col("t_us").is_between(200_000, 900_000))["rtt_us"]
        assert idle.len() == 8
        assert idle.min() == pytest.approx(round_trip_us, abs=10)
        assert idle.max() == pytest.approx(round_trip_us, abs=10)
        busy = on_path.filter(pl.col("t_us").is_between(2_500_000, 2_800_000))["rtt_us"]
        assert busy.min() > 2 * delay_us + 5_000
    assert probes.filter(pl.col("t_us") < 2_500_000)["rtt_us"].null_count() == 0


def test_a_probe_that_is_lost_is_null(tmp_path: Path) -> None:
    text = TWO.replace("delay: 25ms", "delay: 25ms, loss: 100%")
    _, tables = trial(tmp_path, "monitors: {ping: 250ms}\n", text)
    rtts = tables["probes"].group_by("path").agg(pl.col("rtt_us").null_count(), n=pl.len())
    counts = {path: (lost, n) for path, lost, n in rtts.iter_rows()}
    assert counts["client-server#2"][0] == counts["client-server#2"][1] > 8
    assert counts["client-server"][0] <= 1  # the last one may be under way


def test_interfaces_count_what_links_carry(tmp_path: Path) -> None:
    _, tables = trial(tmp_path, "monitors: {interfaces: {every: 100ms, nodes: [server]}}\n")
    rows = tables["interfaces"]
    assert set(rows["node"]) == {"server"}
    assert set(rows["interface"]) == {"server-eth0", "server-eth1"}
    for interface, link in (("server-eth0", "client->server"), ("server-eth1", "client->server#2")):
        arrived = rows.filter(pl.col("interface") == interface).select(
            "t_us", "received_bytes", "received_packets"
        )
        carried = tables["links"].filter(pl.col("link") == link).select("t_us", "sent_bytes", "sent_packets")
        both = arrived.join(carried, on="t_us")
        assert both.height > 25
        # What has left the link has arrived: the link's delay comes before its counter.
        assert both["received_bytes"].equals(both["sent_bytes"].alias("received_bytes"))
        assert both["received_packets"].equals(both["sent_packets"].alias("received_packets"))


def test_counters_over_time_end_where_the_counters_do(tmp_path: Path) -> None:
    _, tables = trial(tmp_path, "monitors: {counters: 250ms}\n")
    last = tables["counter_series"].group_by("node", "counter", maintain_order=True).last()
    final = tables["counters"].join(last, on=["node", "counter"], how="inner")
    assert final.height > 40
    moving = final.filter(pl.col("counter").str.contains("Tcp"))
    same = (moving["after"] == moving["value"]).sum()
    # Closing the flow moves a few more, after the last reading.
    assert same >= 0.9 * moving.height
    joins = tables["counter_series"].filter(pl.col("counter") == "MPTcpExtMPJoinAckRx")
    assert joins.select("node", "value").rows() == [("server", 1)]
    assert 1_000_000 < joins["t_us"][0] <= 1_250_000


def test_a_capture_opens_in_tshark_with_its_mptcp_options(tmp_path: Path) -> None:
    assert shutil.which("tshark"), "install tshark: `tools/system-packages test` does"
    folder, tables = trial(tmp_path, "monitors: {capture: [client, client-server#2]}\n")
    files = sorted(path.name for path in (folder / "pcap").iterdir())
    assert files == [
        "client.client-eth0.pcapng",
        "client.client-eth1.pcapng",
        "server.server-eth1.pcapng",
    ]
    fields = [
        "frame.time_epoch",
        "frame.len",
        "frame.cap_len",
        "ip.src",
        "tcp.options.mptcp.subtype",
        "tcp.len",
    ]
    command = ["tshark", "-r", str(folder / "pcap" / files[1]), "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert Counter(row[4].split(",")[0] for row in rows)["1"] == 3, "SYN, SYN/ACK and ACK of MP_JOIN"
    start_us = tables["flows"]["start_us"][0]
    times = [float(row[0]) * 1e6 for row in rows if row[4].startswith("1")]
    # The join begins after the initial subflow's handshake; ARP comes first on either path.
    assert start_us + 40_000 < times[0] < start_us + 120_000
    syn, answer = [int(row[1]) for row in rows if row[4].startswith("1")][:2]
    on_the_wire_us = (syn + answer) * 8 / 2
    assert times[1] - times[0] == pytest.approx(50_000 + on_the_wire_us, abs=2)
    sent = [row for row in rows if row[3] == "10.0.1.1"]
    assert max(int(row[1]) for row in sent) == 1514
    assert max(int(row[2]) for row in sent) == 128
    payload = sum(int(row[5] or 0) for row in sent)
    subflows = tables["subflows"].filter((pl.col("side") == "client") & (pl.col("subflow") == 1))
    assert payload == pytest.approx(subflows["sent_bytes"].max(), abs=3 * 1424)


def test_the_same_trial_leaves_the_same_capture(tmp_path: Path) -> None:
    asked = "monitors: {capture: {on: client, bytes: 2000}, ping: 50ms}\n"
    ran, first = trial(tmp_path / "a", asked)
    two, second = trial(tmp_path / "b", asked)
    assert first["probes"].equals(second["probes"])
    for path in (ran / "pcap").iterdir():
        assert path.read_bytes() == (two / "pcap" / path.name).read_bytes()


@pytest.mark.parametrize(
    ("monitors", "message"),
    [
        ("{interfaces: {nodes: [clint]}}", "monitors.interfaces.nodes.0: no node is called 'clint'"),
        ("{capture: [client-serve]}", "monitors.capture.on.0: no node or link is called 'client-serve'"),
        ("{ping: 1us}", "monitors.ping.every: "),
        ("{ping: {every: 1s, bytes: 4}}", "monitors.ping.bytes: "),
        ("{counters: fast}", "monitors.counters.every: 'fast' is not a time"),
        ("{captures: [client]}", "monitors.captures: "),
        ("{capture: {on: []}}", "monitors.capture.on: "),
    ],
)
def test_a_mistake_is_located(monitors: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=r"x\.yaml:9:\d+") as caught:
        parse(TWO + f"monitors: {monitors}\n", "x.yaml")
    assert message in str(caught.value)
