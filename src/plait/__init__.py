"""plait: a Multipath TCP laboratory that runs a real Linux kernel in virtual time.

    scenario = plait.load("two-paths", repeat=5)     a file, or a shipped scenario
    study = plait.run(scenario)                      runs it, and returns what was found
    study.summary, study.trials, study.table("subflows"), study.figures
    study = plait.open("results/two-paths")          one that was run before

What is behind these is loaded when it is first used.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"
__all__ = ["Scenario", "Study", "load", "open", "run"]


def __getattr__(name: str) -> Any:
    """Returns what is loaded at its first use."""
    if name in {"Study", "load", "open", "run"}:
        from plait import api

        return getattr(api, name)
    if name == "Scenario":
        from plait.scenario import Scenario

        return Scenario
    raise AttributeError(f"module 'plait' has no attribute '{name}'")
