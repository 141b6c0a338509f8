"""Parts of a study: a shard for machines that share nothing (`plait merge` puts shards together), and a selection."""

from __future__ import annotations

import re
from dataclasses import dataclass

from plait.errors import RequestError

MOST_SHARDS = 100_000
_TEXT = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


@dataclass(frozen=True)
class Shard:
    """Shard `number` (from 1) of `total`."""

    number: int
    total: int

    def holds(self, position: int) -> bool:
        """Return whether the shard has the trial at this position (from 0) of the study."""
        return position % self.total == self.number - 1

    @property
    def in_folder(self) -> Shard:
        """The trials that its result folder has."""
        return self

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


@dataclass(frozen=True)
class TrialSelection:
    """Chosen trials of a study, by their positions (from 0)."""

    positions: frozenset[int]
    done: frozenset[int] = frozenset()
    """Trials that ran before: they stay in the result folder, and do not run again."""

    def holds(self, position: int) -> bool:
        """Return whether the trial at this position is chosen."""
        return position in self.positions

    @property
    def in_folder(self) -> TrialSelection:
        """The trials that its result folder has."""
        return TrialSelection(self.positions | self.done)


StudyPart = Shard | TrialSelection


def shard(text: str) -> Shard:
    """Return the shard that a text such as `3/16` names (RequestError)."""
    match = _TEXT.fullmatch(text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]) <= MOST_SHARDS:
        raise RequestError(f"--shard {text}: write I/N with I from 1 to N, for example 3/16")
    return Shard(int(match[1]), int(match[2]))
