"""`plait advise --verify` judges by whole intervals, and takes changes back whatever happens."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from fake_tables import fake_tables
from plait.advice import verify as verifying
from plait.advice.candidates import candidates
from plait.advice.changes.model import NOW
from plait.advice.result import LOSS, RTT
from plait.advice.situation import Situation
from plait.advice.verify import RealLines, compare
from plait.advice.words import verified_sentences, verified_table
from plait.analysis.translation import path_rtts_us
from plait.cli.results.advise import command
from plait.engine.remote.lasting import Applied, RemoteHost
from plait.errors import MachineError, RequestError
from plait.scenario import parse
from scenario_samples import plan_of

LINES = """\
title: Two lines
network:
  hosts: [home, vps]
  links:
    home-vps: {label: cable, rate: 10mbit, delay: 7ms, queue: 250KB}
    home-vps#2: {label: "lte (wwan0)", rate: 20mbit, delay: 25ms}
traffic: [{bulk: {from: vps, to: home, reverse: true, duration: 10s}}]
"""
HOSTS = """\
limits: {rate: 50mbit, bytes: 1GB, time: 10min}
hosts:
  home: {ssh: home, addresses: {home-vps: 192.0.2.1, home-vps#2: 192.0.2.2}}
  vps: {ssh: vps, addresses: {home-vps: 192.0.2.3, home-vps#2: 192.0.2.4}}
"""


@pytest.mark.parametrize(
    ("metric", "twin", "lines", "verdict"),
    [
        ("goodput_bps", [10.0, 10.1, 9.9], [10.2, 10.1, 10.3], "agree"),
        ("goodput_bps", [10.0, 10.1, 9.9], [7.0, 7.1, 6.9], "differ"),
        ("goodput_bps", [10.0, 10.1, 9.9], [6.0, 12.0, 9.0], "undecided"),
        ("goodput_bps", [10.0, 10.1], [], "not measured"),
        ("rtt_median_us", [100.0, 101.0, 99.0], [115.0, 116.0, 114.0], "agree"),
        (LOSS, [0.001, 0.002, 0.003], [0.004, 0.005, 0.006], "agree"),
        (LOSS, [0.001, 0.002, 0.003], [0.05, 0.06, 0.07], "differ"),
        (LOSS, [0.0, 0.0], [0.0, 0.0], "agree"),
    ],
)
def test_twin_and_lines_agree_only_if_the_whole_interval_does(
    metric: str, twin: list[float], lines: list[float], verdict: str
) -> None:
    assert compare("download", "now", metric, twin, lines).verdict == verdict


def test_the_table_has_all_figures_in_80_columns() -> None:
    metrics = ("message_delay_p95_us", "request_latency_p95_us", "rtt_median_us", "goodput_bps")
    rows = [compare("video", "buffers", metric, [3e4, 3.1e4], [1.5e4, 9e4]) for metric in metrics]
    rows += [compare("call", "buffers", LOSS, [0.1, 0.2], []), compare("call", "now", "page_load_s", [], [])]
    rows += [replace(compare("video", "now", RTT, [3e4, 3.1e4], [1.5e4, 9e4]), line="the-line-of-the-moon")]
    rows += [replace(compare("video", "now", RTT, [], [1.5e4, 9e4]), line="lte")]
    shown = io.StringIO()
    Console(file=shown, width=80).print(verified_table(rows))
    text = shown.getvalue()
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "median RTT ±20 %" in text
    assert "RTT lte ±20 %" in text
    assert "video with now: only the lines send data over lte." in list(verified_sentences(rows))
    assert "a delay from one host to the other needs one clock" in " ".join(verified_sentences(rows))


def test_each_line_that_carries_data_has_its_own_rtt() -> None:
    """The median of all samples lies between two modes, and jumps from one to the other."""
    plan = plan_of(LINES, "transport=mptcp")
    tables = fake_tables(plan)
    first, second = ({"remote_address": path.client_address} for path in plan.flows[0].paths)
    sampled = tables["subflows"].with_columns(
        rtt_us=pl.when(**first).then(20_000).otherwise(60_000).cast(pl.Int64)
    )
    rtts_us = path_rtts_us(plan, {**tables, "subflows": sampled})
    assert rtts_us == {"home-vps": 20_000, "home-vps#2": 60_000}
    one_address = sampled.with_columns(local_address=pl.lit(plan.flows[0].paths[0].server_address))
    assert path_rtts_us(plan, {**tables, "subflows": one_address}) == rtts_us
    idle = sampled.with_columns(sent_bytes=pl.when(**second).then(1000).otherwise("sent_bytes"))
    assert path_rtts_us(plan, {**tables, "subflows": idle}) == {"home-vps": 20_000}


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> tuple[RealLines, list[str]]:
    """Hosts that note what happens to them; those of ssh named `vps` refuse changes."""
    done: list[str] = []

    def apply(host: RemoteHost, _changes: object) -> Applied:
        done.append(f"apply {host.name}")
        if host.name == "vps":
            raise MachineError("no bbr there")
        return Applied(host.name, ("changed",))

    def undo(host: RemoteHost, *, preview: bool = False) -> Applied:
        done.append(f"{'preview' if preview else 'undo'} {host.name}")
        return Applied(host.name, ("changed",) if preview and host.name == "vps" else ())

    monkeypatch.setattr(verifying, "apply", apply)
    monkeypatch.setattr(verifying, "undo", undo)
    situation = Situation.of(parse(LINES, "lines", ()))
    request: Any = None
    hosts = {name: RemoteHost(name, name) for name in ("home", "vps")}
    return RealLines(situation, request, hosts, lambda _: request), done


def test_a_change_that_one_host_refuses_is_taken_back_on_both(real: tuple[RealLines, list[str]]) -> None:
    lines, done = real
    (bbr,) = (candidate for candidate in candidates(lines.situation) if candidate.name == "bbr")
    with pytest.raises(MachineError, match="no bbr there"), verifying._changed(bbr, lines, print):
        raise AssertionError("the trials began")
    assert done == ["apply home", "apply vps", "undo vps", "undo home"]


def test_hosts_with_changes_of_plait_are_refused(real: tuple[RealLines, list[str]]) -> None:
    """`now` would be the settings that an earlier --apply left."""
    lines, _ = real
    with pytest.raises(MachineError, match=r"vps has settings that plait changed.*plait undo vps"):
        lines.refuse_changed()


def test_a_change_of_an_unknown_interface_is_refused_before_it_begins(
    real: tuple[RealLines, list[str]],
) -> None:
    lines, done = real
    (shaper,) = (candidate for candidate in candidates(lines.situation) if candidate.name == "shape-cable")
    with pytest.raises(RequestError, match="--interfaces"), verifying._changed(shaper, lines, print):
        raise AssertionError("the trials began")
    assert done == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"verify": True}, "--verify needs the real hosts; name their file with --hosts"),
        ({"verify": True, "apply": "home"}, "--verify and --apply exclude each other"),
        ({"hosts": Path("hosts.yaml")}, "--hosts is for --verify and --apply"),
        ({"verify": True, "hosts": Path("hosts.yaml"), "change": "bbbr"}, "there is no change 'bbbr'"),
    ],
)
def test_options_of_verify_are_checked_before_the_search(
    options: dict[str, Any], problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.yaml").write_text(LINES, encoding="utf-8")
    Path("hosts.yaml").write_text(HOSTS, encoding="utf-8")
    with pytest.raises(RequestError, match=problem):
        command("lines.yaml", **options)


def test_now_alone_is_verified_without_a_change(real: tuple[RealLines, list[str]]) -> None:
    lines, done = real
    with verifying._changed(NOW, replace(lines), print):
        pass
    assert done == []
