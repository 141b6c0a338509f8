"""One finding of the lint: a caution without its place in the text, and without the cases that it concerns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from plait.cautions import Code
from plait.scenario.mistakes import Where


@dataclasses.dataclass(frozen=True)
class LintFinding:
    """A finding in one case."""

    code: Code
    where: str
    """The flow, host or link direction."""
    message: str
    remedy: str
    field: Where
    """The field of the scenario to change first."""
    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The compared values, by a name that ends in the unit."""
