"""A guest's processes stay on one processor of the machine, as long as it is free for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from plait.engine.one_processor import OneProcessor, threads_and_children

if TYPE_CHECKING:
    from pathlib import Path

KERNEL, THREAD, PROGRAM = 7, 8, 9
ALL = {0, 1, 2, 3}


class Machine:
    """A machine with four processors, on which a guest's kernel has a thread and a program."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.bound: dict[int, set[int]] = {}
        for process, tasks in ((KERNEL, (KERNEL, THREAD)), (PROGRAM, (PROGRAM,))):
            for task in tasks:
                (proc / str(process) / "task" / str(task)).mkdir(parents=True)
        for task, children in ((KERNEL, ""), (THREAD, f"{PROGRAM}")):
            (proc / str(KERNEL) / "task" / str(task) / "children").write_text(children)
        self.run_on(2)
        self.count_waiting("5000 100 3")

    def run_on(self, processor: int) -> None:
        """Let the guest's kernel be on a processor."""
        fields = ["0"] * 36
        (self.proc / str(KERNEL) / "stat").write_text(
            f"{KERNEL} (linux a) b) {' '.join(fields)} {processor} 0\n"
        )

    def count_waiting(self, counts: str) -> None:
        """Set the counters of plait."""
        (self.proc / "self").mkdir(exist_ok=True)
        (self.proc / "self" / "schedstat").write_text(counts)

    def bind(self, process: int, processors: set[int]) -> None:
        """Note what plait asks for, in place of the system's call."""
        self.bound[process] = set(processors)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Return the machine; plait itself may use all of its processors."""
    made = Machine(tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(ALL))
    monkeypatch.setattr(os, "sched_setaffinity", made.bind)
    return made


def everywhere(processors: set[int]) -> dict[int, set[int]]:
    """Return these processors for each of the guest's processes and threads."""
    return {KERNEL: processors, THREAD: processors, PROGRAM: processors}


def test_all_processes_stay_where_the_kernel_of_the_guest_is(machine: Machine) -> None:
    OneProcessor(KERNEL, 0.0, machine.proc)
    assert machine.bound == everywhere({2})


def test_a_guest_that_has_not_run_yet_is_kept(machine: Machine) -> None:
    """Else a short trial is over before the next look at it, and half of them were twice as slow."""
    (machine.proc / str(KERNEL) / "schedstat").write_text("0 0 0")
    OneProcessor(KERNEL, 0.0, machine.proc)
    assert machine.bound == everywhere({2})


def test_a_program_that_starts_while_the_others_are_bound_is_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bind_and_start(process: int, processors: set[int]) -> None:
        machine.bind(process, processors)
        (machine.proc / str(KERNEL) / "task" / str(THREAD) / "children").write_text(
            f"{PROGRAM} {PROGRAM + 1}"
        )

    monkeypatch.setattr(os, "sched_setaffinity", bind_and_start)
    OneProcessor(KERNEL, 0.0, machine.proc)
    assert machine.bound == everywhere({2}) | {PROGRAM + 1: {2}}


def test_a_guest_that_waits_is_moved_and_stays_where_it_is_then(machine: Machine) -> None:
    processor = OneProcessor(KERNEL, 0.0, machine.proc)
    processor.check(0.25, 0.1)
    assert machine.bound == everywhere(ALL)
    machine.run_on(1)
    processor.check(0.5, 0.2)
    assert machine.bound == everywhere({1})
    processor.check(0.75, 0.2)
    assert machine.bound == everywhere({1})


def test_a_guest_that_seldom_waits_stays(machine: Machine) -> None:
    processor = OneProcessor(KERNEL, 0.0, machine.proc)
    processor.check(0.25, 0.04)
    processor.check(0.5, 0.08)
    assert machine.bound == everywhere({2})


def test_short_waits_between_close_checks_add_up(machine: Machine) -> None:
    processor = OneProcessor(KERNEL, 0.0, machine.proc)
    for number in range(1, 6):
        processor.check(number * 0.05, number * 0.02)
    assert machine.bound == everywhere(ALL)


def test_nothing_is_bound_where_the_machine_does_not_count_waiting(machine: Machine) -> None:
    """Two guests on one processor could not be told from two that have one each."""
    machine.count_waiting("0 0 0")
    OneProcessor(KERNEL, 0.0, machine.proc).check(0.25, 0.0)
    (machine.proc / "self" / "schedstat").unlink()
    OneProcessor(KERNEL, 0.0, machine.proc).check(0.25, 0.0)
    assert machine.bound == {}


def test_a_processor_that_plait_may_not_use_is_not_chosen(machine: Machine) -> None:
    machine.run_on(5)
    OneProcessor(KERNEL, 0.0, machine.proc)
    assert machine.bound == {}


def test_nothing_is_bound_on_a_machine_with_one_processor(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {2})
    OneProcessor(KERNEL, 0.0, machine.proc).check(0.25, 0.25)
    assert machine.bound == {}


def test_a_guest_that_has_ended_has_no_processes(tmp_path: Path) -> None:
    assert threads_and_children(KERNEL, tmp_path) == set()


def test_a_process_of_this_machine_has_its_threads() -> None:
    assert os.getpid() in threads_and_children(os.getpid())
