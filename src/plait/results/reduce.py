"""Reduces trials to their rows of metrics: through a cache, and in several processes at once.

The cache has one entry for each trial, under the hash of the trial's files and of the code that reduces them. So only
the first report of a trial computes its metrics; a report after a change of figures reads only the files' hashes.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from plait.analysis.by_flow import DividedTables
from plait.analysis.cautions.mptcp import Observation
from plait.analysis.cautions.observations import observe
from plait.analysis.gaps import collected, noted
from plait.analysis.metrics.programs import with_connections
from plait.analysis.metrics.trial import trial_metrics
from plait.analysis.model import Exclusion
from plait.analysis.rows import FailedTrial, TrialRow
from plait.cache import ContentCache
from plait.dataset.digest import trial_digest
from plait.dataset.files import MOST_TABLE_BYTES
from plait.dataset.trial import making_sense, read_trial, trial_number
from plait.files import Folder
from plait.process_pool import shared_out

CACHE = ContentCache("rows", most=50_000)
TRIALS_EACH = 12
"""Trials that take about as long as the start of a further process."""
CODE = ("analysis", "dataset", "plan", "results")
"""Packages on whose code a row depends."""
USED_BY_ALL = ("metrics", "traffic")
"""Packages on whose code all that is kept depends."""
_LIBRARIES = ("numpy", "polars", "scipy")


Reduced = TrialRow | FailedTrial | Exclusion


def reduced(folders: Sequence[Folder], progress: Callable[[int, int], None]) -> list[Reduced]:
    """Return each of the trials, reduced, and report progress as (number of trials done, number of all).

    Raises:
        DataError: a file of a trial is missing or damaged.
    """
    trials: dict[int, Reduced] = {}
    missing = []
    for number, folder in enumerate(folders):
        kept = CACHE.get(name) if (name := name_of(folder)) is not None else None
        if kept is not None:
            trials[number] = _decoded(json.loads(kept))
            progress(len(trials), len(folders))
        else:
            missing.append(number)
    requests = [[str(folders[number].root), *folders[number].inside] for number in missing]
    shared = shared_out(
        "plait.results.reduce:reduce_into_cache",
        requests,
        lambda position: reduce_into_cache(requests[position]),
        batch=TRIALS_EACH,
    )
    for position, trial in shared:
        # What an analysis could not compute is computed again here: the caution about it belongs to this report.
        trials[missing[position]] = (
            reduce_trial(folders[missing[position]]) if trial is None else _decoded(trial)
        )
        progress(len(trials), len(folders))
    if missing:
        CACHE.prune()
    return [trials[number] for number in range(len(folders))]


def reduced_one(folder: Folder) -> Reduced:
    """Return one trial, reduced through the cache; metrics that an analysis cannot compute are missing.

    Raises:
        DataError: a file of the trial is missing or damaged.
    """
    kept = CACHE.get(name) if (name := name_of(folder)) is not None else None
    if kept is not None:
        return _decoded(json.loads(kept))
    trial = reduce_into_cache([str(folder.root), *folder.inside])
    if trial is not None:
        return _decoded(trial)
    with collected():
        return reduce_trial(folder)


def reduce_into_cache(request: list[str]) -> dict[str, Any] | None:
    """Return a trial, reduced and encoded, and keep it in the cache; None when an analysis failed on it.

    `request` is the path of the result folder, and the names down to the folder of the trial. Raises DataError.
    """
    root, *inside = request
    folder = Folder(Path(root), tuple(inside))
    with collected():
        trial = _encoded(reduce_trial(folder))
        if noted():
            return None
    if (name := name_of(folder)) is not None:
        CACHE.put(name, json.dumps(trial).encode())
    return trial


def reduce_trial(folder: Folder) -> Reduced:
    """Return a trial, reduced from its files.

    Raises:
        DataError: a file of the trial is missing or damaged.
    """
    trial, index = read_trial(folder), trial_number(folder)
    provenance = trial.provenance
    if provenance.status == "failed":
        return FailedTrial(index, provenance.error or "no reason was recorded")
    if provenance.excluded is not None:
        return Exclusion(trial=index, reason=provenance.excluded)
    trial.tables.read_all()
    with making_sense(trial.folder):
        digest = trial_digest(trial.tables)
        plan = with_connections(trial.plan, trial.tables)
        tables = DividedTables(trial.tables)
        observed = observe(plan, tables)
        if provenance.digest not in (None, digest):
            observed.append(
                Observation("DATA_CHANGED", "the data have another digest than when they were made")
            )
        metrics = trial_metrics(plan, tables)
    return TrialRow(index, provenance.seed, digest, metrics, tuple(observed))


def _encoded(trial: Reduced) -> dict[str, Any]:
    return trial.model_dump() if isinstance(trial, Exclusion) else asdict(trial)


def _decoded(trial: dict[str, Any]) -> Reduced:
    if "reason" in trial:
        return Exclusion(**trial)
    if "error" in trial:
        return FailedTrial(**trial)
    observed = tuple(
        Observation(**{**observation, "reasons": tuple(observation["reasons"])})
        for observation in trial["observed"]
    )
    # Thousands of rows share the names of their metrics, which are half of their memory.
    metrics = {sys.intern(name): value for name, value in trial["metrics"].items()}
    return TrialRow(**{**trial, "observed": observed, "metrics": metrics})


def name_of(folder: Folder) -> str | None:
    """Return the name of a trial in the cache: it changes with its files, its number, and the code.

    None when a file cannot be read: reducing the trial says why.
    """
    content = hashlib.sha256(f"{code_of_rows()}\n{trial_number(folder)}\n".encode())
    try:
        for name in sorted(folder.names()):
            if name.endswith((".json", ".parquet")):
                file = hashlib.sha256(folder.read(name, MOST_TABLE_BYTES)).hexdigest()
                content.update(f"{name}\n{file}\n".encode())
    except OSError:
        return None
    return content.hexdigest()


def code_of_rows() -> str:
    """Return the hash of the code that reduces trials, and of the versions of its libraries."""
    return code_of(CODE)


@cache
def code_of(packages: tuple[str, ...]) -> str:
    """Return the hash of some packages and of what all of them use, and of the versions of libraries."""
    package = Path(__file__).parents[1]
    files = sorted(path for name in (*packages, *USED_BY_ALL) for path in (package / name).rglob("*.py"))
    content = hashlib.sha256(" ".join(map(importlib.metadata.version, _LIBRARIES)).encode())
    for path in [*files, *sorted(package.glob("*.py"))]:
        content.update(_code(path))
    return content.hexdigest()


@cache
def _code(path: Path) -> bytes:
    """Return what a file of plait has; a report needs the hashes of three sets of packages that overlap."""
    return path.read_bytes()
