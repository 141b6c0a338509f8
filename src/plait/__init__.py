"""plait: a Multipath TCP laboratory that runs a real Linux kernel in virtual time.

    scenario = plait.load("two-paths", repeat=5)     a file, or a shipped scenario
    study = plait.run(scenario)                      runs it, and returns its results
    study.summary, study.trials, study.table("subflows"), study.figures
    study = plait.open("results/two-paths")          a study that was run before

plait imports what is behind these names when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plait.version import __version__ as __version__

if TYPE_CHECKING:
    from plait.api import Figure, Study, load, open, run  # noqa: A004 - as plait.open
    from plait.scenario import Scenario

__all__ = ["Figure", "Scenario", "Study", "load", "open", "run"]


if not TYPE_CHECKING:  # a type checker would take any name for one of plait

    def __getattr__(name: str) -> Any:
        """Return what is imported at its first use."""
        if name == "Scenario":
            from plait.scenario import Scenario

            return Scenario
        if name in __all__:
            from plait import api

            return getattr(api, name)
        raise AttributeError(f"module 'plait' has no attribute '{name}'")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, "__version__"])
