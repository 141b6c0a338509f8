"""What every engine must do, whatever runs the trials. A new engine adds one line to ENGINES."""

from __future__ import annotations

import atexit
import json
import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from fake_engine import FakeEngine
from plait.dataset.convert import convert
from plait.dataset.digest import trial_digest
from plait.engine.engine import Engine, Interrupted, Job
from plait.engine.factory import ENGINES as REGISTRY
from plait.engine.factory import engines_with, lacks_of, make_engine
from plait.engine.request import EngineRequest
from plait.engine.support import lacking, uses
from plait.errors import MachineError, TrialError
from plait.parts import EngineName
from plait.plan.identity import trial_identity
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand
from real_hosts import SSHD, PlantedLine, RealHosts
from scenario_samples import ONE_LINE

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.plan.model.plan import Plan


def remote_engine() -> Engine:
    """Return the engine `remote`, with two hosts that exist until the process ends."""
    folder = Path(tempfile.mkdtemp())
    shaped = ("tbf rate 10mbit burst 5k limit 64k",)
    hosts = RealHosts(folder, [PlantedLine("a-b", shaped, shaped)])
    hosts.__enter__()
    atexit.register(hosts.__exit__)
    text = hosts.hosts_yaml().read_text(encoding="utf-8").replace("  h1:", "  a:").replace("  h2:", "  b:")
    (folder / "ab.yaml").write_text(text, encoding="utf-8")
    return make_engine(
        "remote", EngineRequest(hosts=folder / "ab.yaml", ssh_config=hosts.direct_ssh_config())
    )


def host_engine() -> Engine:
    """Return the engine `host`; skip where this machine lacks what the plans below need."""
    engine = make_engine("host")
    try:
        engine.unsupported(plan_of())
    except MachineError as error:
        pytest.skip(f"NOT TESTED HERE, but in a guest (see docs/limitations.md): {error}")
    return engine


ENGINES: dict[str, Callable[[], Engine]] = {
    "fake": FakeEngine,
    "virtual": lambda: make_engine("virtual"),
    "machine": lambda: make_engine("machine"),
    "host": host_engine,
    "remote": remote_engine,
}
_NEEDS_ROOT = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(SSHD).exists(),
    reason="needs root for hosts of its own, and openssh-server; see docs/limitations.md",
)
ON_A_KERNEL = [
    pytest.param("virtual", marks=pytest.mark.guest),
    pytest.param("machine", marks=pytest.mark.guest),
    "host",
    pytest.param("remote", marks=[pytest.mark.users, _NEEDS_ROOT]),
]

RATE_BPS = 10e6


@pytest.fixture(scope="module", params=["fake", *ON_A_KERNEL])
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]()


@pytest.fixture(scope="module")
def real_engine(engine: Engine) -> Engine:
    """Return an engine with a kernel.

    With parameters of its own it would be another engine, whose trial boots again; so it skips the fake one.
    """
    if engine.name == "fake":
        pytest.skip("only a kernel carries or refuses anything")
    return engine


@pytest.fixture(scope="module")
def building_engine(real_engine: Engine) -> Engine:
    """Return an engine that builds the nodes of a plan, with their settings."""
    if real_engine.name == "remote":
        pytest.skip("real hosts keep their settings; tests/remote has those of --configure")
    return real_engine


def plan_of(text: str = ONE_LINE, seed: int = 1) -> Plan:
    return resolve(expand(parse(text, "line.yaml"))[0].scenario, seed)


def run(engine: Engine, plan: Plan, folder: Path) -> dict[str, pl.DataFrame]:
    folder.mkdir()
    engine.execute(Job(plan, {}, folder))
    return convert(folder / "data", folder / "tables")


def test_the_registry_and_the_scenario_know_the_same_engines() -> None:
    assert set(EngineName.__args__) == set(REGISTRY)
    assert set(REGISTRY) <= set(ENGINES), "each engine passes these tests"


def test_an_engine_states_what_it_is(engine: Engine) -> None:
    identity = engine.identity()
    assert identity.engine == engine.name
    assert engine.clock in ("virtual", "real")
    assert engine.max_jobs is None or engine.max_jobs >= 1
    if engine.clock == "real":
        assert engine.max_jobs == 1, "trials at once disturb each other"
        assert not engine.repeatable, "no clock runs alike twice"
    assert identity == engine.identity()


def test_trials_of_different_engines_have_different_identities(engine: Engine) -> None:
    plan = plan_of()
    ours = engine.identity()
    assert trial_identity(plan, *ours.parts) == trial_identity(plan, *engine.identity().parts)
    if ours.engine != "virtual":
        assert trial_identity(plan, *ours.parts) != trial_identity(plan, ours.kernel, ours.agent_sha256)


def test_the_identity_of_a_virtual_trial_is_as_ever() -> None:
    """Stores of earlier versions hold these."""
    identity = FakeEngine().identity().__class__("virtual", "k", "6.12", "a")
    assert identity.parts == ("k", "a")


@dataclass(frozen=True)
class Trial:
    """The trial of ONE_LINE with seed 1 that tests of an engine share."""

    folder: Path
    tables: dict[str, pl.DataFrame]


@pytest.fixture(scope="module")
def trial(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    folder = tmp_path_factory.mktemp("shared") / "job"
    return Trial(folder, run(engine, plan_of(), folder))


def test_a_trial_leaves_its_tables_and_its_status(engine: Engine, trial: Trial) -> None:
    tables = trial.tables
    assert {"flows", "events", "counters"} <= set(tables)
    assert tables["flows"]["received_bytes"][0] > 0
    if engine.clock == "virtual":  # a busy machine may deliver the last bytes after the trial's end
        assert tables["flows"]["completed"].to_list() == [True]
    status = json.loads((trial.folder / "status.json").read_text())
    assert status["ok"] is True
    assert status["virtual_us"] >= 2_000_000


def test_a_repeatable_engine_gives_the_same_bytes_for_one_seed_only(
    engine: Engine, trial: Trial, tmp_path: Path
) -> None:
    first = trial_digest(trial.tables)
    again = trial_digest(run(engine, plan_of(), tmp_path / "again"))
    other = trial_digest(run(engine, plan_of(seed=2), tmp_path / "other"))
    assert (again == first) is engine.repeatable
    assert other != first


def test_a_line_carries_its_rate_and_not_more(real_engine: Engine, trial: Trial) -> None:
    flow = trial.tables["flows"].row(0, named=True)
    received_bits = flow["received_bytes"] * 8
    assert received_bits < RATE_BPS * (flow["end_us"] - flow["start_us"]) / 1e6
    if real_engine.clock == "virtual":  # a busy machine can slow a line in real time
        assert received_bits > 0.85 * RATE_BPS * 2


SATURATED = """\
title: More than the processor of a slow machine carries
network:
  hosts: [a, b]
  links:
    a-b: {rate: 200mbit, delay: 1ms}
machine: {nanoseconds_per_instruction: 32}
transport: tcp
traffic:
"""
ROUNDS = 3
SATURATED += "".join(
    f"  - bulk: {{from: {ends[0]}, to: {ends[1]}, start: {2 * number}s, duration: 300ms}}\n"
    for number in range(ROUNDS)
    for ends in ("ab", "ab", "ba")
)


@pytest.mark.guest
def test_a_machine_without_time_left_counts_what_arrived_in_the_time_that_it_reports(tmp_path: Path) -> None:
    """Whether the agent wakes up late depends on each of its instructions: therefore three rounds of three flows."""
    plan = plan_of(SATURATED)
    tables = run(make_engine("machine"), plan, tmp_path / "job")
    rows = tables["flows"].sort("flow").to_dicts()
    late_us = []
    for flow, row in zip(plan.flows, rows, strict=True):
        assert row["start_us"] >= flow.start_us, "no flow starts before its time"
        late_us.append(row["end_us"] - flow.start_us - 300_000)
    for number in range(ROUNDS):
        ours = rows[3 * number : 3 * number + 3]
        lasted_us = max(row["end_us"] for row in ours) - min(row["start_us"] for row in ours)
        arrived = tables["connections"].filter(pl.col("flow").is_in([row["flow"] for row in ours]))
        arrived_bytes = (
            arrived.group_by("flow", "side").agg(pl.col("received_bytes").max())["received_bytes"].sum()
        )
        assert 0 < arrived_bytes * 8e6 < 0.6 * 2 * 200e6 * lasted_us, (
            "the processor is the bottleneck, or this proves nothing"
        )
    assert min(late_us) >= 0, "no flow ends before its time"
    assert max(late_us) > 100_000, "the agent ends a flow late, and says so"


def test_a_trial_ends_at_once_when_the_user_stops_the_study(engine: Engine, tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Interrupted):
        engine.execute(Job(plan_of(ONE_LINE.replace("2s", "500s")), {}, tmp_path, stop))


def test_a_trial_fails_with_what_its_kernel_refused(building_engine: Engine, tmp_path: Path) -> None:
    plan = plan_of()
    first, *others = plan.network.namespaces
    wrong = first.model_copy(update={"sysctls": (("net/ipv4/no_such_setting", "1"),)})
    network = plan.network.model_copy(update={"namespaces": (wrong, *others)})
    with pytest.raises(TrialError, match="no_such_setting"):
        building_engine.execute(Job(plan.model_copy(update={"network": network}), {}, tmp_path))


def test_an_engine_reports_the_features_that_it_lacks(engine: Engine) -> None:
    """Of what a plan uses, `unsupported` names at least what the registry says that the engine never has."""
    text = ONE_LINE.replace("loss: 0.2%", "aqm: {red: {points: {5pkt: 0%, 50pkt: 10%}}}")
    for plan in (plan_of(), plan_of(text + "pause: before\n")):
        refused = {missing.use for missing in engine.unsupported(plan)}
        lacks = lacks_of(engine.name) if engine.name in REGISTRY else {}
        assert {missing.use for missing in lacking(plan, lacks)} <= refused <= set(uses(plan))


def test_the_features_that_an_engine_lacks_are_offered_by_another() -> None:
    for name in REGISTRY:
        for feature in lacks_of(name):
            assert [other for other in engines_with(feature) if other != name], feature
