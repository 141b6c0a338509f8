"""plait-agent as an ordinary process: it carries out a plan, and leaves nothing behind however it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from agent_process import (
    RATE_BPS,
    AgentProcess,
    is_gone,
    node_plan,
    start_agent,
    veth_plan,
    wait_for,
)

from plait.binaries import AGENT
from plait.dataset.convert import convert
from plait.engine.virtual.boot_inputs import EMPTY_PLAN
from plait.plan.model.plan import Module

if TYPE_CHECKING:
    import polars as pl

    from plait.plan.model.plan import Plan

NOBODY = 65534
Start = Callable[..., AgentProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[AgentProcess] = []

    def begin(plan: Plan, *options: str, folder: str = "job", user: int | None = None) -> AgentProcess:
        agent = start_agent(tmp_path / folder, plan, *options, user=user)
        running.append(agent)
        return agent

    yield begin
    for agent in running:
        agent.close()


@pytest.fixture
def _namespaces() -> None:
    """Skip where this user cannot create namespaces with a veth pair."""
    command = ["ip", "link", "add", "a0", "type", "veth", "peer", "name", "a1"]
    prefix = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-Urn"]
    probe = subprocess.run([*prefix, *command], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"this machine forbids namespaces or lacks veth: {probe.stderr.strip()}")


def tables_of(agent: AgentProcess) -> dict[str, pl.DataFrame]:
    return convert(agent.folder / "data", agent.folder / "tables")


@pytest.mark.usefixtures("_namespaces")
def test_an_agent_carries_out_a_plan_in_real_time(start: Start) -> None:
    lasts_us = 3_000_000  # longer than TCP waits for the answer to a first SYN, however busy the machine is
    agent = start(veth_plan(duration_us=lasts_us))
    assert agent.wait() == 0, agent.status()
    tables = tables_of(agent)
    flow = tables["flows"].row(0, named=True)
    assert flow["completed"]
    lasted_us = flow["end_us"] - flow["start_us"]
    assert flow["end_us"] >= lasts_us
    # The buckets bound what arrives: two of 10 Mbit/s, each with a burst.
    assert 0 < flow["received_bytes"] <= 2 * (RATE_BPS * lasted_us / 8e6 + 20_000)
    assert set(tables["subflows"]["subflow"].unique()) == {0, 1}
    times = tables["subflows"]["t_us"].unique().sort()
    assert times.is_sorted()
    assert times.len() >= 2
    assert "sub_established" in set(tables["events"]["event"])


@pytest.mark.usefixtures("_namespaces")
def test_root_can_run_it_as_another_user() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; for an ordinary user the other tests show the same")
    if subprocess.run(["setpriv", "--reuid", str(NOBODY), "test", "-x", str(AGENT)], check=False).returncode:
        pytest.skip("another user cannot reach the agent of this checkout")
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        Path(name).chmod(0o755)
        agent = start_agent(Path(name) / "job", veth_plan(), user=NOBODY)
        try:
            assert agent.wait() == 0, agent.status()
            assert tables_of(agent)["flows"]["completed"].all()
        finally:
            agent.close()


@pytest.mark.usefixtures("_namespaces")
@pytest.mark.parametrize("how", ["end of input", "no heartbeat", "signal", "killed"])
def test_nothing_outlives_the_agent(start: Start, how: str) -> None:
    agent = start(veth_plan(duration_us=60_000_000), *(["--heartbeat", "1"] if how == "no heartbeat" else []))
    agent.until_running()
    descendants = agent.descendants()
    assert descendants, "the agent runs in namespaces of its own, in a second process"
    if how == "end of input":
        assert agent.process.stdin is not None
        agent.process.stdin.close()
    elif how == "signal":
        agent.process.send_signal(signal.SIGTERM)
    elif how == "killed":
        agent.process.kill()
    expected = {"end of input": "its caller has gone", "no heartbeat": "no heartbeat", "signal": "signal 15"}
    code = agent.wait()
    wait_for(lambda: all(is_gone(pid) for pid in descendants))
    if how == "killed":
        assert code == -signal.SIGKILL
    else:
        assert code == 1
        assert expected[how] in agent.status()["error"]


@pytest.mark.usefixtures("_namespaces")
def test_heartbeats_keep_an_agent_alive(start: Start) -> None:
    agent = start(veth_plan(duration_us=2_500_000, transport="tcp", paths=1), "--heartbeat", "1")
    agent.until_running()
    while agent.process.poll() is None:
        try:
            agent.order("")
        except BrokenPipeError:  # it has just ended
            break
        try:
            agent.process.wait(0.3)
        except subprocess.TimeoutExpired:
            continue
    assert agent.wait() == 0, agent.status()


def test_two_agents_measure_a_flow_between_two_nodes_without_privileges(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    agents = [
        start(node_plan(node, port, 3_000_000), "--node", node, "--on-order", folder=node)
        for node in ("h2", "h1")
    ]
    for agent in agents:
        assert agent.answer() == "ready"
        agent.order("time")
        assert agent.answer().startswith("time ")
    for agent in agents:  # the server listens before it reports that it is ready
        agent.order("start")
        assert agent.answer().startswith("zero ")
    receiver, sender = agents
    for agent in agents:
        assert agent.answer() == "done"
    for agent in agents:  # until then no host resets a connection that another one still measures
        agent.order("close")
        assert agent.wait() == 0, agent.status()
    sent, received = (tables_of(agent)["flows"].row(0, named=True) for agent in (sender, receiver))
    assert (sent["sent_bytes"], sent["received_bytes"]) == (3_000_000, None)
    assert (received["sent_bytes"], received["received_bytes"]) == (None, 3_000_000)
    assert sent["completed"]
    assert received["completed"]


def test_a_plan_with_a_network_is_refused_by_a_node(start: Start) -> None:
    agent = start(veth_plan(), "--node", "h1")
    assert agent.wait() == 1
    refusals = ("cannot create h2", "EPERM", "EACCES")  # an ordinary user may not even set a sysctl
    assert any(text in agent.status()["error"] for text in refusals)


@pytest.mark.parametrize("what", ["a kernel module", "a session"])
def test_code_of_others_needs_a_guest(start: Start, tmp_path: Path, what: str) -> None:
    """Root may run plait in a folder of another user, who can replace what the agent reads there."""
    (tmp_path / "job/modules").mkdir(parents=True)
    (tmp_path / "job/modules/evil.ko").write_bytes(b"\x7fELF")
    machine = EMPTY_PLAN.machine
    if what == "a session":
        (tmp_path / "job/session.json").write_text("{}")
    else:
        machine = machine.model_copy(update={"modules": (Module(name="evil", sha256="0" * 64),)})
    agent = start(EMPTY_PLAN.model_copy(update={"machine": machine}))
    assert agent.wait() == 1
    assert f"{what} needs a guest around it" in agent.status()["error"]


def test_wrong_arguments_are_refused() -> None:
    for line in (["--job"], ["--job", "relative"], ["--job", "/", "--unknown"]):
        ended = subprocess.run([str(AGENT), *line], capture_output=True, text=True, check=False, timeout=300)
        assert ended.returncode == 2
        assert ended.stderr.startswith("plait-agent: ")
