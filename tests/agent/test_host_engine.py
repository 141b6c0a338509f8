"""The engine `host` runs plans on this machine's kernel, says why it cannot, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from agent_process import is_gone, veth_plan, wait_for

import plait
from executing import descendants
from fake_plans import fake_plan
from plait.dataset.convert import convert
from plait.engine.engine import Interrupted, Job
from plait.engine.factory import make_engine
from plait.engine.host import engine as host_engine
from plait.engine.host import probe
from plait.errors import MachineError, TrialError
from plait.plan.identity import plan_bytes
from plait.plan.model.programs import Program

if TYPE_CHECKING:
    from plait.engine.engine import Engine
    from plait.plan.model.plan import Plan

LONG_US = 60_000_000
_HOLD = """
import sys
from pathlib import Path
from plait.engine.engine import Job
from plait.engine.factory import make_engine
from plait.plan.model.plan import Plan
make_engine("host").execute(Job(Plan.model_validate_json(Path(sys.argv[1]).read_bytes()), {}, Path(sys.argv[2])))
"""


@pytest.fixture
def engine() -> Engine:
    """Return the engine; skip where this machine forbids namespaces."""
    lack = probe.Prober().lack(probe.NAMESPACES)
    if lack is not None:
        pytest.skip(str(lack))
    return make_engine("host")


def test_a_trial_has_its_data_and_the_measurements_of_the_machine(engine: Engine, tmp_path: Path) -> None:
    notes: dict[str, object] = {}
    excluded: list[str] = []
    plan = veth_plan(duration_us=2_000_000)  # a busy machine needs time to connect
    engine.execute(Job(plan, {}, tmp_path, note=notes.__setitem__, exclude=excluded.append))
    flow = convert(tmp_path / "data", tmp_path / "tables")["flows"].row(0, named=True)
    assert flow["completed"]
    assert isinstance(notes["timers"], int)
    assert notes["timers"] > 0
    assert isinstance(notes["burst_before_bps"], int)
    assert notes["burst_before_bps"] > 0
    late = notes["lateness_max_us"]
    assert isinstance(late, int)
    assert (late <= 20_000) or excluded, "a trial with late timers must be excluded"
    assert not (tmp_path / "burst").exists()


def test_a_burst_that_does_not_connect_is_tried_again(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = probe.veth_flow("tcp", 100_000)
    # The server listens on loopback in b, so the client asks loopback in a, where nothing listens.
    lost = flow.model_copy(update={"server": flow.server.model_copy(update={"address": "127.0.0.1"})})
    flows = chain([lost], repeat(probe.veth_flow("tcp", 1_000_000)))
    monkeypatch.setattr(host_engine, "veth_flow", lambda *_: next(flows))
    notes: dict[str, object] = {}
    engine.execute(Job(veth_plan(), {}, tmp_path, note=notes.__setitem__))
    assert notes["burst_before_bps"]
    flows = repeat(lost)
    (tmp_path / "again").mkdir()
    with pytest.raises(TrialError, match=r"3 bursts failed, the last one because .*ECONNREFUSED"):
        engine.execute(Job(veth_plan(), {}, tmp_path / "again"))


def test_an_interrupt_ends_the_trial_at_once(engine: Engine, tmp_path: Path) -> None:
    stop = threading.Event()
    before = descendants(os.getpid())
    with pytest.raises(Interrupted):
        engine.execute(
            Job(veth_plan(duration_us=LONG_US), {}, tmp_path, stop, lambda us: us > 0 and stop.set())
        )
    assert descendants(os.getpid()) == before


@pytest.mark.usefixtures("engine")
def test_nothing_outlives_plait_after_kill_9(tmp_path: Path) -> None:
    process, children = _held(veth_plan(duration_us=LONG_US), tmp_path)
    process.kill()
    process.wait(300)
    wait_for(lambda: all(is_gone(pid) for pid in children))


@pytest.mark.usefixtures("engine")
def test_a_killed_agent_fails_its_trial_and_leaves_nothing(tmp_path: Path) -> None:
    process, children = _held(veth_plan(duration_us=LONG_US), tmp_path)
    os.kill(children[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=300)
    assert "ended without a report" in errors.decode()
    wait_for(lambda: all(is_gone(pid) for pid in children))


def _held(plan: Plan, tmp_path: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a process that runs `plan`; return it and its descendants once the trial has begun."""
    (tmp_path / "given.json").write_bytes(plan_bytes(plan))
    folder = tmp_path / "job"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path / "given.json"), str(folder)],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(plait.__file__).parents[1])},
    )
    progress = folder / "progress"
    wait_for(lambda: progress.exists() and progress.stat().st_size > 0)
    children = descendants(process.pid)
    assert len(children) == 2
    return process, children


def test_what_the_engine_never_does_is_unsupported_with_the_reason() -> None:
    program = Program.model_validate({"name": "server", "netns": "h1", "argv": ("true",), "start_us": 0})
    plan = fake_plan().model_copy(update={"programs": (program,), "pause": ("before",)})
    missing = make_engine("host").unsupported(plan)
    assert [(lack.use.feature, lack.use.name) for lack in missing] == [("programs", "server"), ("pauses", "")]
    assert "without a guest around them" in missing[0].reason


def test_a_forbidden_user_namespace_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel/apparmor_restrict_unprivileged_userns").write_text("1\n")
    monkeypatch.setattr(probe, "_PROC", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    def fail(*_: object) -> None:
        raise TrialError("network: adding veth pair e0 in a: EPERM (Operation not permitted)")

    monkeypatch.setattr(probe.agent, "run", fail)
    with pytest.raises(MachineError) as refused:
        make_engine("host").unsupported(fake_plan())
    assert "kernel.apparmor_restrict_unprivileged_userns is 1" in str(refused.value)
    assert "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" in str(refused.value)
    assert refused.value.exit_code == 3


def test_a_setting_of_the_machine_that_differs_is_refused_with_its_command(
    engine: Engine,
) -> None:
    sysctls = (("net/ipv4/tcp_allowed_congestion_control", "nonesuch reno"),)
    plan = veth_plan(transport="tcp")
    plan = plan.model_copy(
        update={
            "machine": plan.machine.model_copy(update={"sysctls": sysctls}),
            "network": plan.network.model_copy(update={"qdiscs": ()}),
        }
    )
    with pytest.raises(MachineError) as refused:
        engine.unsupported(plan)
    assert "nonesuch" in str(refused.value)
    assert "--allow-host-settings" in str(refused.value)
