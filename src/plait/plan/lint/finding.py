"""One finding of the lint: a caution without its place in the text, and without the cases that it concerns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from plait.cautions import Caution, Code
from plait.errors import Mistake
from plait.scenario.mistakes import Where


@dataclasses.dataclass(frozen=True)
class LintFinding:
    """A finding in one case."""

    code: Code
    where: str
    """The flow, host or link direction."""
    message: str
    remedy: str
    field: Where = ()
    """The field of the scenario to change first."""
    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The compared values, by a name that ends in the unit."""
    in_all_cases: bool = False
    """It is worth a caution only if no case reads the setting."""

    def caution(self, place: Mistake | None, cases: tuple[str, ...]) -> Caution:
        """Return the finding as data, with its place in the text; no `cases` means all of them."""
        return Caution(
            code=self.code,
            where=self.where,
            message=self.message,
            remedy=self.remedy,
            field=place.path if place is not None else None,
            line=place.line if place is not None else None,
            column=place.column if place is not None else None,
            figures=dict(self.figures),
            cases=cases,
        )
