"""Paths of observed connections: names, base RTTs, and both directions; and tables that still grow."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from fake_tables import make_tables
from plait.cli import observe
from plait.dataset.model import FLOWS, PROGRAM_FLOWS, SUBFLOWS
from plait.dataset.study_file import KernelFacts
from plait.errors import MachineError
from plait.observe import watching
from plait.observe.captures.engine import NOT_VISIBLE
from plait.observe.live import LiveRates
from plait.observe.remote import HostsObserver
from plait.observe.seen import path_names, with_paths
from plait.observe.study import disabled_mptcp
from plait.observe.watching import Selection, observing_plan
from plait.observe.words import _fastest

if TYPE_CHECKING:
    from pathlib import Path

INTERFACES = {"192.0.2.1": "cable", "198.51.100.1": "lte"}


@pytest.mark.parametrize(
    ("pairs", "names"),
    [
        ([("192.0.2.1", "s1"), ("198.51.100.1", "s1")], ["cable", "lte"]),
        ([("192.0.2.1", "s1"), ("192.0.2.1", "s2")], ["s1", "s2"]),
        (
            [("192.0.2.1", "s1"), ("198.51.100.1", "s1"), ("198.51.100.1", "s2")],
            ["cable", "lte s1", "lte s2"],
        ),
        ([("203.0.113.9", "s1")], ["203.0.113.9"]),
    ],
)
def test_a_path_is_called_by_what_sets_it_apart(pairs: list[tuple[str, str]], names: list[str]) -> None:
    assert path_names(pairs, INTERFACES) == names


def subflow_rows(t_us: int, carried: tuple[int, int]) -> pl.DataFrame:
    rows = [
        {"t_us": t_us, "flow": 0, "side": "client", "subflow": number, "local_address": local}
        | {
            "remote_address": "203.0.113.7",
            "remote_port": 443,
            "min_rtt_us": rtt,
            "rtt_us": 2 * rtt,
            "received_bytes": count,
            "acked_bytes": 1,
        }
        for number, (local, rtt, count) in enumerate(zip(INTERFACES, (9_000, 40_000), carried, strict=True))
    ]
    return pl.DataFrame(rows, schema_overrides=dict(SUBFLOWS)).select(
        pl.col(name) if name in rows[0] else pl.lit(None, dtype=kind).alias(name)
        for name, kind in SUBFLOWS.items()
    )


def test_each_other_end_has_the_pairs_of_addresses_between_which_subflows_were_seen() -> None:
    tables = {
        "subflows": subflow_rows(0, (0, 0)),
        "flows": pl.DataFrame(
            [{"flow": 0, "transport": "mptcp"}], schema={"flow": FLOWS["flow"], "transport": pl.String}
        ),
        "program_flows": pl.DataFrame(
            [{"flow": 0, "client": "home", "server": "203.0.113.7"}],
            schema={name: PROGRAM_FLOWS[name] for name in ("flow", "client", "server")},
        ),
    }
    plan = with_paths(observing_plan("home", Selection(), 10, 1), tables, INTERFACES)
    assert [node.name for node in plan.network.namespaces] == ["home", "203.0.113.7"]
    there, back = plan.peers
    assert (there.source, there.target, there.transport) == ("home", "203.0.113.7", "mptcp")
    assert [(path.name, path.base_rtt_us, path.rate_bps) for path in there.paths] == [
        ("cable", 9000.0, None),
        ("lte", 40000.0, None),
    ]
    assert [path.client_address for path in back.paths] == ["203.0.113.7"] * 2


def test_a_growing_table_shows_what_connections_carry_now(tmp_path: Path) -> None:
    """The stream of the agent has no end yet, and may stop within a batch."""
    file = tmp_path / "subflows.arrow"
    streams = []
    for t_us, carried in ((1_000_000, (0, 0)), (2_000_000, (3_000_000, 1_000_000))):
        subflow_rows(t_us, carried).write_ipc_stream(file, compat_level=pl.CompatLevel.oldest())
        streams.append(file.read_bytes().removesuffix(b"\xff\xff\xff\xff\x00\x00\x00\x00"))
    header = 8 + int.from_bytes(streams[0][4:8], "little")
    file.unlink()
    live = LiveRates(tmp_path)
    assert live.rates() is None, "the agent has not begun"
    file.write_bytes(streams[0])
    assert live.rates() == [], "one sample shows no rate"
    file.write_bytes(streams[0] + streams[1][header : header + 100])
    assert live.rates() is None, "the batch is not complete"
    file.write_bytes(streams[0] + streams[1][header:])
    (now,) = live.rates() or ()
    assert (now.peer, now.bits_per_s, now.rtt_ms) == ("203.0.113.7:443", 32e6, 18.0)
    assert [share for _, share in now.shares] == [0.75, 0.25]
    assert live.rates() is None, "nothing new"


def test_the_name_of_a_program_cannot_control_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another user's program chooses its name."""
    monkeypatch.setattr(
        "plait.observe.words.sentences", lambda _: iter(["  \x1b]0;owned\x07sh:443: 1 Mbit/s"])
    )
    observe._print_summary(tmp_path)
    assert "\x1b" not in capsys.readouterr().out


def test_captures_say_what_they_are_instead_of_a_linux_version() -> None:
    assert KernelFacts(version="6.12.117").title == "Linux 6.12.117"
    assert KernelFacts(version=NOT_VISIBLE).title == "kernel not visible in captures"
    assert KernelFacts().title is None


def test_a_kernel_without_mptcp_is_refused_with_what_would_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(watching, "_MPTCP", tmp_path / "mptcp")
    with pytest.raises(MachineError, match=r"has no MPTCP.*Linux 5\.6 or later"):
        watching.Observer(threading.Event())
    session: Any = SimpleNamespace(facts={"kernel": "5.4.0"})
    with pytest.raises(MachineError, match=r"on vps: its kernel \(5\.4\.0\) has no MPTCP"):
        HostsObserver({"vps": session}, Selection(), threading.Event())


def test_a_host_on_which_mptcp_is_off_is_named() -> None:
    console = "vps: plait-agent: MPTCP is off on vps, so new connections use TCP\nplait-agent: another line\n"
    assert disabled_mptcp(console) == ["MPTCP is off on vps, so new connections use TCP."]


def test_a_connection_whose_bytes_the_kernel_does_not_report_is_not_said_to_be_silent() -> None:
    """Linux before 6.5 does not report the bytes of a whole connection of MPTCP."""
    rows = [
        {"flow": 0, "name": "a"},
        {"flow": 1, "name": "b", "received_bytes": 0, "start_us": 5, "end_us": 5},
    ]
    tables = make_tables({"flows": rows, "program_flows": [], "subflows": []})
    trial: Any = SimpleNamespace(plan=observing_plan("home", Selection(), 10, 1), tables=tables)
    assert list(_fastest(trial)) == [
        "  1 connection carried no data in this time",
        "  1 connection: the kernel did not report how much data arrived",
    ]
