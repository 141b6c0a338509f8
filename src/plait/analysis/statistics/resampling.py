"""Random signs and resamples of fixed seeds: the same values always give the same p values and intervals.

Studies test many metrics over one number of trials, so what was drawn for a small number is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SEED = 8684
RESAMPLES = 4000
EXACT = 12
"""Blocks up to which every sign pattern counts."""
FLIPS = 9999
"""Sign patterns of more blocks."""
_EQUAL = 1e-9
_CHUNK = 1_000_000
"""Numbers that are drawn at once, and the most that are kept."""


def sign_flip_p(contrasts: NDArray[np.float64]) -> float:
    """Return the share of sign patterns of blocks whose mean is at least as far from zero as that of `contrasts`.

    Of up to 12 blocks all patterns count, of more 9999 random ones and the observed one.

    Args:
        contrasts: blocks x contrasts; the distance is that of the vector of means.
    """
    n = len(contrasts)
    observed = float((contrasts.sum(axis=0) ** 2).sum()) * (1 - _EQUAL)
    extreme = patterns = 0
    for signs in _sign_patterns(n):
        extreme += int((((signs @ contrasts) ** 2).sum(axis=1) >= observed).sum())
        patterns += len(signs)
    return extreme / patterns if n <= EXACT else (extreme + 1) / (patterns + 1)


def resampled_means(data: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of 4000 resamples of `data`; of rows, a mean of each column."""
    import numpy as np

    return np.concatenate([data[places].mean(axis=1) for places in _resamples(len(data))])


def _sign_patterns(n: int) -> Iterator[NDArray[np.int8]]:
    """Yield patterns x n signs, in pieces."""
    if FLIPS * n <= _CHUNK:
        yield _kept_sign_patterns(n)
    else:
        yield from _drawn_sign_patterns(n)


@lru_cache(maxsize=4)
def _kept_sign_patterns(n: int) -> NDArray[np.int8]:
    import numpy as np

    if n <= EXACT:
        return (2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1).astype(np.int8)
    return np.concatenate(list(_drawn_sign_patterns(n)))


def _drawn_sign_patterns(n: int) -> Iterator[NDArray[np.int8]]:
    import numpy as np

    generator = np.random.RandomState(SEED)
    rows = max(1, _CHUNK // n)
    for start in range(0, FLIPS, rows):
        yield (2 * generator.randint(0, 2, size=(min(rows, FLIPS - start), n)) - 1).astype(np.int8)


def _resamples(n: int) -> Iterator[NDArray[np.int64]]:
    """Yield resamples x n places, in pieces."""
    if RESAMPLES * n <= _CHUNK:
        yield _kept_resamples(n)
    else:
        yield from _drawn_resamples(n)


@lru_cache(maxsize=4)
def _kept_resamples(n: int) -> NDArray[np.int64]:
    import numpy as np

    return np.concatenate(list(_drawn_resamples(n)))


def _drawn_resamples(n: int) -> Iterator[NDArray[np.int64]]:
    import numpy as np

    generator = np.random.RandomState(SEED)  # its stream is frozen; that of newer ones may change
    rows = max(1, _CHUNK // n)
    for start in range(0, RESAMPLES, rows):
        yield generator.randint(0, n, size=(min(rows, RESAMPLES - start), n))
