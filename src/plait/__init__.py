"""plait: a Multipath TCP laboratory that runs a real Linux kernel in virtual time.

    scenario = plait.load("two-paths", repeat=5)     a file, or a shipped scenario
    scenario = plait.scenario({"title": ..})         the same in Python, with the fields of a file
    study = plait.run(scenario)                      runs it, and returns its results
    study.summary, study.trials, study.table("subflows"), study.figures
    study = plait.open("results/two-paths")          a study that was run before
    plait.compare(before, after)                     as the command `plait compare` does
    plait.advise("lines.yaml", goals="download")     as the command `plait advise` does

plait imports what is behind these names when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from plait.version import __version__ as __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plait.advice.calls import advise
    from plait.api import Figure, Study, compare, load, open, run  # noqa: A004 - as plait.open
    from plait.scenario import Scenario

    def scenario(fields: Mapping[str, Any], *, folder: str | Path = ".") -> Scenario:
        """Return the scenario with the fields of a file as Python values."""


__all__ = ["Figure", "Scenario", "Study", "advise", "compare", "load", "open", "run", "scenario"]


if not TYPE_CHECKING:  # a type checker would take any name for one of plait

    def __getattr__(name: str) -> Any:
        """Return what is imported at its first use."""
        if name == "Scenario":
            from plait.scenario import Scenario

            return Scenario
        if name == "advise":
            from plait.advice.calls import advise

            return advise
        if name == "scenario":
            return import_module("plait.scenario")
        if name in __all__:
            from plait import api

            return getattr(api, name)
        raise AttributeError(f"module 'plait' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, "__version__"])
