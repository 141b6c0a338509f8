"""plait builds and keeps users' algorithms, selects them by plan, and reports which one crashed."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fake_plans import fake_plan
from kernel_fakes import while_waiting
from plait.engine.virtual import crash
from plait.errors import KernelBuildError, RequestError
from plait.files import Folder
from plait.kernel import Kernel, additions
from plait.plan.identity import plan_bytes
from plait.plan.model.plan import Module
from plait.plan.modules import with_modules

if TYPE_CHECKING:
    from collections.abc import Callable

MINE = Module(name="mine_123456", sha256="1" * 64)
CONSOLE = """\
[    0.176000] RIP: 0033:mine_pick+0xb0/0x340 [mine_123456]
[    0.176000] Kernel panic - not syncing: Segfault with no mm
[    0.176000]  606deb18 59000000002 7719000010f0 1700000008
[    0.176000]  [<604b91a0>] ? rb_first+0x0/0x30
[    0.176000]  [<7080739b>] ? mine_get_subflow+0x5b/0x71 [mine_123456]
[    0.176000]  [<604971d2>] ? mptcp_sched_get_send+0xd2/0x130
""".splitlines()


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    return Kernel(identity="k" * 64, version="6.12.1", binary=tmp_path / "linux", binary_sha256="", hz=1000)


def source(text: str, name: str = "mine.c") -> additions.AlgorithmSource:
    return additions.AlgorithmSource(name, text.encode())


def keep(kernel: Kernel, text: str, *names: str) -> list[additions.AdditionRecord]:
    record = additions.record_of(source(text), names, ())
    return additions.keep(kernel, source(text), additions.BuiltModule(b"module", ""), record)


def test_a_plan_that_names_no_addition_is_left_as_it_is() -> None:
    plan = fake_plan()
    assert plan_bytes(with_modules(plan, {"mine": MINE})) == plan_bytes(plan)


def test_a_scheduler_named_by_one_host_brings_its_module() -> None:
    plan = fake_plan()
    first, *others = plan.network.namespaces
    choosing = first.model_copy(update={"sysctls": (*first.sysctls, ("net/mptcp/scheduler", "mine"))})
    network = plan.network.model_copy(update={"namespaces": (choosing, *others)})
    extended = with_modules(plan.model_copy(update={"network": network}), {"mine": MINE, "other": MINE})
    assert extended.machine.modules == (MINE,)


def test_a_congestion_control_named_by_a_flow_brings_its_module() -> None:
    plan = fake_plan()
    mine = plan.flows[0].socket.model_copy(update={"congestion_control": "mine"})
    flows = (plan.flows[0].model_copy(update={"socket": mine}), *plan.flows[1:])
    assert with_modules(plan.model_copy(update={"flows": flows}), {"mine": MINE}).machine.modules == (MINE,)


def test_another_source_is_another_module_although_its_file_is_called_the_same() -> None:
    assert source("one").module != source("two").module


def test_an_added_algorithm_is_listed_by_its_names_until_it_is_removed(kernel: Kernel) -> None:
    assert keep(kernel, "one", "mine", "yours") == []
    assert additions.modules_by_name() == {"mine": source("one").module, "yours": source("one").module}
    assert additions.object_of(kernel, source("one").module).read_bytes() == b"module"
    additions.remove("yours")
    assert additions.modules_by_name() == {}
    with pytest.raises(RequestError, match="removing 'mine': there is no addition"):
        additions.remove("mine")


def test_the_next_version_of_a_file_replaces_the_one_before(kernel: Kernel) -> None:
    keep(kernel, "one", "mine")
    assert [old.sha256 for old in keep(kernel, "two", "mine")] == [source("one").sha256]
    assert additions.modules_by_name() == {"mine": source("two").module}
    assert [record.sha256 for record in additions.added()] == [source("two").sha256]


@pytest.mark.parametrize(
    "end", [lambda kernel: keep(kernel, "two", "mine"), lambda _: additions.remove("mine")]
)
def test_a_running_study_reads_a_source_that_was_replaced_or_removed_meanwhile(
    kernel: Kernel, end: Callable[[Kernel], object]
) -> None:
    keep(kernel, "one", "mine")
    end(kernel)
    assert additions.object_of(kernel, source("one").module).read_bytes() == b"module"
    assert additions.source_of(source("one").sha256).content == b"one"
    folder = additions._root() / source("one").sha256
    os.utime(folder / "retired", (0, 0))
    keep(kernel, "three", "another")
    assert not folder.exists(), "no study runs so long"
    with pytest.raises(KernelBuildError, match="plait kernel add"):
        additions.object_of(kernel, source("one").module)


def test_a_source_that_was_replaced_can_replace_its_successor(kernel: Kernel) -> None:
    for text in ("one", "two", "one", "one"):
        keep(kernel, text, "mine")
        assert additions.modules_by_name() == {"mine": source(text).module}


def test_whenever_an_addition_is_killed_no_name_selects_two_sources_or_an_incomplete_one(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(kernel, "one", "mine")
    real, steps, outcomes = Folder.write, count(), list[list[str]]()

    def write(folder: Folder, name: str, content: bytes) -> None:
        if next(steps) == last:
            raise KeyboardInterrupt
        real(folder, name, content)

    monkeypatch.setattr(Folder, "write", write)
    for last in range(6):
        steps = count()
        with pytest.raises(KeyboardInterrupt):
            keep(kernel, f"two {last}", "mine")
        outcomes.append([record.sha256 for record in additions.added()])
        assert all(additions.object_of(kernel, module) for module in additions.modules_by_name().values())
    assert outcomes == [[source("one").sha256]] * 6
    steps, last = count(), -1
    keep(kernel, "two", "mine")
    assert additions.modules_by_name() == {"mine": source("two").module}


def test_a_source_replaces_one_of_its_name_that_another_process_adds_meanwhile(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_waiting(monkeypatch, lambda: keep(kernel, "one", "mine"))
    [replaced] = keep(kernel, "two", "mine")
    assert replaced.sha256 == source("one").sha256
    assert additions.modules_by_name() == {"mine": source("two").module}


def test_what_another_process_removes_meanwhile_is_reported_as_not_there(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(kernel, "one", "mine")
    while_waiting(monkeypatch, lambda: additions.remove("mine"))
    with pytest.raises(RequestError, match="removing 'mine': there is no addition"):
        additions.remove("mine")


def test_only_a_c_file_is_taken(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"one C file"):
        additions.read(tmp_path / "mine.ko")
    with pytest.raises(RequestError, match=r"reading .*mine\.c: No such file"):
        additions.read(tmp_path / "mine.c")


def test_a_crash_report_starts_with_the_fault_and_omits_bare_pointers() -> None:
    assert crash.panic(CONSOLE) == "not syncing: Segfault with no mm"
    assert crash.trace(CONSOLE, Path("nowhere")) == [
        "at mine_pick+0xb0/0x340 (mine_123456)",
        crash.DOUBTFUL,
        "? mine_get_subflow+0x5b/0x71 (mine_123456)",
        "? mptcp_sched_get_send+0xd2/0x130",
    ]
    assert crash.trace(["all is well"], Path("nowhere")) == []


def test_what_the_kernel_only_came_across_on_the_stack_is_no_caller() -> None:
    """Where frame pointers lead from call to call, an entry marked `?` is left over from an earlier call."""
    sure = [line.replace("? mptcp", "mptcp") for line in CONSOLE]
    assert crash.trace(sure, Path("nowhere")) == [
        "at mine_pick+0xb0/0x340 (mine_123456)",
        "mptcp_sched_get_send+0xd2/0x130",
    ]
