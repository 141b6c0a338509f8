"""The tests of differences with what they assume, Student's t, and the correction for many tests at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

ALPHA = 0.05
PAIRED_T = "paired t test"
BOOTSTRAP = "bootstrap test over pairs"
WELCH = "Welch's t test"
STUDENT = "Student's t test"
ASSUMES = {
    PAIRED_T: "pairs (of one seed) are independent of each other, and the mean of their differences is normal",
    BOOTSTRAP: "pairs (of one seed) are independent of each other, and enough to show the shape of their values",
    WELCH: "trials are independent, and the mean of each side is normal; spreads may differ",
    STUDENT: "trials are independent and normal, and the single trial's side has the other's spread",
}
"""The assumptions of each test."""


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return each p value corrected for their number, in the same order (Holm, Scand. J. Statist. 6, 1979).

    The k-th least of m is multiplied by m - k + 1 and is no less than the one before it. Missing ones do not count.
    """
    ranked = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    least = 0.0
    for rank, (p, i) in enumerate(ranked):
        least = max(least, min(1.0, p * (len(ranked) - rank)))
        corrected[i] = least
    return corrected


@lru_cache(maxsize=4096)
def t_quantile(degrees: float) -> float:
    """Return the 0.975 quantile of Student's t with `degrees` of freedom, for two-sided 95 % intervals."""
    from scipy import special  # type: ignore[import-untyped]  # no types; importing it takes a quarter of a second

    return float(special.stdtrit(degrees, 0.975))


def t_two_sided(t: float, degrees: float) -> float:
    """Return the probability that Student's t with `degrees` of freedom is at least |t| away from zero."""
    from scipy import special

    return float(2 * special.stdtr(degrees, -abs(t)))
