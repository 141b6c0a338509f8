"""plait records what the kernel's own tools print at the same virtual moment in the same guest."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from result_folders import run_unreported

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

MOMENT_US = 1_500_000
SCENARIO = """\
title: Watched by plait and by the tools of iproute2
network:
  hosts: [h1, h2]
  links:
    h1-h2: {rate: 5mbit, delay: 10ms, loss: 0.5%}
    h1-h2#2: {rate: 2mbit, delay: 20ms, queue: 8pkt}
traffic:
  - bulk: {from: h1, to: h2, duration: 2s}
monitors: {counters: 100ms}
system_call: 0s
programs:
  - {name: ss, transport: tcp, node: h1, at: 1500ms, run: [ss, -tinMOH]}
  - {name: nstat, transport: tcp, node: h2, at: 1500ms, run: [nstat, -a, -s, -z, --json]}
  - {name: tc, transport: tcp, node: h1, at: 1500ms, run: [ip, netns, exec, wire, tc, -s, -j, qdisc]}
  - {name: ip1, transport: tcp, node: h1, at: 1500ms, run: [ip, -s, -j, link]}
  - {name: ip2, transport: tcp, node: h2, at: 1500ms, run: [ip, -s, -j, link]}
  - {name: monitor, transport: tcp, node: h1, run: [stdbuf, -oL, ip, mptcp, monitor]}
"""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, pl.DataFrame]]:
    return run(tmp_path_factory.mktemp("tools"))


def run(folder: Path) -> tuple[dict[str, str], dict[str, pl.DataFrame]]:
    (folder / "tools.yaml").write_text(SCENARIO, encoding="utf-8")
    study = run_unreported(folder / "tools.yaml", folder / "out", fresh=True)
    assert not study.failed
    trial_folder: Path = next((folder / "out/trials").glob("*/000"))
    outputs = {path.stem: path.read_text(encoding="utf-8") for path in (trial_folder / "programs").iterdir()}
    return outputs, {path.stem: pl.read_parquet(path) for path in trial_folder.glob("*.parquet")}


def at_moment(table: pl.DataFrame) -> pl.DataFrame:
    rows = table.filter(pl.col("t_us") == MOMENT_US)
    assert rows.height
    return rows


def test_subflows_are_what_ss_shows(trial: tuple[dict[str, str], dict[str, pl.DataFrame]]) -> None:
    outputs, tables = trial
    lines = [line for line in outputs["ss"].splitlines() if line.startswith("tcp")]
    ours = at_moment(tables["subflows"]).filter(pl.col("side") == "client")
    assert len(lines) == ours.height == 2
    for row in ours.iter_rows(named=True):
        end = f"{row['local_address']}:{row['local_port']} "
        line = next(line for line in lines if end in line)

        def shown(name: str, line: str = line) -> str:
            printed = re.search(rf"[ \t]{name}:(\S+)", line)
            return printed[1] if printed else "0"  # `ss` prints no counter that is 0

        for name, column in (
            ("bytes_sent", "sent_bytes"),
            ("bytes_acked", "acked_bytes"),
            ("cwnd", "cwnd_segments"),
            ("ssthresh", "ssthresh_segments"),
            ("unacked", "unacked_segments"),
            ("notsent", "notsent_bytes"),
            ("mss", "mss_bytes"),
            ("snd_wnd", "send_window_bytes"),
        ):
            assert int(shown(name)) == row[column], (name, line)
        rtt, rttvar = shown("rtt").split("/")
        assert float(rtt) * 1000 == pytest.approx(row["rtt_us"], rel=1e-4)
        assert float(rttvar) * 1000 == pytest.approx(row["rttvar_us"], rel=1e-3)
        assert float(shown("minrtt")) * 1000 == pytest.approx(row["min_rtt_us"], rel=1e-4)
        if " retrans:" in line:
            assert int(shown("retrans").split("/")[1]) == row["retransmitted_segments"]
        else:
            assert row["retransmitted_segments"] == 0


def test_counters_are_what_nstat_shows(trial: tuple[dict[str, str], dict[str, pl.DataFrame]]) -> None:
    outputs, tables = trial
    shown: dict[str, int] = json.loads(outputs["nstat"])["kernel"]
    # nstat shows a few that /proc/net/snmp6 has; and it names counters as we do.
    ours = tables["counter_series"].filter((pl.col("node") == "h2") & (pl.col("t_us") <= MOMENT_US))
    latest = dict(ours.group_by("counter", maintain_order=True).last().select("counter", "value").iter_rows())
    compared = {name: value for name, value in latest.items() if name in shown}
    assert len(compared) > 20
    assert any(name.startswith("MPTcpExt") for name in compared)
    assert compared == {name: shown[name] for name in compared}


def test_links_are_what_their_ends_have_counted(
    trial: tuple[dict[str, str], dict[str, pl.DataFrame]],
) -> None:
    """What a link has sent is what the other end has received; what it has neither sent nor dropped waits or flies."""
    outputs, tables = trial
    ends = {link["ifname"]: link["stats64"] for name in ("ip1", "ip2") for link in json.loads(outputs[name])}
    for name, sender, receiver in (
        ("h1->h2", "h1-eth0", "h2-eth0"),
        ("h2->h1", "h2-eth0", "h1-eth0"),
        ("h1->h2#2", "h1-eth1", "h2-eth1"),
    ):
        row = at_moment(tables["links"]).filter(pl.col("link") == name).row(0, named=True)
        assert (ends[receiver]["rx"]["bytes"], ends[receiver]["rx"]["packets"]) == (
            row["sent_bytes"],
            row["sent_packets"],
        )
        held = ends[sender]["tx"]["packets"] - row["sent_packets"] - row["dropped_packets"]
        assert held >= row["queue_packets"]


def test_links_as_chains_are_what_tc_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIT_LINKS", "chain")
    outputs, tables = run(tmp_path)
    qdiscs: list[dict[str, Any]] = json.loads(outputs["tc"])
    for name, ifname in (("h1->h2", "w0b"), ("h2->h1", "w0a"), ("h1->h2#2", "w1b")):
        row = at_moment(tables["links"]).filter(pl.col("link") == name).row(0, named=True)
        qdisc_by_kind = {qdisc["kind"]: qdisc for qdisc in qdiscs if qdisc["dev"] == ifname}
        netem, tbf = qdisc_by_kind["netem"], qdisc_by_kind["tbf"]
        assert (netem["bytes"], netem["packets"]) == (row["sent_bytes"], row["sent_packets"])
        assert netem["drops"] == row["dropped_packets"]
        assert tbf["drops"] == row["overflow_packets"]
        assert (tbf["backlog"], tbf["qlen"]) == (row["queue_bytes"], row["queue_packets"])


def test_events_are_what_the_monitor_shows(trial: tuple[dict[str, str], dict[str, pl.DataFrame]]) -> None:
    outputs, tables = trial
    shown = [
        (kind.lower().replace("sf_", "sub_"), int(token, 16))
        for kind, token in re.findall(r"^\[\s*(\w+)\] token=([0-9a-f]+)", outputs["monitor"], re.MULTILINE)
    ]
    ours = tables["events"].filter((pl.col("node") == "h1") & pl.col("token").is_not_null())
    recorded = list(ours.select("event", "token").iter_rows())
    # At the end of the trial the monitor is ended first.
    assert len(shown) >= 3
    assert recorded[: len(shown)] == shown


def test_the_bytes_of_subflows_are_those_of_the_connection(tmp_path: Path) -> None:
    text = SCENARIO.split("traffic:", maxsplit=1)[0].replace(", loss: 0.5%", "")
    text += "traffic:\n  - transfer: {from: h1, to: h2, bytes: 1500KB}\n"
    (tmp_path / "transfer.yaml").write_text(text, encoding="utf-8")
    study = run_unreported(tmp_path / "transfer.yaml", tmp_path / "out", fresh=True)
    subflows = study.table("subflows").filter(pl.col("side") == "server")
    connection = study.table("connections").filter(pl.col("side") == "server")
    summed = subflows.group_by("t_us").agg(pl.col("received_bytes").sum().alias("summed"))
    both = connection.join(summed, on="t_us").sort("t_us")
    duplicates = study.table("counters").filter(pl.col("counter") == "MPTcpExtDuplicateData")["after"].sum()
    assert duplicates == 0
    # What a subflow has and the connection has not yet waits for data of the other one.
    assert ((both["summed"] - both["received_bytes"]) >= 0).all()
    assert (both["summed"][-1], both["received_bytes"][-1]) == (1_500_000, 1_500_000)
    assert subflows.filter(pl.col("t_us") == both["t_us"][-1])["received_bytes"].min() > 100_000
