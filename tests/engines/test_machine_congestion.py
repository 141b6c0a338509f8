"""A machine's stock kernel gets congestion controls and schedulers as BPF programs, for the trials that name them."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from plait.bpf import programs
from plait.engine.engine import Engine, Job
from plait.engine.factory import make_engine
from plait.engine.machine.needed_files import bpf_archive, offered_algorithms
from plait.engine.request import EngineRequest
from plait.errors import MachineError
from plait.kernel.stock import StockKernel
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

FLOWS = """\
title: A connection for each algorithm
network:
  hosts: [client, server]
  links:
    client-server: {rate: 10mbit, delay: 2ms}
    client-server#2: {rate: 10mbit, delay: 2ms}
traffic:
"""
SILENT = """\
title: A backup beside a path that falls silent
network:
  hosts: [client, server]
  links: {client-server: {rate: 10mbit, delay: 10ms}, client-server#2: {rate: 5mbit, delay: 20ms}}
mptcp:
  scheduler: %s
  endpoints:
    client: [{link: client-server, flags: [subflow]}, {link: client-server#2, flags: [subflow, backup]}]
traffic: [{bulk: {from: client, to: server, duration: 8s}}]
events: [{at: 3s, cut: client-server}]
"""
FLOW = "  - transfer: {from: client, to: server, bytes: 100kB, congestion_control: %s}\n"


def kernel(version: str) -> StockKernel:
    return StockKernel(Path("vmlinuz"), None, version, "identity")


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an object for each algorithm, and a loader."""
    monkeypatch.setattr(programs, "find_loader", lambda: Path("/bin/true"))
    monkeypatch.setattr(programs, "object_of", lambda name: f"object {name}".encode())
    monkeypatch.setattr(programs, "loaded_by", lambda _: programs.NAMES)


@pytest.mark.usefixtures("built")
def test_kernels_from_6_12_on_are_offered_the_algorithms() -> None:
    assert offered_algorithms(kernel("6.12.117+deb12-cloud-amd64")) == programs.NAMES
    assert offered_algorithms(kernel("6.1.0-56-cloud-amd64")) == ()


@pytest.mark.usefixtures("built")
def test_the_archive_has_the_objects_in_order_and_a_loader_with_its_libraries() -> None:
    archive = bpf_archive(["lia", "olia"])
    for content in (b"lia\nolia\n\0", b"object lia", b"object olia", b"bpf/loader\0", b"/libc.so.6\0"):
        assert content in archive
    assert b"object balia" not in archive
    assert bpf_archive([]) == b""


@pytest.mark.guest
def test_every_algorithm_carries_a_connection_on_a_stock_kernel(tmp_path: Path) -> None:
    try:
        programs.find_loader()
        programs.object_of("olia")
    except MachineError as error:
        pytest.skip(str(error))
    engine = make_engine("machine")
    text = FLOWS + "".join(FLOW % name for name in programs.ALGORITHMS)
    assert set(programs.ALGORITHMS) <= set(engine.inventory().congestion_controls)
    engine.execute(Job(resolve(expand(parse(text, "t.yaml"))[0].scenario, 1), {}, tmp_path))
    assert pl.read_ipc_stream(tmp_path / "data/flows.arrow")["completed"].to_list() == [True] * len(
        programs.ALGORITHMS
    )


@pytest.mark.guest
def test_a_stock_kernel_without_the_struct_ops_is_offered_no_scheduler() -> None:
    try:
        programs.find_loader()
        programs.object_of("ecf")
    except MachineError as error:
        pytest.skip(str(error))
    inventory = make_engine("machine").inventory()
    assert not inventory.takes_schedulers
    assert not set(programs.SCHEDULERS) & set(inventory.schedulers)


@pytest.fixture
def engine_for_schedulers() -> Engine:
    kernel = os.environ.get("PLAIT_SCHED_OPS_KERNEL")
    if kernel is None:
        pytest.skip("PLAIT_SCHED_OPS_KERNEL names no image of a kernel with the struct_ops mptcp_sched_ops")
    return make_engine("machine", EngineRequest(kernel=kernel))


@pytest.mark.guest
@pytest.mark.parametrize("scheduler", programs.SCHEDULERS)
def test_every_scheduler_fills_both_paths_on_a_kernel_that_takes_it(
    engine_for_schedulers: Engine, tmp_path: Path, scheduler: str
) -> None:
    assert scheduler in engine_for_schedulers.inventory().schedulers
    text = FLOWS + "  - bulk: {from: client, to: server, duration: 3s}\nmptcp: {scheduler: %s}\n"
    case = expand(parse(text % scheduler, "t.yaml"))[0]
    engine_for_schedulers.execute(Job(resolve(case.scenario, 1), {}, tmp_path))
    flows = pl.read_ipc_stream(tmp_path / "data/flows.arrow")
    assert flows["received_bytes"].item() > 1.5 * 3 * 10e6 / 8


@pytest.mark.guest
@pytest.mark.parametrize("scheduler", programs.SCHEDULERS)
def test_every_scheduler_turns_to_a_backup_when_a_path_falls_silent(
    engine_for_schedulers: Engine, tmp_path: Path, scheduler: str
) -> None:
    """Some kernels leave it to the scheduler to notice. The backup has 5 of 8 s; a timeout takes less than one."""
    case = expand(parse(SILENT % scheduler, "t.yaml"))[0]
    engine_for_schedulers.execute(Job(resolve(case.scenario, 1), {}, tmp_path))
    flows = pl.read_ipc_stream(tmp_path / "data/flows.arrow")
    assert flows["received_bytes"].item() > 0.9 * (3 * 10e6 + 4 * 5e6) / 8
