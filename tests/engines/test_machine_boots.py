"""A machine boots once: each trial continues from its state, which is the same whenever it booted."""

from __future__ import annotations

import base64
import os
import struct
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plait.cache import ContentCache, locked
from plait.engine.engine import Interrupted, Job
from plait.engine.factory import make_engine
from plait.engine.machine import boots
from plait.engine.machine.boots import Boot
from plait.errors import MachineError, TrialError
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan

pytestmark = pytest.mark.guest

LINE = """
title: A lossy line
network: {hosts: [h1, h2], links: {h1-h2: {rate: 5mbit, delay: 1ms, loss: 1%}}}
traffic: [{bulk: {from: h1, to: h2, duration: 1s}}]
"""


@pytest.fixture
def engine() -> Any:
    return make_engine("machine")


@pytest.fixture
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Boot each machine anew. Returns the states of those that booted."""
    states: list[bytes] = []
    monkeypatch.setattr(ContentCache, "get", lambda _cache, _key: None)
    monkeypatch.setattr(ContentCache, "put", lambda _cache, _key, content: states.append(content))
    return states


def plan(seed: int = 1) -> Plan:
    return resolve(expand(parse(LINE, "line.yaml"))[0].scenario, seed)


def boot_of(engine: Any) -> Boot:
    boot = engine._boot(plan())
    assert isinstance(boot, Boot)
    return boot


def tables(engine: Any, folder: Path, seed: int = 1) -> dict[str, bytes]:
    folder.mkdir()
    engine.execute(Job(plan(seed), {}, folder))
    return {path.name: path.read_bytes() for path in (folder / "data").iterdir()}


def test_a_trial_after_a_new_boot_has_the_same_bytes(
    engine: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    kept = tables(engine, tmp_path / "kept")
    states = request.getfixturevalue("nothing_kept")
    assert tables(engine, tmp_path / "anew") == kept
    assert len(states) == 1
    assert kept["subflows.arrow"]
    monkeypatch.undo()
    assert tables(engine, tmp_path / "other", seed=2)["subflows.arrow"] != kept["subflows.arrow"]


def test_a_machine_that_does_not_boot_is_named_with_its_console(
    engine: Any, nothing_kept: list[bytes]
) -> None:
    broken = replace(boot_of(engine), root=b"no archive")
    with pytest.raises(
        TrialError, match=r"its kernel ended; last lines of QEMU and its console:\n(.*\n)*.*panic"
    ):
        broken.state(threading.Event())
    assert not nothing_kept


def test_a_boot_ends_when_the_user_interrupts(engine: Any, nothing_kept: list[bytes]) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Interrupted):
        boot_of(engine).state(stop)
    assert not nothing_kept


def test_what_qemu_says_is_named_if_it_does_not_start(engine: Any, nothing_kept: list[bytes]) -> None:
    boot = boot_of(engine)
    with pytest.raises(TrialError, match="no-such-device"):
        replace(boot, arguments=[*boot.arguments, "-device", "no-such-device"]).state(threading.Event())
    assert not nothing_kept


def test_whoever_waits_for_the_boot_of_another_plait_can_interrupt(
    engine: Any, nothing_kept: list[bytes]
) -> None:
    stop = threading.Event()
    stop.set()
    lock = locked("machines")
    try:
        with pytest.raises(Interrupted):
            boot_of(engine).state(stop)
    finally:
        os.close(lock)
    assert not nothing_kept


OUTB = """\
void _start(void)
{
    __asm__ volatile("outb %b0, %w1" : : "a"(0), "d"(PORT));
    __asm__ volatile("syscall" : : "a"(60), "D"(0));
}
"""
"""A program that writes to a port and ends with 0; a shell says 139 if the kernel refuses it (SIGSEGV)."""


def test_no_program_may_use_the_ports_of_the_agent(engine: Any, tmp_path: Path) -> None:
    """A program with them could overwrite the machine's kernel: the emulator copies to any address."""
    (tmp_path / "outb.c").write_text(OUTB, encoding="utf-8")
    commands = []
    for port in (0x505, 0x514, 0x51B):
        program = str(tmp_path / f"port{port}")
        flags = ("-static", "-nostdlib", "-Os", "-s", "-Wl,--build-id=none,-n", f"-DPORT={port}")
        build = ["gcc", *flags, "-o", program, str(tmp_path / "outb.c")]
        subprocess.run(build, check=True, timeout=300)
        text = base64.b64encode(Path(program).read_bytes()).decode()
        commands.append(
            f"echo {text} | base64 -d > /tmp/p{port}; chmod +x /tmp/p{port}; /tmp/p{port}; echo $?"
        )
    program = f"  - {{node: h1, name: ports, wait: true, run: '{'; '.join(commands)}'}}\n"
    job = Job(resolve(parse(f"{LINE}programs:\n{program}", "ports.yaml"), 1), {}, tmp_path / "job")
    job.folder.mkdir()
    engine.execute(job)
    log = (job.folder / "programs/ports.log").read_text()
    assert [line for line in log.splitlines() if line.isdigit()] == ["139"] * 3, log


@pytest.mark.parametrize(
    ("snapshots", "reason"), [(0, "saved no state"), (1, "larger than its machine"), (2, "saved no state")]
)
def test_a_disk_without_a_state_of_the_machine_is_refused(
    snapshots: int, reason: str, tmp_path: Path
) -> None:
    disk, snapshot = bytearray(boots._empty_disk()), 3 * boots._CLUSTER
    struct.pack_into(">IQ", disk, 60, snapshots, snapshot)
    struct.pack_into(">Q", disk, snapshot + boots._SNAPSHOT.size, 1 << 60)
    (tmp_path / "disk").write_bytes(disk)
    with (tmp_path / "disk").open("rb") as file, pytest.raises(TrialError, match=reason):
        boots._state_in(file.fileno(), 1 << 20)


def test_no_more_is_read_of_a_disk_than_its_state_has(tmp_path: Path) -> None:
    """All entries of the tables name one cluster, and the tables are said to be endless."""
    disk = bytearray(boots._empty_disk())
    table, snapshot = 3 * boots._CLUSTER, 3 * boots._CLUSTER + 4096
    struct.pack_into(">2Q", disk, table, table, table)
    struct.pack_into(">IQ", disk, 60, 1, snapshot)
    boots._SNAPSHOT.pack_into(disk, snapshot, table, (1 << 32) - 1, 0, 0, 0, 0, 0, 0, 8)
    struct.pack_into(">Q", disk, snapshot + boots._SNAPSHOT.size, 100_000)
    (tmp_path / "disk").write_bytes(disk)
    with (tmp_path / "disk").open("rb") as file:
        assert len(boots._state_in(file.fileno(), 1 << 20)) == 100_000


def clock(beside_ns: int) -> bytes:
    return boots._CLOCK.pack(boots._CLOCK_NAME, 1, beside_ns, 1_000_006)


@pytest.mark.parametrize("jumped_ns", [0, 3_681_051])
def test_the_clock_of_a_state_is_that_of_the_stop(jumped_ns: int) -> None:
    """The clock was 4 ms and 500 ns at the millionth instruction, of 4 ns each: 500 ns had passed without one."""
    stamp = boots._MARK + (4_000_500).to_bytes(8, "big")
    state = b"memory" + clock(500 + jumped_ns) + b"registers" + stamp + b"rest"
    assert boots._at_its_stop(state, 2) == b"memory" + clock(500) + b"registers" + stamp + b"rest"
    with pytest.raises(MachineError, match="does not know"):
        boots._at_its_stop(state + stamp, 2)
