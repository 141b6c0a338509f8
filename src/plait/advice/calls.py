"""`plait.advise`: the advice for notebooks and scripts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from plait.advice.goals import goals_named
from plait.advice.result import Advice
from plait.advice.search import AdviceRequest, search
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.scenario import Scenario, load


def advise(
    lines: str | Path | Scenario,
    *,
    goals: str = "download",
    minutes: float = 2.0,
    out: str | Path | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    kernel: str | None = None,
) -> Advice:
    """Return what helps on the lines of a scenario (a loaded one, or a file), as `plait advise` does.

    `goals` names uses of the lines (`download,call`), the search takes at most about `minutes`, and its studies go to
    the folder `out` (default: results/NAME-advice). Raises plait.errors.RequestError, MachineError, ScenarioError.
    """
    scenario = load(lines, ()) if isinstance(lines, str | Path) else lines
    name = Path(lines).stem if isinstance(lines, str | Path) else "lines"
    folder = Path(out) if out is not None else Path("results") / f"{name}-advice"
    request = AdviceRequest(goals_named(goals), minutes, folder, seed, jobs)
    return search(scenario, request, partial(make_engine, request=EngineRequest(kernel)))
