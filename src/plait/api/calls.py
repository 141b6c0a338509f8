"""`plait.load`, `plait.run`, `plait.open`: what people call from a notebook."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plait import scenario as scenarios
from plait.api.study import Study
from plait.engine.factory import make_engine
from plait.errors import RequestError
from plait.report import build
from plait.study.perform import Options, perform
from plait.study.progress import in_notebook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plait.engine.engine import Engine
    from plait.scenario import Scenario


def load(reference: str | Path, **fields: object) -> Scenario:
    """Return the scenario in a file, or the shipped one of that name; see docs/reference/scenario.md for its fields.

    `fields` replace single fields of the top level (`repeat=3`); `set` is a mapping from dotted paths to values
    (`set={"network.links.*.rate": "10mbit"}`). Raises plait.errors.ScenarioError with every mistake.
    """
    paths = fields.pop("set", {})
    if not isinstance(paths, dict):
        raise RequestError("plait.load(.., set=): write a mapping from paths to values, {'repeat': 3}")
    return scenarios.load(reference, tuple(_options({**paths, **fields})))


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
    calibrate: bool = True,
    progress: bool = True,
) -> Study:
    """Run a scenario (one that was loaded, a file, or the name of a shipped one) and returns its study.

    `out` is the result folder (results/NAME); `seed` and `repeat` replace the scenario's; `jobs` trials run at once;
    `set` maps dotted paths to values; `fresh` runs even trials that are in the store; `kernel` names a built one;
    `yes` confirms more than 10 000 trials; without `calibrate` links are not measured first. Trials that fail are in
    the study's `failed`; the others are kept.

    Raises plait.errors.RequestError (nothing was run), MachineError, and KeyboardInterrupt when it was stopped: what
    had finished is kept, and the same call goes on from there.
    """
    if isinstance(scenario, str | Path):
        name, command = Path(scenario).stem, f"plait run {scenario}"
        loaded = load(scenario, set=dict(set or {}))
    else:
        if set:
            raise RequestError("plait.run(.., set=): a scenario that is loaded already is set by plait.load")
        loaded = scenario
        source = loaded.source.name if loaded.source is not None else ""
        name = (
            Path(source).stem or re.sub(r"[^a-z0-9]+", "-", loaded.title.lower()).strip("-")[:60] or "study"
        )
        command = f"plait run {source}" if source else ""
    options = Options(
        seed=seed, repeat=repeat, jobs=jobs, fresh=fresh, confirmed=yes, calibrate=calibrate, command=command
    )
    folder, outcome = perform(
        loaded,
        name,
        (lambda: engine) if engine is not None else partial(make_engine, kernel=kernel),
        options,
        folder=Path(out) if out is not None else None,
        watch=partial(in_notebook, shown=progress),
        notify=lambda _: None,
    )
    if outcome.interrupted:
        raise KeyboardInterrupt
    build(folder)
    return Study(folder)


def open_study(folder: str | Path) -> Study:
    """Return the study in a result folder that was made before (plait.errors.DataError when it is none)."""
    return Study(Path(folder))


def _options(fields: Mapping[str, object]) -> list[str]:
    """Return the fields as the command line would set them."""
    return [f"{path}={json.dumps(value, default=str)}" for path, value in fields.items()]
