"""The rate of a running study, and the time that is left with its uncertainty.

The rate is that of the latest trials. Its uncertainty is the standard error over ten blocks of these trials (batch
means, Law and Carson, Operations Research 27(5), 1979), so that trials of different length widen the range.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

from plait.study.study import TrialOutcome

_LATEST = 400
_BLOCKS = 10
_MIN = 2 * _BLOCKS
_Z95 = 1.96


@dataclass(frozen=True)
class _TimeLeft:
    """The seconds until a study ends, and the 95 % range; the upper end is None if the rate is too uncertain."""

    expected_s: float
    low_s: float
    high_s: float | None


@dataclass
class Meter:
    """Counts the trials of a study that has `total` of them, since the time `started` in seconds."""

    total: int
    started: float
    finished: int = 0
    failed: int = 0
    _times: deque[float] = field(default_factory=lambda: deque(maxlen=_LATEST))

    def count(self, outcome: TrialOutcome, now: float) -> None:
        """Count a trial that ended at the time `now`."""
        self.finished += 1
        self.failed += outcome.error is not None
        if not outcome.reused:  # the store is faster than any worker
            self._times.append(now)

    @property
    def rate(self) -> float | None:
        """Trials per second; None until some have run."""
        if len(self._times) < 2 or self._times[-1] <= self._times[0]:
            return None
        return (len(self._times) - 1) / (self._times[-1] - self._times[0])

    @property
    def time_left(self) -> _TimeLeft | None:
        """The time that is left; None until enough trials have run."""
        if len(self._times) < _MIN or self.rate is None:
            return None
        size = (len(self._times) - 1) // _BLOCKS
        times = list(self._times)[-(size * _BLOCKS + 1) :]
        blocks = [times[(block + 1) * size] - times[block * size] for block in range(_BLOCKS)]
        mean = sum(blocks) / _BLOCKS
        deviation = math.sqrt(sum((block - mean) ** 2 for block in blocks) / (_BLOCKS - 1))
        remaining = (self.total - self.finished) / size
        # The mean of past blocks is uncertain, and so is the sum of the coming ones.
        half = _Z95 * deviation * math.sqrt(remaining**2 / _BLOCKS + remaining)
        expected = mean * remaining
        high = expected + half
        return _TimeLeft(
            expected, max(0.0, expected - half), high if half < expected or not remaining else None
        )


def duration(seconds: float) -> str:
    """Return a duration as people read it: `45 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
