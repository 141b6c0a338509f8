"""Measures the settings of a study that are not known yet, and refuses to go on where a link is not as it was meant.

What was found is kept below the user's cache by setting, kernel and agent: a setting is measured once on a machine.
"""

from __future__ import annotations

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from plait.calibration import verdict, words
from plait.calibration.probes import AT_ONCE, probing
from plait.calibration.settings import settings_of
from plait.calibration.verdict import Figure
from plait.dataset.convert import convert
from plait.engine.engine import Job
from plait.engine.workspace import Workspace
from plait.errors import MachineError
from plait.files import Folder
from plait.limits import remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from plait.calibration.settings import Setting, Users
    from plait.engine.engine import Engine, EngineIdentity
    from plait.plan.model.plan import Plan

SCHEMA = 1
METHOD = 2
"""Counts up when settings are measured in another way: what was found before is measured again."""
FILE = "calibration.json"
_SHOWN = 8
_SHOWN_USERS = 3
_FIGURES = TypeAdapter(list[Figure])


@dataclass(frozen=True)
class Calibration:
    """What was measured of every setting of a study."""

    settings: dict[Setting, Users]
    """With the directions and the cases that have it."""
    figures: dict[Setting, list[Figure]]
    measured: int
    """Settings that were measured now; the others were known."""

    def as_json(self) -> dict[str, Any]:
        """The content of calibration.json."""
        found = [
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
                "surprise": verdict.SURPRISE,
            },
            "settings": found,
        }

    @property
    def sentence(self) -> str:
        """A line for the terminal."""
        errors = verdict.worst(list(self.figures.values()))
        said = [f"delay within {words.time(errors['delay_us'])}"] if "delay_us" in errors else []
        said += [f"rate within {errors['rate'] * 100:.2g} %"] if "rate" in errors else []
        lossy = any(
            figure.name == "loss_ratio" and figure.meant
            for found in self.figures.values()
            for figure in found
        )
        said += ["loss as configured"] if lossy else []
        count = len(self.settings)
        return f"{count} link setting{'s' if count != 1 else ''} calibrated: {', '.join(said) or 'nothing to measure'}"


def keep(calibration: Calibration | None, folder: Path) -> None:
    """Writes calibration.json into a result folder; without a calibration there is none."""
    if calibration is None:
        if Folder(folder).has(FILE):
            Folder(folder).remove(FILE)
    else:
        text = json.dumps(calibration.as_json(), indent=1) + "\n"
        Folder(folder).write(FILE, text.encode())


def calibrate(
    plans: Iterable[tuple[str, Plan]],
    engine: Engine,
    identity: EngineIdentity,
    cache: Path,
    *,
    jobs: int,
    fresh: bool,
) -> Calibration:
    """Measures what is not known yet of the settings of `plans`, which come with their case; all where `fresh`.

    Raises MachineError with the figures where one is beyond its tolerance, TrialError when nothing could be measured.
    """
    settings = settings_of(plans)
    figures = {} if fresh else {s: f for s in settings if (f := _recall(cache, s, identity)) is not None}
    unknown = [setting for setting in settings if setting not in figures]
    for setting, measured in _measure_all(unknown, engine, cache, jobs) if unknown else ():
        figures[setting] = measured
        _keep(cache, setting, identity, measured)
    calibration = Calibration(settings, figures, len(unknown))
    refuse(calibration)
    return calibration


def _measure_all(
    settings: Sequence[Setting], engine: Engine, cache: Path, jobs: int
) -> Iterator[tuple[Setting, list[Figure]]]:
    """Yields each setting with what was measured of it; an interrupt ends the guests (OSError: no room to work in)."""
    stop = threading.Event()
    batches = [settings[i : i + AT_ONCE] for i in range(0, len(settings), AT_ONCE)]
    with Workspace(cache / "exec", ".work-") as work, ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            measured = pool.map(lambda batch: _measure(batch, engine, work, stop), batches)
            for batch, found in zip(batches, measured, strict=True):
                yield from zip(batch, found, strict=True)
        except OSError as error:
            raise MachineError(
                f"calibrating links in {work.path}: {error.strerror}; {remedy(error, 'set PLAIT_CACHE')}"
            ) from error
        finally:
            stop.set()


def _measure(
    settings: Sequence[Setting], engine: Engine, work: Workspace, stop: threading.Event
) -> list[list[Figure]]:
    plan, found = probing(settings)
    folder = work.job()
    engine.execute(Job(plan, {}, folder, stop))
    messages = convert(folder / "data", work.job())["messages"]
    return [verdict.figures(one, messages) for one in found]


def refuse(calibration: Calibration) -> None:
    """MachineError where a figure is out of its bounds."""
    wrong = [
        f"{_used(users)} ({words.setting(setting)}): {words.figure(figure)}"
        for setting, users in calibration.settings.items()
        for figure in calibration.figures[setting]
        if not figure.good
    ]
    if not wrong:
        return
    more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
    lines = "\n  ".join([*wrong[:_SHOWN], *more])
    raise MachineError(
        f"calibrating links: the kernel does not do what the scenario asks for:\n  {lines}\n"
        "No trial ran. The scenario is valid; the fault is in the kernel or in plait. Check both with `plait doctor`, "
        "and report these lines if it finds nothing; --no-calibration runs the study on these links as they are."
    )


def _used(users: Users) -> str:
    """The directions that have a setting, and the cases where a study has several."""
    links = ", ".join(users.links[:_SHOWN_USERS]) + (
        f" and {n} more" if (n := len(users.links) - _SHOWN_USERS) > 0 else ""
    )
    cases = [case for case in users.cases if case]
    if not cases:
        return links
    others = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
    return f"{links} in case {cases[0]}{others}"


def _place(cache: Path, setting: Setting, identity: EngineIdentity) -> tuple[Folder, str]:
    """The folder and the name of the file that has what was found of a setting."""
    parts = (str(METHOD), setting.identity, identity.engine, identity.kernel, identity.agent_sha256)
    name = sha256("\0".join(parts).encode()).hexdigest()
    return Folder(cache) / "calibration" / name[:2], f"{name}.json"


def _recall(cache: Path, setting: Setting, identity: EngineIdentity) -> list[Figure] | None:
    """What was found before; None when nothing was, or when its file is damaged."""
    folder, name = _place(cache, setting, identity)
    try:
        found = _FIGURES.validate_json(folder.read(name))
    except (OSError, ValidationError):
        return None
    sound = tuple(figure.name for figure in found) == verdict.NAMES and all(figure.good for figure in found)
    return found if sound else None


def _keep(cache: Path, setting: Setting, identity: EngineIdentity, found: list[Figure]) -> None:
    """Only what is good: what is not may be better next time."""
    if not all(figure.good for figure in found):
        return
    folder, name = _place(cache, setting, identity)
    with contextlib.suppress(OSError):  # without a cache it is only measured again next time
        folder.write(name, json.dumps([vars(figure) for figure in found]).encode())
