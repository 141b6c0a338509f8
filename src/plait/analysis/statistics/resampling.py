"""Random signs and resamples of fixed seeds: the same values always give the same p values and intervals."""

from __future__ import annotations

from collections.abc import Iterator

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
"""Numbers that are drawn at once."""


def sign_flip_p(contrasts: NDArray[np.float64]) -> float:
    """Return the share of sign patterns of blocks whose mean is at least as far from zero as that of `contrasts`.

    Of up to 12 blocks all patterns count, of more 9999 random ones and the observed one.

    Args:
        contrasts: blocks x contrasts; the distance is that of the vector of means.
    """
    n = len(contrasts)
    observed = float((contrasts.sum(axis=0) ** 2).sum()) * (1 - _EQUAL)
    extreme = patterns = 0
    bits = [np.arange(2**n)[:, None] >> np.arange(n) & 1] if n <= EXACT else _drawn(FLIPS, n, 2)
    for signs in (2 * drawn.astype(np.int8) - 1 for drawn in bits):
        extreme += int((((signs @ contrasts) ** 2).sum(axis=1) >= observed).sum())
        patterns += len(signs)
    return extreme / patterns if n <= EXACT else (extreme + 1) / (patterns + 1)


def resampled_means(data: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of 4000 resamples of `data`; of rows, a mean of each column."""
    n = len(data)
    return np.concatenate([data[places].mean(axis=1) for places in _drawn(RESAMPLES, n, n)])


def _drawn(rows: int, n: int, bound: int) -> Iterator[NDArray[np.int64]]:
    """Yield rows x n random numbers from 0 to `below` - 1, in pieces."""
    generator = np.random.RandomState(SEED)  # its stream is frozen; that of newer ones may change
    piece = max(1, _CHUNK // n)
    for start in range(0, rows, piece):
        yield generator.randint(0, bound, size=(min(piece, rows - start), n))
