"""plait and iperf3, nginx and BitTorrent report the same figures for the programs' connections."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import polars as pl
import pytest

from conftest import run_plan
from plait.analysis.cautions.mptcp import findings
from plait.analysis.metrics.programs import with_connections
from plait.analysis.metrics.trial import trial_metrics
from plait.cache import cache_root
from plait.explain import explain_trial
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Ran, RunTrial
    from plait.engine.virtual.trial import VirtualEngine

pytestmark = pytest.mark.guest


def needs(*programs: str) -> pytest.MarkDecorator:
    missing = [name for name in programs if shutil.which(name, path="/usr/bin:/usr/sbin:/bin") is None]
    return pytest.mark.skipif(
        bool(missing), reason=f"not installed: {', '.join(missing)}; see tools/system-packages"
    )


def metrics(ran: Ran) -> dict[str, float | None]:
    return trial_metrics(with_connections(ran.plan, ran.tables), ran.tables)


def agree_within(share: float, first: float | None, second: float | None) -> bool:
    assert first is not None
    assert second is not None
    return abs(first - second) <= share * second


@needs("iperf3")
@pytest.mark.parametrize(("case", "links"), [(0, 1), (1, 2)])
def test_iperf3_and_plait_report_the_same_goodput_and_a_seed_repeats_the_bytes(
    run_trial: RunTrial, case: int, links: int
) -> None:
    ran = run_trial("iperf3", case=case)
    reported = metrics(ran)
    # 1448 of 1514 bytes of each frame are the application's; of MPTCP 20 less.
    assert agree_within(0.03, reported["goodput_bps"], links * 10e6 * 1440 / 1514)
    assert agree_within(0.01, reported["client.goodput_bps"], reported["client.iperf3_received_bps"])
    assert run_trial("iperf3", case=case).digest == ran.digest


@needs("iperf3")
@pytest.mark.parametrize(
    "options", ["-P, 3, -t, 3", "-R, -t, 3", "-b, 4M, -t, 3", "-b, 1M, -R, -P, 2, -t, 3, -l, 8K"]
)
def test_options_of_iperf3_change_its_report_and_plaits_alike(run_trial: RunTrial, options: str) -> None:
    ran = run_trial("iperf3", case=1, overrides=(f"programs.1.run=[iperf3, -c, h2, {options}, -J]",))
    reported = metrics(ran)
    # Of three seconds a sample is 3 %: the ends of what is measured are as far apart.
    assert agree_within(0.04, reported["client.goodput_bps"], reported["client.iperf3_received_bps"])


@needs("iperf3")
def test_udp_of_iperf3_is_counted_by_it_and_by_the_links(run_trial: RunTrial) -> None:
    ran = run_trial("iperf3", overrides=("programs.1.run=[iperf3, -c, h2, -u, -b, 2M, -t, 2, -l, 1000, -J]",))
    figures = dict(ran.tables["program_figures"].select("figure", "value").rows())
    assert figures["iperf3_lost_packets"] == 0
    sent = ran.series("links", link="h1->s1")["sent_bytes"].max()
    assert agree_within(0.01, figures["iperf3_packets"] * (1000 + 42), sent)


SEGMENT_BYTES = 1460
LINKS = {"ns1": ("ns1-r1", "ns1-r2", "ns1-nat"), "ns2": ("r1-ns2", "r2-ns2", "nat-ns2")}


def endpoints(**flags: str) -> str:
    lists = (
        f"{host}: [{', '.join(f'{{link: {link}, flags: {flag}}}' for link in LINKS[host])}]"
        for host, flag in flags.items()
    )
    return f"mptcp.endpoints={{{', '.join(lists)}}}"


@needs("iperf3")
@pytest.mark.parametrize(
    ("roles", "used"),
    [
        ((), {"nat", "r1"}),
        ((endpoints(ns1="[subflow]", ns2="[signal]"),), {"nat", "r1", "r2"}),
    ],
)
def test_mptcp_of_a_program_joins_the_endpoint_that_linux_announces(
    run_trial: RunTrial, roles: tuple[str, ...], used: set[str]
) -> None:
    """Of endpoints with both flags, which hosts of programs have, Linux announces one: net/mptcp/pm_kernel.c."""
    command = "programs.1.run=[iperf3, -c, ns2-eth2, -t, 3, -J]"
    ran = run_trial("initial-path", case=1, overrides=(command, *roles))
    shares = {name: share for name, share in metrics(ran).items() if name.endswith(".path_share")}
    assert {name.split("-")[1] for name, share in shares.items() if share} == used
    never = [
        (share.where, share.reason)
        for flow in explain_trial(ran.plan, ran.tables)
        for share in flow.shares
        if share.cause == "subflow-never" and share.where == ("ns1-r2-ns2",)
    ]
    assert set(never) == (set() if "r2" in used else {(("ns1-r2-ns2",), "no-add-addr")})


@needs("nginx", "curl")
@pytest.mark.parametrize("case", [0, 1])
def test_what_curl_downloads_is_what_its_subflows_carry(run_trial: RunTrial, case: int) -> None:
    ran = run_trial("nginx-curl", case=case)
    assert ran.tables["program_flows"]["program"].to_list() == ["curl"] * 3
    assert ran.tables["program_flows"]["sender"].to_list() == ["server"] * 3
    whole = ran.series("connections", side="server").group_by("flow").agg(pl.col("sent_bytes").max())
    header = {size - 10_000_000 for size in whole["sent_bytes"]}
    assert len(header) == 1
    assert 0 < header.pop() < 500
    for flow in range(3):
        # Subflows have got what the connection has, what was sent twice, and what still waits for its order. They are
        # read first, and a segment may arrive before the connection is.
        parts = ran.series("subflows", side="client", flow=flow).group_by("t_us", maintain_order=True)
        got = parts.agg(pl.col("received_bytes").sum().alias("got"), pl.len().alias("parts"))
        both = got.join(ran.series("connections", side="client", flow=flow), on="t_us")
        assert both.height > 5
        assert (both["got"] + SEGMENT_BYTES >= both["received_bytes"]).all()
        assert (both["got"] - both["received_bytes"] < 1_500_000).all()
        assert both["parts"].max() == 1 + case
    assert run_trial("nginx-curl", case=case).digest == ran.digest


with_webtorrent = pytest.mark.skipif(
    not (cache_root() / "npm/node_modules/webtorrent-cli").is_dir(),
    reason="webtorrent is not installed; run tools/npm-packages",
)


@needs("node")
@with_webtorrent
@pytest.mark.parametrize("client", ["webtorrent", pytest.param("aria2", marks=needs("aria2c"))])
def test_a_torrent_arrives_whole_over_every_local_path_and_from_node_in_the_same_bytes(
    run_trial: RunTrial, client: str
) -> None:
    overrides = ("programs.0.environment.SIZE=2000000", f"programs.4.environment.CLIENT={client}")
    ran = run_trial("bittorrent", case=1, overrides=overrides)
    about = with_connections(ran.plan, ran.tables)
    assert not [finding.text for finding in findings(about, ran.tables) if finding.code == "FELL_BACK"]
    data = [flow for flow in about.flows if not flow.background]
    assert {(flow.server.netns, flow.client.netns) for flow in data} <= {("ns1", "ns2"), ("ns2", "ns1")}
    carried = ran.tables["subflows"].filter(pl.col("flow").is_in([flow.id for flow in data]))
    assert carried.group_by("flow", "side").agg(pl.col("subflow").n_unique())["subflow"].max() >= 2
    # aria2 opens a connection each way, takes from both, and ends before another sample of the connections.
    assert (
        carried.group_by("flow", "side", "subflow")
        .agg(pl.col("received_bytes").max())["received_bytes"]
        .sum()
        >= 1_900_000
    )
    if client == "webtorrent":  # one connection, and what it asks the tracker is no part of the shares
        shares = {name: share for name, share in metrics(ran).items() if name.endswith(".path_share")}
        assert list(shares) == [f"ns1-{way}-ns2.path_share" for way in ("r1", "r2", "nat")]
        assert agree_within(1e-9, sum(share or 0 for share in shares.values()), 1)
    if client == "webtorrent":  # aria2 asks the processor for random numbers: see docs/limitations.md
        assert run_trial("bittorrent", case=1, overrides=overrides).digest == ran.digest


@needs("node", "aria2c")
@with_webtorrent
def test_a_swarm_of_mptcp_and_tcp_peers_completes_and_only_mptcp_uses_both_lines(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    size = 2_000_000
    case = expand(load("swarm", (f"programs.0.environment.SIZE={size}",)))[1]
    ran = run_plan(engine, resolve(case.scenario, trial_seed(1, 0)), tmp_path)
    transports = {
        program.netns: program.transport for program in ran.plan.programs if program.name.startswith("fetch-")
    }
    assert sorted(transports.values()) == ["mptcp"] * 4 + ["tcp"] * 4

    digests = [log.read_text().split()[-2] for log in sorted((tmp_path / "programs").glob("fetch-*.log"))]
    assert len(digests) == 8
    assert {len(sha256) for sha256 in digests} == {64}
    assert len(set(digests)) == 1  # and each compared its copy with the original, or the trial had failed

    about = with_connections(ran.plan, ran.tables)
    # To TCP peers it has to, and a connection that is closed between two samples has not.
    assert not [finding.text for finding in findings(about, ran.tables) if finding.code == "FELL_BACK"]
    peers = [flow for flow in about.flows if 8000 not in (flow.client.port, flow.server.port)]
    got = ran.tables["connections"].group_by("flow").agg(pl.col("received_bytes").max())
    received = dict(got.rows())
    among = [flow for flow in peers if "seeder" not in (flow.client.netns, flow.server.netns)]
    assert sum(received[flow.id] or 0 for flow in among) > size  # it is a swarm: they give to each other
    # Lines are 10.0.0.0/24 and 10.0.1.0/24; a subflow that carried nothing has acknowledged its SYN alone.
    carried = ran.tables["subflows"].filter(pl.col("received_bytes") > 2)
    lines = {
        flow.id: {address.split(".")[2] for address in carried.filter(flow=flow.id)["local_address"]}
        for flow in peers
    }
    used: dict[str, set[str]] = {node: set() for node in transports}
    for flow in peers:
        for node in {flow.client.netns, flow.server.netns} & set(used):
            used[node] |= lines[flow.id]
    assert used == {node: {"0", "1"} if program == "mptcp" else {"0"} for node, program in transports.items()}
