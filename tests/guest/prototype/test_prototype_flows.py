"""Prototype flows run over the guest's sockets: they fill their paths, repeat, and fail alone with the line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from conftest import run_plan
from plait.errors import TrialError
from plait.explain import explain_trial
from plait.explain.cause import Cause
from plait.plan.resolve import resolve
from plait.scenario.read.load import load

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Ran
    from plait.engine.virtual.trial import VirtualEngine

pytestmark = pytest.mark.guest

SWALLOWS = """\
while True:
            try:
                len(paths)
            except BaseException:
                pass"""
NETWORK = """\
title: Prototype
network: {hosts: [h1, h2], links: {h1-h2#1: {rate: 4mbit, delay: 5ms}, h1-h2#2: {rate: 2mbit, delay: 20ms}}}
traffic:
  - prototype: """


def run(engine: VirtualEngine, folder: Path, flow: str, name: str = "job") -> Ran:
    scenario = folder / "scenario.yaml"
    scenario.write_text(NETWORK + flow, encoding="utf-8")
    job = folder / name
    job.mkdir()
    return run_plan(engine, resolve(load(scenario), 1), job)


def test_a_transfer_uses_both_paths_and_repeats_to_the_byte(engine: VirtualEngine, tmp_path: Path) -> None:
    flow = "{from: h1, to: h2, bytes: 1MB, scheduler: minrtt}"
    first, second = (run(engine, tmp_path, flow, name) for name in ("a", "b"))
    row = first.tables["flows"].row(0, named=True)
    goodput = row["received_bytes"] * 8e6 / (row["end_us"] - row["start_us"])
    assert 0.75 * 6e6 < goodput < 6e6
    sent = (
        first.tables["subflows"]
        .filter(pl.col("side") == "client")
        .group_by("subflow")
        .agg(pl.max("sent_bytes"))
    )
    assert sent.height == 2
    assert sent["sent_bytes"].min() > 200_000
    for name in ("flows", "subflows", "connections", "events"):
        assert first.tables[name].equals(second.tables[name])


def test_two_paths_to_one_address_of_the_server_carry_a_transfer(
    engine: VirtualEngine, tmp_path: Path
) -> None:
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(
        "title: One server address\n"
        "network: {hosts: [h1, h2], routers: [r], links: {h1-r#1: {rate: 4mbit}, h1-r#2: {rate: 4mbit}, r-h2: {}}}\n"
        "traffic:\n  - prototype: {from: h1, to: h2, bytes: 500KB}\n",
        encoding="utf-8",
    )
    (tmp_path / "job").mkdir()
    ran = run_plan(engine, resolve(load(scenario), 1), tmp_path / "job")
    row = ran.tables["flows"].row(0, named=True)
    assert (row["received_bytes"], row["completed"]) == (500_000, True)
    assert ran.tables["subflows"]["subflow"].n_unique() == 2


@pytest.mark.parametrize(
    ("settings", "first"),
    [("bytes: 4MB", None), ("bytes: 500KB, receive_window: 8KB", Cause.RECEIVE_WINDOW)],
)
def test_links_that_are_full_and_a_small_window_are_told_apart(
    engine: VirtualEngine, tmp_path: Path, settings: str, first: Cause | None
) -> None:
    ran = run(engine, tmp_path, f"{{from: h1, to: h2, {settings}}}")
    (explanation,) = explain_trial(ran.plan, ran.tables)
    shares = {share.cause: share.time for share in explanation.shares}
    assert explanation.first == first
    assert shares.get(Cause.NOT_KNOWN, 0) < 0.05


WRONG = {
    "return paths[7]": r"mine\.py:7: pick\(\) of Mine raised IndexError",
    "raise SystemExit(0)": r"mine\.py:7: pick\(\) of Mine raised SystemExit: 0",
    "time.sleep(1000)": r"mine\.py:7: pick\(\) of Mine raised TimeoutError: it did not return for 10 s",
    "paths[0].cwnd = 'many'": r"mine\.py:6: pick\(\) of Mine changed a path or a segment",
    "self.kept = [*getattr(self, 'kept', ()), bytearray(1 << 22)]": r"mine\.py:7: pick\(\) of Mine raised MemoryError",
    SWALLOWS: r"mine\.py:\d+: pick\(\) executed more than 100000 lines",
}


@pytest.mark.parametrize("body", WRONG, ids=lambda body: body.split("\n")[0])
def test_a_scheduler_of_the_user_fails_with_its_file_and_line(
    engine: VirtualEngine, tmp_path: Path, body: str
) -> None:
    (tmp_path / "mine.py").write_text(
        "from plait.prototype import Scheduler\nimport time\n\n\nclass Mine(Scheduler):\n"
        f"    def pick(self, paths, segment):\n        {body}\n        return paths[0]\n",
        encoding="utf-8",
    )
    with pytest.raises(TrialError, match=WRONG[body]):
        run(engine, tmp_path, "{from: h1, to: h2, bytes: 1MB, scheduler: 'mine.py:Mine'}")
