"""Student's t distribution, by scipy: imported when it is needed, because the import takes a quarter of a second."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def t_quantile(degrees: float) -> float:
    """Return the 0.975 quantile of Student's t with `degrees` of freedom, for two-sided 95 % intervals."""
    from scipy import special  # type: ignore[import-untyped]  # scipy ships no types

    return float(special.stdtrit(degrees, 0.975))


def t_two_sided(t: float, degrees: float) -> float:
    """Return the probability that Student's t with `degrees` of freedom is at least |t| away from zero."""
    from scipy import special

    return float(2 * special.stdtr(degrees, -abs(t)))
