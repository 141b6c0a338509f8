"""`plait.load`, `plait.run`, `plait.open`: what people call from a notebook."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import plait
from plait import scenario as scenarios
from plait.api.study import Study
from plait.errors import RequestError
from plait.report import build
from plait.study.perform import Options, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from plait.engine.engine import Engine
    from plait.scenario import Scenario
    from plait.study.runner import Observer, TrialKey, TrialOutcome


def load(reference: str | Path, **fields: object) -> Scenario:
    """Returns the scenario in a file, or the shipped one of that name; see docs/reference/scenario.md for its fields.

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
    """Runs a scenario (one that was loaded, a file, or the name of a shipped one) and returns its study.

    `out` is the result folder (results/NAME); `seed` and `repeat` replace the scenario's; `jobs` trials run at once;
    `set` maps dotted paths to values; `fresh` runs even trials that are in the store; `kernel` names a built one;
    `yes` confirms more than 10 000 trials; without `calibrate` links are not measured first. Trials that fail are in
    the study's `failed`; the others are kept.

    Raises plait.errors.RequestError (nothing was run), MachineError, and KeyboardInterrupt when it was stopped: what
    had finished is kept, and the same call goes on from there.
    """
    if isinstance(scenario, str | Path):
        name, command = Path(scenario).stem, f"plait run {scenario}"
        asked = load(scenario, set=dict(set or {}))
    else:
        if set:
            raise RequestError("plait.run(.., set=): a scenario that is loaded already is set by plait.load")
        asked = scenario
        source = asked.source.name if asked.source is not None else ""
        name = Path(source).stem or re.sub(r"[^a-z0-9]+", "-", asked.title.lower()).strip("-")[:60] or "study"
        command = f"plait run {source}" if source else ""
    options = Options(
        seed=seed, repeat=repeat, jobs=jobs, fresh=fresh, confirmed=yes, calibrate=calibrate, command=command
    )
    folder, outcome = perform(
        asked,
        name,
        (lambda: engine) if engine is not None else _virtual(kernel),
        options,
        folder=Path(out) if out is not None else None,
        watch=lambda total: _watch(total, shown=progress),
        tell=lambda _: None,
    )
    if outcome.interrupted:
        raise KeyboardInterrupt
    build(folder)
    return Study(folder)


def open_study(folder: str | Path) -> Study:
    """Returns the study in a result folder that was made before (plait.errors.DataError when it is none)."""
    return Study(Path(folder))


def _options(fields: Mapping[str, object]) -> list[str]:
    """Returns the fields as the command line would set them."""
    import json

    return [f"{path}={json.dumps(value, default=str)}" for path, value in fields.items()]


def _virtual(kernel: str | None) -> Callable[[], Engine]:
    def make() -> Engine:
        from plait.engine.uml.trial import VirtualEngine
        from plait.kernel import ensure, find

        agent = Path(plait.__file__).parent / "_bin" / "plait-agent"
        return VirtualEngine(find(kernel) if kernel else ensure(), agent)

    return make


class _Silent:
    """Says nothing."""

    def trial_advanced(self, key: TrialKey, virtual_us: int) -> None:
        """Nothing."""

    def trial_ended(self, outcome: TrialOutcome) -> None:
        """Nothing."""


@contextmanager
def _watch(total: int, *, shown: bool) -> Iterator[Observer]:
    """Yields an observer that shows a bar in a notebook or a terminal, and nothing elsewhere."""
    from rich.console import Console

    console = Console()
    if not shown or not (console.is_jupyter or console.is_terminal):
        yield _Silent()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    with Progress(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("", total=total)

        class Bar(_Silent):
            def trial_ended(self, outcome: TrialOutcome) -> None:  # noqa: ARG002 - an end is an end
                bar.advance(task)

        yield Bar()
