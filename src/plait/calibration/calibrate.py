"""Measure the link settings of a study that are not in the cache, and refuse a link that is out of tolerance.

The user's cache keeps the figures by setting, kernel and agent, so that a machine measures each setting once.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from plait.calibration import verdict
from plait.calibration.probes import SETTINGS_IN_PLAN, measurement_plan
from plait.calibration.settings import Setting, Users, settings_of
from plait.calibration.verdict import MeasuredFigure
from plait.dataset.convert import convert
from plait.engine.engine import Engine, EngineIdentity, Job
from plait.engine.workspace import Workspace
from plait.errors import MachineError
from plait.files import Folder
from plait.limits import remedy
from plait.plan.model.plan import Plan

SCHEMA = 1
METHOD = 3
"""Increases when the method of measurement changes, so that cached figures are not used."""
FILE = "calibration.json"
_MAX_LINES = 8
_MAX_LINKS = 3
_FIGURES = TypeAdapter(list[MeasuredFigure])


@dataclass(frozen=True)
class Calibration:
    """The measurements of every link setting of a study on one engine."""

    engine: str
    settings: dict[Setting, Users]
    """Each setting, with the link directions and the cases that use it."""
    figures: dict[Setting, list[MeasuredFigure]]
    measured: int
    """The number of settings that were measured now; the others came from the cache."""

    def as_json(self) -> dict[str, Any]:
        """Return the content of calibration.json."""
        settings = [
            {
                "links": users.links,
                "setting": verdict.describe(setting),
                "figures": {figure.name: figure.as_json() for figure in self.figures[setting]},
            }
            for setting, users in self.settings.items()
        ]
        return {
            "schema": SCHEMA,
            "tolerance": {
                "delay_us": verdict.DELAY_TOLERANCE_US,
                "rate_ratio": verdict.RATE_TOLERANCE,
                "surprise": verdict.FALSE_ALARM,
            },
            "settings": settings,
        }

    @property
    def sentence(self) -> str:
        """The line for the terminal."""
        errors = verdict.worst(list(self.figures.values()))
        parts = [f"delay within {verdict.time(errors['delay_us'])}"] if "delay_us" in errors else []
        parts += [f"rate within {verdict.percent(errors['rate'])}"] if "rate" in errors else []
        lossy = any(
            figure.name == "loss_ratio" and figure.configured
            for figures in self.figures.values()
            for figure in figures
        )
        parts += ["loss as configured"] if lossy else []
        count = len(self.settings)
        return f"{count} link setting{'s' if count != 1 else ''} calibrated: {', '.join(parts) or 'nothing to measure'}"


def keep(calibrations: Sequence[Calibration], folder: Path) -> None:
    """Write calibration.json to a result folder; without a calibration, remove it.

    With those of several engines, each setting has the name of its engine.
    """
    if not calibrations:
        if Folder(folder).has(FILE):
            Folder(folder).remove(FILE)
        return
    document = calibrations[0].as_json()
    if len(calibrations) > 1:
        document["settings"] = [
            {"engine": calibration.engine, **setting}
            for calibration in calibrations
            for setting in calibration.as_json()["settings"]
        ]
    Folder(folder).write(FILE, (json.dumps(document, indent=1) + "\n").encode())


def calibrate(
    plans: Iterable[tuple[str, Plan]],
    engine: Engine,
    identity: EngineIdentity,
    cache: Path,
    *,
    jobs: int,
    fresh: bool,
) -> Calibration:
    """Return the measurements of the link settings in `plans`; measure those that the cache does not have.

    Args:
        plans: plans with the names of their cases.
        engine: the engine that runs the measurement.
        identity: the identity of engine, kernel and agent; part of the cache key.
        cache: the cache directory.
        jobs: how many guests run at once.
        fresh: measure every setting, even if it is in the cache.

    Raises:
        MachineError: a figure is out of tolerance.
        TrialError: a guest failed.
    """
    settings = settings_of(plans)
    cached = {} if fresh else {setting: _read_cached(cache, setting, identity) for setting in settings}
    figures = {setting: measured for setting, measured in cached.items() if measured is not None}
    unknown = [setting for setting in settings if setting not in figures]
    for setting, measured in _measure_all(unknown, engine, cache, jobs) if unknown else ():
        figures[setting] = measured
        _write_cache(cache, setting, identity, measured)
    calibration = Calibration(identity.engine, settings, figures, len(unknown))
    refuse(calibration)
    return calibration


def _measure_all(
    settings: Sequence[Setting], engine: Engine, cache: Path, jobs: int
) -> Iterator[tuple[Setting, list[MeasuredFigure]]]:
    """Yield each setting with its figures; an interrupt ends the guests. MachineError: no space to work in."""
    stop = threading.Event()
    batches = [settings[i : i + SETTINGS_IN_PLAN] for i in range(0, len(settings), SETTINGS_IN_PLAN)]
    with Workspace(cache / "exec", ".work-") as work, ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            measured = pool.map(lambda batch: _measure(batch, engine, work, stop), batches)
            for batch, figures in zip(batches, measured, strict=True):
                yield from zip(batch, figures, strict=True)
        except OSError as error:
            raise MachineError(
                f"calibrating links in {work.path}: {error.strerror}; {remedy(error, 'set PLAIT_CACHE')}"
            ) from error
        finally:
            stop.set()


def _measure(
    settings: Sequence[Setting], engine: Engine, work: Workspace, stop: threading.Event
) -> list[list[MeasuredFigure]]:
    plan, probes = measurement_plan(settings)
    folder = work.job()
    engine.execute(Job(plan, {}, folder, stop))
    messages = convert(folder / "data", work.job())["messages"]
    return [verdict.figures(probe, messages) for probe in probes]


def refuse(calibration: Calibration) -> None:
    """Raise MachineError if a figure is out of tolerance."""
    mistakes = [
        f"{_used(users)} ({verdict.setting(setting)}): {verdict.figure(figure)}"
        for setting, users in calibration.settings.items()
        for figure in calibration.figures[setting]
        if not figure.good
    ]
    if not mistakes:
        return
    omitted = [f"and {len(mistakes) - _MAX_LINES} more"] if len(mistakes) > _MAX_LINES else []
    lines = "\n  ".join([*mistakes[:_MAX_LINES], *omitted])
    raise MachineError(
        f"calibrating links: the measured links differ from the scenario:\n  {lines}\n"
        "No trial ran. The scenario is valid; the fault is in the kernel or in plait. Check both with `plait doctor`, "
        "and report these lines if it finds nothing. --no-calibration runs the study on these links as they are."
    )


def _used(users: Users) -> str:
    """Return the link directions that have a setting, and its cases if the study has several."""
    links = ", ".join(users.links[:_MAX_LINKS]) + (
        f" and {n} more" if (n := len(users.links) - _MAX_LINKS) > 0 else ""
    )
    cases = [case for case in users.cases if case]
    if not cases:
        return links
    rest = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
    return f"{links} in case {cases[0]}{rest}"


def _cache_file(cache: Path, setting: Setting, identity: EngineIdentity) -> tuple[Folder, str]:
    """Return the folder and the name of the cache file of a setting."""
    parts = (str(METHOD), setting.identity, identity.engine, identity.kernel, identity.agent_sha256)
    name = sha256("\0".join(parts).encode()).hexdigest()
    return Folder(cache) / "calibration" / name[:2], f"{name}.json"


def _read_cached(cache: Path, setting: Setting, identity: EngineIdentity) -> list[MeasuredFigure] | None:
    """Return the cached figures; None if there are none, or if the file is damaged."""
    folder, name = _cache_file(cache, setting, identity)
    try:
        figures = _FIGURES.validate_json(folder.read(name))
    except (OSError, ValidationError):
        return None
    sound = tuple(figure.name for figure in figures) == verdict.NAMES and all(
        figure.good for figure in figures
    )
    return figures if sound else None


def _write_cache(
    cache: Path, setting: Setting, identity: EngineIdentity, figures: list[MeasuredFigure]
) -> None:
    """Cache figures that are within tolerance; others are measured again next time."""
    if not all(figure.good for figure in figures):
        return
    folder, name = _cache_file(cache, setting, identity)
    with contextlib.suppress(OSError):  # without a cache, the setting is measured again next time
        folder.write(name, json.dumps([vars(figure) for figure in figures]).encode())
