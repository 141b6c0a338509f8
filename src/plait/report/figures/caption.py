"""The caption of a figure: the metric that it shows, what its marks mean, and the text of the scenario's author.

Each kind of figure says in its `caption` method, in its own file below `kinds/`, what its marks mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plait.analysis.metrics.catalogue import title_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.report.figures.kind import Content, FigureKind, FigureRequest, Spec


@dataclass(frozen=True)
class Caption:
    """All words around a figure; each part may be empty."""

    metric: str
    """The title of the metric; empty where panels have titles."""
    marks: str
    """What the marks mean, in plait's words."""
    author: str
    """The text of the scenario's author."""

    def with_marks(self, sentence: str) -> Caption:
        """Return the caption with a further sentence of plait's."""
        return replace(self, marks=f"{self.marks} {sentence}".strip())


def caption_of(kind: FigureKind, wanted: FigureRequest, content: Content) -> Caption:
    """Return the caption of a figure."""
    metric = kind.heading(wanted)
    title = title_of(metric, content.summary.labels) if metric else ""
    return Caption(title, kind.caption(wanted, content), wanted.author_text)


def with_description(panels: Sequence[Spec], caption: Caption) -> tuple[Spec, ...]:
    """Return the panels with the author's text as their description: screen readers and vector files use it."""
    if not caption.author:
        return tuple(panels)
    return tuple({**panel, "description": caption.author} for panel in panels)
