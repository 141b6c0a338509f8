"""Plays the cases of one seed after the other, several at once, and makes those that fail smaller."""

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

_MOST_TROUBLES = 5


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
    alike: int = 0
    """Further failing cases, each with a fault like one of `faults`; plait does not examine them."""
    shared: int = 0
    """Failing cases that fail so in the other kernel, too."""
    standstills: int = 0
    """Connections that stood still where Linux itself may."""
    unrepeated: list[int] = field(default_factory=list)
    """Seeds whose failure did not happen again."""
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
        again: Callable[[HuntCase], CaseResult],
        report: Report,
        stop: Event | None = None,
        *,
        keep: Callable[[Fault], None] = lambda _: None,
        elsewhere: Callable[[HuntCase], CaseResult] | None = None,
    ) -> None:
        """Hunt with the algorithms of `inventory`; `again` plays a case (TrialError), and `report` shows a line.

        `elsewhere` plays a case in another kernel, whose faults do not count. `keep` gets each fault as soon as it is
        small. An interrupt sets `stop`, so that `again` ends its guests.
        """
        self._inventory = inventory
        self._limits = limits
        self._again = again
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
        running: dict[Future[CaseResult], tuple[int, HuntCase]] = {}
        while running or not self._is_over():
            while len(running) < self._limits.jobs and not self._is_over():
                case = draw(seed, self._inventory.schedulers, self._inventory.congestion_controls)
                running[pool.submit(self._again, case)] = (seed, case)
                seed += 1
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number, case = running.pop(future)
                try:
                    self._take(number, case, future.result(), pool)
                except TrialError as error:
                    troubles += 1
                    self._report(str(error))
                    if troubles >= _MOST_TROUBLES:
                        raise
                self.totals.next_seed = min([seed, *(waiting for waiting, _ in running.values())])

    def _is_over(self) -> bool:
        late = time.monotonic() - self._began > self._limits.minutes * 60
        return late or len(self.totals.faults) >= self._limits.faults

    def _take(self, seed: int, case: HuntCase, result: CaseResult, pool: ThreadPoolExecutor) -> None:
        """Count a result; repeat a failing case and make it smaller, unless its fault is known."""
        self.totals.cases += 1
        self.totals.virtual_s += result.virtual_s
        self.totals.received_bytes += result.received_bytes
        self.totals.subflows += result.joined
        self.totals.standstills += result.standstills
        if not result.violations or len(self.totals.faults) >= self._limits.faults:
            return
        violation, found_s = result.violations[0], time.monotonic() - self._began
        if any(violation.is_like(fault.violation) for fault in self.totals.faults):
            self.totals.alike += 1
            return
        self._report(f"seed {seed} after {found_s:.0f} s: {violation.kind}: {violation.text}")

        def first_failing(cases: Sequence[HuntCase]) -> int | None:
            failing = (
                index
                for index, outcome in enumerate(pool.map(self._attempt, cases))
                if _has(outcome, violation) and not self._is_shared(cases[index], violation)
            )
            return next(failing, None)

        if first_failing([case]) is None:
            if self._is_shared(case, violation):
                self.totals.shared += 1
                self._report(f"seed {seed}: the other kernel fails so, too")
                return
            self.totals.unrepeated.append(seed)
            self._report(f"seed {seed}: the failure did not happen again")
            return
        smallest, attempts = shrink(case, first_failing, self._limits.jobs)
        last = self._again(smallest)
        shown = next((candidate for candidate in last.violations if violation.is_like(candidate)), violation)
        fault = Fault(seed, shown, smallest, case, attempts, last.log, found_s)
        self.totals.faults.append(fault)
        self._keep(fault)

    def _is_shared(self, case: HuntCase, violation: Violation) -> bool:
        """Return whether the other kernel, if there is one, fails so in this case."""
        if self._elsewhere is None:
            return False
        try:
            return _has(self._elsewhere(case), violation)
        except TrialError:
            return False

    def _attempt(self, case: HuntCase) -> CaseResult | None:
        """Return the result, or None for a case that cannot be played."""
        try:
            return self._again(case)
        except TrialError:
            return None


def _has(outcome: CaseResult | None, violation: Violation) -> bool:
    return outcome is not None and any(violation.is_like(candidate) for candidate in outcome.violations)
