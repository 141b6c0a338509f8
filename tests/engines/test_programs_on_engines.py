"""Programs and prototypes do the same on every engine that runs them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pytest

from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.engine.engine import Job
from plait.engine.factory import make_engine
from plait.errors import TrialError
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.read.load import load

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.engine import Engine

pytestmark = pytest.mark.guest

NETWORK = """\
title: Programs
network: {hosts: [h1, h2], links: {h1-h2: {rate: 10mbit, delay: 5ms}, h1-h2#2: {rate: 10mbit, delay: 5ms}}}
"""
PROGRAMS = """\
transport: mptcp
programs:
  - {name: server, node: h2, run: [iperf3, -s, -1], ready: {tcp: 5201}}
  - {name: client, node: h1, run: [iperf3, -c, h2, -n, 3M, --json], after: server, wait: true, result: iperf3}
  - name: one
    node: h1
    run: 'cat given; pwd; getent hosts h2-eth1; python3 -c "import json; print(json.dumps([1]))"; echo left > here;
      head -c 8 /dev/urandom | od -An -tx1'
    files: {given: 'a text '}
    collect: here
    wait: true
"""
OUTSIDE = """\
programs:
  - name: one
    node: h1
    run: 'touch /usr/new; mount -o remount,rw /; touch /usr/new; cat /no/such; exit 3'
    wait: true
"""


@pytest.fixture(scope="module", params=["virtual", "machine"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return make_engine(request.param)


@dataclass(frozen=True)
class Trial:
    programs: Path
    tables: dict[str, pl.DataFrame]


def run(engine: Engine, text: str, folder: Path) -> Trial:
    folder.mkdir()
    plan = resolve(parse(NETWORK + text, "t.yaml"), 1)
    assert not engine.unsupported(plan)
    engine.execute(Job(plan, {}, folder))
    return Trial(folder / "programs", convert(folder / "data", folder / "tables"))


@pytest.fixture(scope="module")
def trials(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[Trial, Trial]:
    """Return two trials of PROGRAMS with one seed."""
    folder = tmp_path_factory.mktemp("programs")
    return run(engine, PROGRAMS, folder / "a"), run(engine, PROGRAMS, folder / "b")


def test_a_program_has_its_files_and_repeats_to_the_byte(trials: tuple[Trial, Trial]) -> None:
    first, second = trials
    log = (first.programs / "one.log").read_text()
    assert log.splitlines()[:3] == ["a text /tmp/one", "10.0.1.2        h2-eth1", "[1]"]
    assert (first.programs / "one/here").read_text() == "left\n"
    assert (second.programs / "one.log").read_text() == log, "also what is random"
    assert first.tables["programs"].filter(program="one")["exit_code"].to_list() == [0]
    assert trial_digest(first.tables) == trial_digest(second.tables)


def test_the_sockets_of_a_program_become_mptcp(trials: tuple[Trial, Trial]) -> None:
    programs, tables = trials[0].programs, trials[0].tables
    report = json.loads((programs / "client.log").read_text())
    assert 12e6 < report["end"]["sum_received"]["bits_per_second"] < 20e6, "both paths of 10 Mbit/s"
    assert tables["program_figures"].height > 0
    assert tables["subflows"].filter(pl.col("sent_bytes") > 100_000)["subflow"].n_unique() == 2


def test_a_program_reaches_nothing_outside_and_fails_with_its_log(engine: Engine, tmp_path: Path) -> None:
    plan = resolve(parse(NETWORK + OUTSIDE, "t.yaml"), 1)
    with pytest.raises(TrialError) as failed:
        engine.execute(Job(plan, {}, tmp_path))
    message = str(failed.value)
    assert "ended with exit code 3" in message
    assert "cannot touch '/usr/new': Read-only file system" in message
    assert shutil.which("new", path="/usr") is None
    if engine.name == "machine":
        assert "a machine has copies of only those files" in message


def test_a_prototype_fills_its_paths(engine: Engine, tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.yaml"
    flow = "traffic: [prototype: {from: h1, to: h2, bytes: 500KB, scheduler: minrtt}]\n"
    scenario.write_text(NETWORK + flow, encoding="utf-8")
    folder = tmp_path / "job"
    folder.mkdir()
    engine.execute(Job(resolve(load(scenario), 1), {}, folder))
    tables = convert(folder / "data", folder / "tables")
    row = tables["flows"].row(0, named=True)
    assert (row["received_bytes"], row["completed"]) == (500_000, True)
    assert row["received_bytes"] * 8e6 / (row["end_us"] - row["start_us"]) > 0.6 * 20e6
    assert tables["subflows"]["subflow"].n_unique() == 2
