"""A machine boots once: each trial continues from its state, which is the same whenever it booted."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from plait.cache import ContentCache
from plait.engine.engine import Interrupted, Job
from plait.engine.factory import make_engine
from plait.engine.machine import boots
from plait.engine.machine.boots import Boot
from plait.errors import MachineError, TrialError
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from pathlib import Path

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
        MachineError, match=r"booting a machine: its kernel ended; last lines of its console:\n .*"
    ):
        broken.state(threading.Event())
    assert not nothing_kept


def test_a_boot_ends_when_the_user_interrupts(engine: Any, nothing_kept: list[bytes]) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Interrupted):
        boot_of(engine).state(stop)
    assert not nothing_kept


def test_a_disk_without_a_state_is_refused(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(boots._empty_disk())
    with (tmp_path / "disk").open("rb") as disk, pytest.raises(TrialError, match="no state"):
        boots._state_in(disk.fileno())


def clock(beside_ns: int) -> bytes:
    return boots._CLOCK.pack(boots._CLOCK_NAME, 1, beside_ns, 1_000_006)


@pytest.mark.parametrize("jumped_ns", [0, 3_681_051])
def test_the_clock_of_a_state_is_that_of_the_stop(jumped_ns: int) -> None:
    """The clock was 4 ms and 500 ns at the millionth instruction, of 4 ns each: 500 ns had passed without one."""
    stamp = boots._MARK + (4_000_500).to_bytes(8, "big")
    state = b"memory" + clock(500 + jumped_ns) + b"registers" + stamp + b"rest"
    assert boots._at_its_stop(state, 2) == b"memory" + clock(500) + b"registers" + stamp + b"rest"
    with pytest.raises(TrialError, match="does not know"):
        boots._at_its_stop(state + stamp, 2)
