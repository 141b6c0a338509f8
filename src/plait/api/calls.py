"""`plait.load`, `plait.run`, `plait.open` and `plait.compare`: the functions for notebooks and scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from operator import index
from pathlib import Path

from plait.analysis.model import StudiesComparison
from plait.api.study import Study
from plait.engine.engine import Engine
from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.errors import RequestError, shell_command
from plait.report import build
from plait.scenario import Scenario
from plait.scenario.generators.written import plain
from plait.scenario.read.load import load as load_scenario
from plait.scenario.vary.overrides import Override
from plait.study.executors.choice import executor_of
from plait.study.executors.executor import TrialExecutor
from plait.study.perform import Options, perform
from plait.study.progress import in_notebook


def load(
    reference: str | Path,
    *,
    set: Mapping[str, object] | None = None,  # noqa: A002 - as on the command line
    **fields: object,
) -> Scenario:
    """Return the scenario in a file, or the shipped one of that name (docs/reference/scenario.md lists the fields).

    `fields` replace single top-level fields (`repeat=3`); `set` maps dotted paths to values
    (`set={"network.links.*.rate": "10mbit"}`). Raises plait.errors.ScenarioError with every mistake.
    """
    if set is not None and not isinstance(set, Mapping):
        raise RequestError(
            "plait.load(.., set=): the value is no mapping; write a mapping from paths to values, {'repeat': 3}"
        )
    paths = [
        Override(path, plain(value), f"set={{{path!r}: {value!r}}}") for path, value in (set or {}).items()
    ]
    named = [Override(name, plain(value), f"{name}={value!r}") for name, value in fields.items()]
    return load_scenario(reference, [*paths, *named])


def compare(
    before: Study | str | Path,
    after: Study | str | Path,
    *,
    metrics: str | Sequence[str] = (),
    tolerance: float | None = None,
) -> StudiesComparison:
    """Return how a study (or its result folder) compares with an earlier one, as `plait compare BEFORE AFTER` does.

    Without `metrics`, those decide by which the scenario of `after` judges, or else all that represent a kind of
    traffic. Without `tolerance` (a ratio: 0.02 is 2 %), the smallest difference of interest of each metric decides.
    Raises plait.errors.RequestError if plait cannot judge by a metric, or if there is nothing that both measured.
    """
    if tolerance is not None and not (isinstance(tolerance, int | float) and 0 <= tolerance <= 1):
        raise RequestError(
            f"plait.compare(.., tolerance=): {tolerance!r} is not a ratio; write for example 0.02 for 2 %"
        )
    earlier, later = (study if isinstance(study, Study) else open_study(study) for study in (before, after))
    named = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    return later.compared_with(earlier, metrics=named, tolerance=tolerance)


def run(
    scenario: str | Path | Scenario,
    *,
    out: str | Path | None = None,
    seed: int | None = None,
    repeat: int | None = None,
    jobs: int | None = None,
    set: Mapping[str, object] | None = None,  # noqa: A002 - as on the command line
    fresh: bool = False,
    engine: Engine | None = None,
    kernel: str | None = None,
    yes: bool = False,
    calibrate: bool = False,  # noqa: ARG001 - read for one version
    progress: bool = True,
    executor: Executor | TrialExecutor | str | None = None,
    insecure: bool = False,
) -> Study:
    """Run a scenario (a loaded one, a file, or the name of a shipped one) and return its study.

    `out` is the result folder (default: results/NAME); `seed` and `repeat` replace those of the scenario; `jobs` trials
    run at once; `set` maps dotted paths to values; `fresh` also runs trials that the store has; `kernel` names a built
    kernel; `yes` confirms a study of more than 10 000 trials; `calibrate` has no effect any more;
    `executor` runs the trials: any `concurrent.futures.Executor`, or a Dask cluster (`tls://HOST:PORT`, `local:N`).
    `insecure` accepts a cluster without TLS (`tcp://HOST:PORT`): everyone who reaches its ports can run code as you.
    The study lists failed trials in `failed`, and keeps the others.

    Raises plait.errors.RequestError (plait ran nothing), MachineError, and KeyboardInterrupt if the user stops the run:
    finished trials stay, and the same call continues from there.
    """
    if isinstance(scenario, str | Path):
        name, command = Path(scenario).stem, shell_command("plait", "run", scenario)
        loaded = load(scenario, set=set)
    else:
        if set:
            raise RequestError(
                "plait.run(.., set=): the scenario is already loaded; pass `set` to plait.load instead"
            )
        loaded = scenario
        source = loaded.source.name if loaded.source is not None else ""
        name = (
            Path(source).stem or re.sub(r"[^a-z0-9]+", "-", loaded.title.lower()).strip("-")[:60] or "study"
        )
        command = shell_command("plait", "run", source) if source else ""
    counts = _whole("seed", seed, least=0), _whole("repeat", repeat, least=1), _whole("jobs", jobs, least=1)
    options = Options(*counts, fresh=fresh, confirmed=yes, command=command)
    folder, outcome = perform(
        loaded,
        name,
        (lambda _: engine) if engine is not None else partial(make_engine, request=EngineRequest(kernel)),
        options,
        folder=Path(out) if out is not None else None,
        watch=partial(in_notebook, shown=progress),
        executor=executor_of(executor, insecure=insecure),
    )
    if outcome.interrupted:
        raise KeyboardInterrupt
    build(folder)
    return Study(folder)


def open_study(folder: str | Path) -> Study:
    """Return the study in an existing result folder (plait.errors.DataError if the folder is none)."""
    return Study(Path(folder))


def _whole(name: str, value: int | None, *, least: int) -> int | None:
    try:
        number = None if value is None else index(value)
    except TypeError:
        number = least - 1
    if number is not None and number < least:
        raise RequestError(
            f"plait.run(.., {name}=): {value!r} is not a whole number of at least {least}; write one, or leave it out"
        )
    return number
