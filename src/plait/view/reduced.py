"""The trials of a study as rows of metrics: reduced in the background, through the cache, and up to date while it runs.

Reducing a trial takes some 30 ms. So the first visit to a large study fills in its trials while the page is used, and
later visits find them in the cache of reports.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from plait.analysis.model import Exclusion
from plait.analysis.rows import FailedTrial, TrialRow
from plait.dataset.trial import read_trial, trial_folder, trial_numbers
from plait.errors import DataError
from plait.files import Folder
from plait.metrics import Metrics
from plait.results.reduce import reduced_one


@dataclass(frozen=True)
class _ViewedTrial:
    """One trial: its seed, and its metrics or why it has none."""

    seed: int
    error: str | None
    metrics: Metrics


class ReducedTrials:
    """The trials of one study; a thread reduces those that are not in the cache, requested cases first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._rows: dict[str, dict[int, _ViewedTrial]] = {}
        self._waiting: dict[str, dict[int, None]] = {}
        self._first: str | None = None
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self.version = 0
        """Grows with every row."""
        self.changed: dict[str, int] = {}
        """The version at which each case last got a row."""

    def want(self, cases: Sequence[str], first: str | None = None) -> None:
        """Look for trials of these cases and reduce them in the background, those of `first` before others.

        Raises DataError if a link is in the way.
        """
        self._look_for(cases)
        with self._lock:
            self._first = first or self._first
            if self._waiting and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._work, daemon=True)
                self._thread.start()

    def finish(self, cases: Sequence[str]) -> Iterator[int]:
        """Reduce all trials of these cases now; yield how many are left before each."""
        self._look_for(cases)
        while (place := self._next()) is not None:
            yield self.pending()
            self._add(*place)

    def of_case(self, case: str) -> dict[int, _ViewedTrial]:
        """Return the rows of a case so far, by number."""
        with self._lock:
            return dict(sorted(self._rows.get(case, {}).items()))

    def pending(self, case: str | None = None) -> int:
        """Return how many trials, of one case or of all, still wait."""
        with self._lock:
            return sum(len(numbers) for name, numbers in self._waiting.items() if case in (None, name))

    def close(self) -> None:
        """Stop the background thread after the trial that it works on."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def _look_for(self, cases: Sequence[str]) -> None:
        for case in cases:
            numbers = trial_numbers(self._folder, case)
            with self._lock:
                known = self._rows.get(case, {})
                if waiting := {number: None for number in numbers if number not in known}:
                    self._waiting[case] = waiting

    def _next(self) -> tuple[str, int] | None:
        with self._lock:
            if not self._waiting:
                return None
            case = self._first if self._first in self._waiting else next(iter(self._waiting))
            return case, next(iter(self._waiting[case]))

    def _work(self) -> None:
        while not self._closed.is_set() and (place := self._next()) is not None:
            self._add(*place)

    def _add(self, case: str, number: int) -> None:
        row = _viewed(trial_folder(self._folder, case, number))
        with self._lock:
            self._rows.setdefault(case, {})[number] = row
            waiting = self._waiting.get(case, {})
            waiting.pop(number, None)
            if not waiting:
                self._waiting.pop(case, None)
            self.version += 1
            self.changed[case] = self.version


def _viewed(folder: Folder) -> _ViewedTrial:
    """Return the row of a trial; damaged files are its error."""
    try:
        record = read_trial(folder).provenance
        match reduced_one(folder):
            case FailedTrial(error=error):
                return _ViewedTrial(record.seed, f"failed: {error}", {})
            case Exclusion(reason=reason):
                return _ViewedTrial(record.seed, f"left out of means: {reason}", {})
            case TrialRow(metrics=metrics):
                return _ViewedTrial(record.seed, None, metrics)
    except DataError as error:
        return _ViewedTrial(0, f"failed: {error}", {})
    except OSError as error:
        return _ViewedTrial(0, f"failed: {error.filename}: {error.strerror}", {})
