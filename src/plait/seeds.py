"""Seeds that follow from seeds: the same everywhere, different for every purpose. Pure."""

from __future__ import annotations

from hashlib import sha256

SEED_BITS = 53
"""So that JSON's numbers hold a seed exactly."""


def derived(seed: int, *purpose: object) -> int:
    """A seed below 2**53 that follows from `seed` and what it is for."""
    text = "/".join(str(part) for part in ("plait", seed, *purpose))
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") >> (64 - SEED_BITS)


def trial_seed(study_seed: int, repeat: int) -> int:
    """The seed of one repeat (from 0) of a study, below 2**53.

    It is the same for all cases of the repeat: common random numbers make their difference sharper.
    """
    return derived(study_seed, "repeat", repeat)
