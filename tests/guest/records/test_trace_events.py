"""Trace events of a trial: they agree with the tables, and change none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from typer.testing import CliRunner

from plait import kernel as kernels
from plait.cli import app
from plait.engine.virtual.tracing import require_events
from plait.errors import RequestError, ScenarioError
from result_folders import ONLY_TRIALS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.guest

TEXT = """\
title: A transfer over two paths
network:
  hosts: [a, b]
  links:
    a-b: {rate: 5mbit, delay: 10ms}
    a-b#2: {rate: 5mbit, delay: 20ms}
traffic:
  - transfer: {from: a, to: b, bytes: 300KB}
"""


@pytest.fixture
def traced() -> str:
    """Return the name of a built kernel that has trace events."""
    for kernel, _ in kernels.list_built():
        if kernel.engine != "virtual":
            continue
        try:
            require_events(kernel)
        except RequestError:
            continue
        return kernel.identity
    pytest.skip("no kernel with trace events is in the cache; see docs/limitations.md")


def trial(folder: Path, *options: str) -> dict[str, pl.DataFrame]:
    folder.mkdir()
    (folder / "x.yaml").write_text(TEXT, encoding="utf-8")
    out = folder / "out"
    arguments = [
        "run",
        str(folder / "x.yaml"),
        "--out",
        str(out),
        "--repeat",
        "1",
        "--fresh",
        *ONLY_TRIALS,
    ]
    result = CliRunner().invoke(app, [*arguments, *options], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    assert result.return_value == 0, result.output
    place = next((out / "trials").glob("*/000"))
    return {path.stem: pl.read_parquet(path) for path in place.glob("*.parquet")}


def assert_events_agree(tables: dict[str, pl.DataFrame]) -> None:
    flow, trace = tables["flows"].row(0, named=True), tables["trace"]
    assert trace["t_us"].is_sorted()
    data = trace.filter(pl.col("event") == "mptcp_sendmsg_frag")
    assert flow["connected_us"] <= data["t_us"][0] < flow["first_byte_us"]
    assert data["t_us"][-1] < flow["end_us"]
    assert set(trace["event"]) >= {"mptcp_sendmsg_frag", "ack_update_msk"}


def test_the_events_of_a_trial_change_no_table_and_repeat(traced: str, tmp_path: Path) -> None:
    plain = trial(tmp_path / "plain", "--kernel", traced)
    first, second = (
        trial(tmp_path / name, "--kernel", traced, "--set", "monitors.tracepoints=['mptcp:*']")
        for name in ("first", "second")
    )
    assert set(first) == {*plain, "trace"}
    for name, table in plain.items():
        assert table.equals(first[name]), name
    assert first["trace"].equals(second["trace"])
    assert_events_agree(first)


def test_an_unknown_event_is_refused_with_those_that_the_kernel_has(traced: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"no trace event 'mptcp:get_send'.*mptcp:mptcp_subflow_get_send"):
        trial(tmp_path / "x", "--kernel", traced, "--set", "monitors.tracepoints=['mptcp:get_send']")


def test_the_default_kernel_is_refused_with_the_command_that_builds_one(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="kernel build --tree DIR --tracing"):
        trial(tmp_path / "x", "--set", "monitors.tracepoints=['mptcp:*']")


def test_a_stock_kernel_has_trace_events(tmp_path: Path) -> None:
    assert_events_agree(
        trial(tmp_path / "x", "--engine", "machine", "--set", "monitors.tracepoints=['mptcp:*']")
    )
