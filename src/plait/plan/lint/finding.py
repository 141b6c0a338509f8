"""One finding of the lint: a caution before it is known where in the text it belongs, and for which cases it holds."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from plait.cautions import Caution, Code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plait.errors import Mistake
    from plait.scenario.mistakes import Where


@dataclasses.dataclass(frozen=True)
class LintFinding:
    """What was found in one case."""

    code: Code
    where: str
    """The flow, host or direction of a link."""
    message: str
    remedy: str
    field: Where = ()
    """The field of the scenario that would be changed first."""
    figures: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """What was compared, by a name that ends in the unit."""

    def caution(self, place: Mistake | None, cases: tuple[str, ...]) -> Caution:
        """As data, with its place in the text; no `cases` means that all are meant."""
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
