"""A hunt plays several cases in a guest, repeats those that fail in guests of their own, and makes them smaller."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from plait.cli import app
from plait.engine.inventory import Inventory
from plait.errors import TrialError
from plait.kernel import Kernel
from plait.testing.hunt.case import HuntCase, HuntConnection
from plait.testing.hunt.draw import draw
from plait.testing.hunt.run import CaseResult, Violation
from plait.testing.hunt.search import Fault, Hunt, HuntLimits
from plait.testing.hunt.shrink import MOST_ATTEMPTS, shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

SCHEDULERS, CONTROLS = ("default", "minrtt"), ("cubic", "reno")
INVENTORY = Inventory(congestion_controls=CONTROLS, schedulers=SCHEDULERS, sysctls={}, shared_sysctls={})
CLEAN = CaseResult((), 1000, 2, 1, "")
LEAK = CaseResult((Violation("sockets", "sockets are left"),), 0, 0, 0, "log of the kernel")


def drawn(seed: int) -> HuntCase:
    return draw(seed, SCHEDULERS, CONTROLS)


def leaks(case: HuntCase) -> bool:
    """Return whether a connection loses its first subflow, is closed, and then loses an endpoint."""
    for number in range(len(case.connections)):
        wanted = ["destroy", "close", "flush"]
        for event in case.events:
            concerned = event.do == "flush" or event.connection == number
            if wanted and event.do == wanted[0] and concerned and (event.do != "destroy" or event.link == 0):
                wanted.pop(0)
        if not wanted:
            return True
    return False


def alone(play: Callable[[HuntCase], CaseResult]) -> Callable[[Sequence[HuntCase]], list[CaseResult]]:
    """Return what plays the first of several cases."""
    return lambda cases: [play(cases[0])]


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_a_failing_case_shrinks_to_the_events_that_matter(at_once: int) -> None:
    failing = [case for case in map(drawn, range(9000)) if leaks(case) and len(case.events) > 10][:10]
    assert len(failing) == 10

    def first_failing(cases: Sequence[HuntCase]) -> int | None:
        assert len(cases) <= at_once
        return next((index for index, case in enumerate(cases) if leaks(case)), None)

    for case in failing:
        smallest, attempts = shrink(case, first_failing, at_once)
        assert leaks(smallest)
        assert [event.do for event in smallest.events] == ["destroy", "close", "flush"]
        assert (len(smallest.connections), len(smallest.links)) == (1, 1)
        assert smallest.connections[0] == HuntConnection()
        assert attempts <= MOST_ATTEMPTS + at_once


def test_a_hunt_ends_with_the_first_fault_in_its_smallest_case() -> None:
    lines: list[str] = []
    hunt = Hunt(
        INVENTORY, HuntLimits(5, 1, 2), alone(lambda case: LEAK if leaks(case) else CLEAN), lines.append
    )
    totals = hunt.run(first_seed=1)
    (fault,) = totals.faults
    assert leaks(fault.drawn)
    assert len(fault.case.events) == 3
    assert fault.log == "log of the kernel"
    assert f"seed {fault.seed} after" in lines[0]


def test_a_fault_that_another_kernel_has_is_left_out_also_while_a_case_shrinks() -> None:
    first, second = [
        case for case in map(drawn, range(1, 3000)) if leaks(case) and case.scheduler == "minrtt"
    ][:2]

    def elsewhere(case: HuntCase) -> CaseResult:
        return LEAK if leaks(case) and (case.seed <= first.seed or case.scheduler == "default") else CLEAN

    lines: list[str] = []
    hunt = Hunt(
        INVENTORY,
        HuntLimits(5, 1, 2),
        alone(lambda case: LEAK if leaks(case) else CLEAN),
        lines.append,
        elsewhere=elsewhere,
    )
    totals = hunt.run(first_seed=1)
    (fault,) = totals.faults
    assert (fault.seed, len(fault.case.events)) == (second.seed, 3)
    assert fault.case.scheduler == "minrtt", "the other kernel has the fault with the plainer value"
    assert totals.shared == sum(line.endswith("the other kernel fails so, too") for line in lines) > 0


def test_a_fault_is_kept_at_once_and_later_cases_like_it_are_named() -> None:
    kept: list[Fault] = []
    ended = threading.Event()

    def leaking_from_3(case: HuntCase) -> CaseResult:
        if case.seed == 9 and len(kept) == 1:
            ended.set()
            raise KeyboardInterrupt
        return LEAK if case.seed >= 3 else CLEAN

    hunt = Hunt(
        INVENTORY, HuntLimits(5, 9, 1), alone(leaking_from_3), lambda _: None, ended, keep=kept.append
    )
    with pytest.raises(KeyboardInterrupt):
        hunt.run(first_seed=1)
    assert ended.is_set(), "it went on after the fault"
    assert (kept, hunt.totals.alike) == (hunt.totals.faults, [4, 5, 6, 7, 8])
    assert kept[0].seed == 3


def test_a_failure_that_does_not_happen_again_is_no_fault() -> None:
    played: set[str] = set()

    def once(case: HuntCase) -> CaseResult:
        new = case.seed == 3 and case.model_dump_json() not in played
        played.add(case.model_dump_json())
        return LEAK if new else CLEAN

    totals = Hunt(INVENTORY, HuntLimits(0.02, 1, 1), alone(once), lambda _: None).run(1)
    assert totals.faults == []
    assert totals.unrepeated == [(3, 3)]


def test_what_fails_only_after_other_cases_in_one_guest_is_named_with_them() -> None:
    lines: list[str] = []

    def fails_in_company(cases: Sequence[HuntCase]) -> list[CaseResult]:
        return [CLEAN, CLEAN, LEAK] if len(cases) > 2 else [CLEAN]

    totals = Hunt(INVENTORY, HuntLimits(0.02, 1, 1), fails_in_company, lines.append).run(1)
    assert totals.faults == []
    assert totals.unrepeated[:2] == [(1, 3), (4, 6)], "the rest goes on in another guest"
    assert lines[1] == "seed 3: the failure did not happen again in a guest of its own, but after seed 1"


def test_what_fails_in_company_is_tried_alone_with_other_random_numbers() -> None:
    def fails_with_an_odd_seed(cases: Sequence[HuntCase]) -> list[CaseResult]:
        return [CLEAN, LEAK] if len(cases) > 1 else [LEAK if cases[0].seed % 2 else CLEAN]

    (fault,) = Hunt(INVENTORY, HuntLimits(5, 1, 1), fails_with_an_odd_seed, lambda _: None).run(1).faults
    assert (fault.seed, fault.drawn.seed, fault.case.seed) == (2, 2, 3)


def test_a_hunt_without_a_working_guest_ends_soon() -> None:
    def failing(_: HuntCase) -> CaseResult:
        raise TrialError("the guest has no ip")

    lines: list[str] = []
    with pytest.raises(TrialError, match="no ip"):
        Hunt(INVENTORY, HuntLimits(5, 1, 2), alone(failing), lines.append).run(1)
    assert len(lines) == 5


def test_an_interrupted_hunt_keeps_its_totals_and_stops_its_guests() -> None:
    stop = threading.Event()

    def interrupted(case: HuntCase) -> CaseResult:
        if case.seed == 5:
            raise KeyboardInterrupt
        return CLEAN

    hunt = Hunt(INVENTORY, HuntLimits(5, 1, 1), alone(interrupted), lambda _: None, stop)
    with pytest.raises(KeyboardInterrupt):
        hunt.run(first_seed=2)
    assert (hunt.totals.cases, hunt.totals.subflows, hunt.totals.next_seed) == (3, 3, 5)
    assert stop.is_set()


def test_the_next_seed_is_the_first_one_without_a_result() -> None:
    others_went_on = threading.Event()

    def first_last(case: HuntCase) -> CaseResult:
        if case.seed == 1:
            others_went_on.wait()
            raise KeyboardInterrupt
        if case.seed == 19:
            others_went_on.set()
        return CLEAN

    hunt = Hunt(INVENTORY, HuntLimits(5, 1, 2), alone(first_last), lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        hunt.run(first_seed=1)
    assert hunt.totals.cases >= 2
    assert hunt.totals.next_seed == 1


def test_a_fault_whose_case_is_still_large_at_an_interrupt_is_searched_again() -> None:
    leaking = next(number for number in range(3000) if leaks(drawn(number)))
    attempts: list[HuntCase] = []

    def shrinking(case: HuntCase) -> CaseResult:
        attempts.append(case)
        if len(attempts) == 4:
            raise KeyboardInterrupt
        return LEAK if leaks(case) else CLEAN

    hunt = Hunt(INVENTORY, HuntLimits(5, 1, 1), alone(shrinking), lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        hunt.run(leaking)
    assert (hunt.totals.faults, hunt.totals.next_seed) == ([], leaking)


def test_the_command_prints_the_totals_of_an_interrupted_hunt_and_how_to_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(cases: Sequence[HuntCase], *_: object) -> list[CaseResult]:
        if cases[0].seed == 9:
            raise KeyboardInterrupt
        return [CLEAN]

    kernel = Kernel("a" * 64, "6.12.1", tmp_path / "linux", "b" * 64, 1000)
    monkeypatch.setattr("plait.cli.laboratory.hunt.chosen_kernel", lambda _: kernel)
    monkeypatch.setattr("plait.engine.virtual.trial.VirtualEngine.inventory", lambda _: INVENTORY)
    monkeypatch.setattr("plait.testing.hunt.run.play_together", interrupted)
    monkeypatch.setattr("plait.testing.hunt.run.require_programs", lambda: None)
    words = [
        "hunt",
        "--seed",
        "6",
        "--jobs",
        "1",
        "--out",
        "my faults",
        "--kernel",
        "after",
        "--not-in",
        "before",
    ]
    result = CliRunner().invoke(app, words, standalone_mode=False)
    assert "3 cases, 3 subflows joined" in result.stdout
    assert "plait hunt --kernel after --seed 9 --jobs 1 --out 'my faults' --not-in before" in result.stderr
    assert result.return_value == 130
