"""Derive seeds from seeds: equal on every machine, different for every purpose."""

from __future__ import annotations

from hashlib import sha256

SEED_BITS = 53
"""JSON numbers are doubles, which hold integers of at most 53 bits exactly."""


def derived(seed: int, *purpose: object) -> int:
    """Return a seed below 2**53 that `seed` and its purpose determine."""
    text = "/".join(str(part) for part in ("plait", seed, *purpose))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> (64 - SEED_BITS)


def trial_seed(study_seed: int, repeat: int) -> int:
    """Return the seed of one repeat (from 0) of a study, below 2**53.

    All cases of a repeat share it: common random numbers reduce the variance of their difference.
    """
    return derived(study_seed, "repeat", repeat)
