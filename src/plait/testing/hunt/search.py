"""Plays the cases of one seed after the other in a few guests at once, and makes those that fail smaller.

A guest plays several cases, whose random numbers then depend on those before. What fails must also fail in a guest of
its own, which alone repeats it to the byte; only that is made smaller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event

from plait.engine.inventory import Inventory
from plait.errors import Ended, TrialError
from plait.testing.hunt.case import HuntCase
from plait.testing.hunt.draw import draw
from plait.testing.hunt.run import CaseResult, Violation
from plait.testing.hunt.shrink import shrink

Report = Callable[[str], None]

Numbered = tuple[int, HuntCase]

_MOST_TROUBLES = 5
_TOGETHER = 16
"""Cases in one guest: booting it costs more than one of them."""
_OTHER_SEEDS = range(1, 7)
"""Added to the seed of a guest that plays a case alone, if what failed among others does not fail with its own."""


@dataclass(frozen=True)
class Fault:
    """An invariant that fails again with the same case."""

    seed: int
    violation: Violation
    case: HuntCase
    """The smallest case with this fault."""
    drawn: HuntCase
    attempts: int
    log: str
    """The kernel's log of the smallest case."""
    found_s: float
    """Wall time from the start to the first failure."""


@dataclass
class HuntTotals:
    """The result of a hunt."""

    cases: int = 0
    virtual_s: int = 0
    received_bytes: int = 0
    subflows: int = 0
    shared: int = 0
    """Failing cases that fail so in the other kernel, too."""
    standstills: int = 0
    """Connections that stood still where Linux itself may."""
    alike: list[int] = field(default_factory=list)
    """Seeds of further failing cases, each with a fault like one of `faults`; plait does not examine them."""
    unrepeated: list[tuple[int, int]] = field(default_factory=list)
    """Seeds whose failure did not happen again in a guest of its own, each after the first one in its guest."""
    faults: list[Fault] = field(default_factory=list)
    next_seed: int = 0
    """The first seed without a result; a hunt from there continues this one."""


@dataclass(frozen=True)
class HuntLimits:
    """When a hunt ends."""

    minutes: float
    faults: int
    """The number of different faults after which the hunt ends."""
    jobs: int


class Hunt:
    """A hunt in one kernel."""

    def __init__(
        self,
        inventory: Inventory,
        limits: HuntLimits,
        play: Callable[[Sequence[HuntCase]], Sequence[CaseResult]],
        report: Report,
        stop: Event | None = None,
        *,
        keep: Callable[[Fault], None] = lambda _: None,
        elsewhere: Callable[[HuntCase], CaseResult] | None = None,
    ) -> None:
        """Hunt with the algorithms of `inventory`; `report` shows a line.

        `play` plays cases in one guest, one or more of them up to the first that fails (TrialError). `elsewhere` plays
        a case in another kernel, whose faults do not count. `keep` gets each fault as soon as it is small. An interrupt
        sets `stop`, so that `play` ends its guests.
        """
        self._inventory = inventory
        self._limits = limits
        self._play_all = play
        self._report = report
        self._stop = stop or Event()
        self._keep = keep
        self._elsewhere = elsewhere
        self._began = time.monotonic()
        self.totals = HuntTotals()

    def run(self, first_seed: int) -> HuntTotals:
        """Play cases until the limits. Raises TrialError if several cases cannot be played at all.

        After KeyboardInterrupt and Ended, `totals` has what the hunt did.
        """
        self.totals.next_seed = first_seed
        with ThreadPoolExecutor(self._limits.jobs) as pool:
            try:
                self._play(first_seed, pool)
            except (KeyboardInterrupt, Ended):
                self._stop.set()
                raise
            finally:
                pool.shutdown(cancel_futures=True)
        return self.totals

    def _play(self, first_seed: int, pool: ThreadPoolExecutor) -> None:
        seed, troubles = first_seed, 0
        waiting: list[Sequence[Numbered]] = []
        running: dict[Future[Sequence[CaseResult]], Sequence[Numbered]] = {}
        while running or not self._is_over():
            while len(running) < self._limits.jobs and not self._is_over():
                if not waiting:
                    waiting.append([(number, self._draw(number)) for number in range(seed, seed + _TOGETHER)])
                    seed += _TOGETHER
                batch = waiting.pop(0)
                running[pool.submit(self._play_all, [case for _, case in batch])] = batch
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                batch, played = running.pop(future), 1
                try:
                    results = future.result()
                    for played, result in enumerate(results, 1):
                        self._take(batch[:played], result, pool)
                        self._note_next(seed, [batch[played:], *waiting, *running.values()])
                except TrialError as error:
                    troubles += 1
                    self._report(str(error))
                    if troubles >= _MOST_TROUBLES:
                        raise
                waiting += [batch[played:]] if batch[played:] else []
                self._note_next(seed, [*waiting, *running.values()])

    def _draw(self, seed: int) -> HuntCase:
        return draw(seed, self._inventory.schedulers, self._inventory.congestion_controls)

    def _note_next(self, seed: int, without_result: Sequence[Sequence[Numbered]]) -> None:
        self.totals.next_seed = min([seed, *(batch[0][0] for batch in without_result if batch)])

    def _is_over(self) -> bool:
        late = time.monotonic() - self._began > self._limits.minutes * 60
        return late or len(self.totals.faults) >= self._limits.faults

    def _take(self, played: Sequence[Numbered], result: CaseResult, pool: ThreadPoolExecutor) -> None:
        """Count the result of the last one; repeat a failing case and make it smaller, unless its fault is known."""
        seed, case = played[-1]
        self.totals.cases += 1
        self.totals.virtual_s += result.virtual_s
        self.totals.received_bytes += result.received_bytes
        self.totals.subflows += result.joined
        self.totals.standstills += result.standstills
        if not result.violations or len(self.totals.faults) >= self._limits.faults:
            return
        violation, found_s = result.violations[0], time.monotonic() - self._began
        if any(violation.is_like(fault.violation) for fault in self.totals.faults):
            self.totals.alike.append(seed)
            return
        self._report(f"seed {seed} after {found_s:.0f} s: {violation.kind}: {violation.text}")

        def first_failing(cases: Sequence[HuntCase]) -> int | None:
            failing = (
                index
                for index, outcome in enumerate(pool.map(self._attempt, cases))
                if _has(outcome, violation) and not self._is_shared(cases[index], violation)
            )
            return next(failing, None)

        failing = self._failing_alone(case, violation, first_failing)
        if failing is None:
            if self._is_shared(case, violation):
                self.totals.shared += 1
                self._report(f"seed {seed}: the other kernel fails so, too")
                return
            first = played[0][0]
            self.totals.unrepeated.append((first, seed))
            self._report(
                f"seed {seed}: the failure did not happen again in a guest of its own, but after seed {first}"
            )
            return
        smallest, attempts = shrink(failing, first_failing, self._limits.jobs)
        last = self._play_one(smallest)
        shown = next((candidate for candidate in last.violations if violation.is_like(candidate)), violation)
        fault = Fault(seed, shown, smallest, case, attempts, last.log, found_s)
        self.totals.faults.append(fault)
        self._keep(fault)

    def _failing_alone(
        self, case: HuntCase, violation: Violation, first_failing: Callable[[Sequence[HuntCase]], int | None]
    ) -> HuntCase | None:
        """Return the case, if need be with other random numbers of its guest, if it fails in a guest of its own."""
        if first_failing([case]) is not None:
            return case
        if self._is_shared(case, violation):
            return None
        others = [case.model_copy(update={"seed": (case.seed + more) % 2**31}) for more in _OTHER_SEEDS]
        index = first_failing(others)
        return None if index is None else others[index]

    def _is_shared(self, case: HuntCase, violation: Violation) -> bool:
        """Return whether the other kernel, if there is one, fails so in this case."""
        if self._elsewhere is None:
            return False
        try:
            return _has(self._elsewhere(case), violation)
        except TrialError:
            return False

    def _play_one(self, case: HuntCase) -> CaseResult:
        return self._play_all([case])[0]

    def _attempt(self, case: HuntCase) -> CaseResult | None:
        """Return the result, or None for a case that cannot be played."""
        try:
            return self._play_one(case)
        except TrialError:
            return None


def _has(outcome: CaseResult | None, violation: Violation) -> bool:
    return outcome is not None and any(violation.is_like(candidate) for candidate in outcome.violations)
