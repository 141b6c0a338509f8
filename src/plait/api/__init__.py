"""The Python interface behind `import plait`: `plait.load`, `plait.run`, `plait.open`, and their results."""

from __future__ import annotations

from plait.api.calls import compare, load, run
from plait.api.calls import open_study as open  # noqa: A004 - as plait.open
from plait.api.study import Figure, Study

__all__ = ["Figure", "Study", "compare", "load", "open", "run"]
