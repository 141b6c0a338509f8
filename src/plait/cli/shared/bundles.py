"""The scenario argument of `plait run`, which may be a bundle, and the comparison of a repeat with its bundle."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plait.analysis.wording import all_of
from plait.cli.shared.ending import notify
from plait.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plait.dataset.study_file import StudyFile
    from plait.scenario import Scenario
    from plait.scenario.vary.overrides import Choice
    from plait.study.bundle.record import BundleRecord


class RequestedStudy(NamedTuple):
    """The scenario to run, the name of its study, its seed and repeat, and the bundle's record if it has one."""

    scenario: Scenario
    name: str
    seed: int | None
    repeat: int | None
    bundle: BundleRecord | None


@contextmanager
def requested_study(
    reference: str, overrides: Sequence[str | Choice], seed: int | None, repeat: int | None, *, verify: bool
) -> Iterator[RequestedStudy]:
    """Yield the study of a scenario file, of a shipped scenario or of a bundle, whose files exist until the end.

    A bundle sets seed and repeat. Raises RequestError, ScenarioError, DataError.
    """
    from plait.engine.workspace import working_folder
    from plait.scenario import load as load_scenario
    from plait.study.bundle.repeat import is_bundle, open_bundle

    if not is_bundle(reference):
        if verify:
            raise RequestError(
                f"--verify {reference}: only a bundle can be verified; `plait bundle` writes one"
            )
        loaded = load_scenario(reference, tuple(overrides))
        yield RequestedStudy(loaded, Path(reference).stem, seed, repeat, None)
        return
    if overrides or seed is not None or repeat is not None:
        raise RequestError(
            f"changing {reference}: a bundle repeats a study as it was, so --set, --seed and --repeat have no "
            "place; to change the study, run its scenario.yaml (`unzip`)"
        )
    with working_folder() as workspace:
        opened = open_bundle(Path(reference), workspace.job())
        record = opened.record
        yield RequestedStudy(opened.scenario, record.name, record.seed, record.repeat, record)


def show_repeat(bundle: str, record: BundleRecord, folder: Path) -> bool:
    """Print how the trials in `folder` compare with those of the bundle; return whether all have the same data."""
    from plait.dataset.study_file import read_study_file
    from plait.study.bundle.repeat import repeated_digest

    repeated = [(trial, repeated_digest(folder, trial)) for trial in record.trials]
    differing = [(trial, digest) for trial, digest in repeated if digest != trial.digest]
    if not differing:
        has = "has the digest" if len(repeated) == 1 else "have the digests"
        notify(f"{all_of(len(repeated), 'trial')} {has} of {bundle}")
        return True
    for trial, digest in differing[:10]:
        notify(
            f"{trial.case} #{trial.number} differs: {trial.digest or 'failed'} in the bundle, "
            f"{digest or 'failed or missing'} here"
        )
    notify(
        f"{len(differing)} of {len(repeated)} trials differ from {bundle}. "
        f"The bundle: {_origin(record)}. This run: {_origin(read_study_file(folder))}"
    )
    return False


def _origin(study: StudyFile | BundleRecord) -> str:
    kernel = study.kernel
    return f"plait {study.plait_version}, kernel {kernel.version} ({(kernel.identity or 'unknown')[:8]})"
