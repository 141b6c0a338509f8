"""A worker's data before its first trial: engines, files by content, and the sentinel's data to compare with."""

from __future__ import annotations

import hashlib
import pickle
import platform
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from plait.engine.recipe import EngineRecipe, ShippedFile, recipe_of, shipped_file
from plait.errors import RequestError
from plait.plan.identity import plan_bytes
from plait.study.executors.executor import StudyWork
from plait.study.executors.sentinel import sentinel_digest, sentinel_plan
from plait.version import __version__


def facts() -> tuple[str, str]:
    """Return what must be equal for plait and its workers: the version of plait, and the type of machine (x86_64)."""
    return __version__, platform.machine()


def difference(local: tuple[str, str], worker: tuple[str, str]) -> str | None:
    """Return how the facts of a worker differ; None if trials can run there."""
    (version, machine), (other_version, other_machine) = local, worker
    if version != other_version:
        return f"it has plait {other_version}, and this is plait {version}"
    if machine != other_machine:
        return f"it is a machine of type {other_machine}, and the kernel is for {machine}"
    return None


@dataclass(frozen=True)
class Shipment:
    """The data that a worker needs before its first trial. They can be pickled, and contain no files."""

    name: str
    """Hash of everything in it: a worker prepares itself once for each name."""
    recipes: Mapping[str, EngineRecipe]
    files: tuple[ShippedFile, ...]
    """The files of the engines and of the study."""
    inputs: tuple[str, ...]
    """Those of the study, by SHA-256."""
    sentinel: bytes
    """The plan of the sentinel, compressed."""
    sentinel_digests: Mapping[str, str]
    """The digest of the sentinel's data on this machine, by the name of the engine."""
    facts: tuple[str, str]

    def file(self, sha256: str) -> ShippedFile:
        """Return the file with this content."""
        return next(file for file in self.files if file.sha256 == sha256)


def shipment(study: StudyWork) -> Shipment:
    """Return what the workers of a study need; this runs the sentinel here. Raise RequestError or MachineError."""
    recipes: dict[str, EngineRecipe] = {}
    for name, engine in study.engines.by_name.items():
        if not engine.repeatable:
            raise RequestError(
                f"running trials of the engine {name} in other processes: it measures in real time on this machine; "
                "run the study with --jobs"
            )
        recipes[name] = recipe_of(engine)
    plan = sentinel_plan()
    digests = {
        name: sentinel_digest(engine, plan, study.work) for name, engine in study.engines.by_name.items()
    }
    files = {file.sha256: file for recipe in recipes.values() for file in recipe.files}
    files |= {sha256: shipped_file(path) for sha256, path in study.inputs.items()}
    identities = [
        f"{identity.engine} {identity.kernel} {identity.agent_sha256}"
        for identity in study.engines.identities.values()
    ]
    text = "\n".join([*sorted(files), *identities, *digests.values(), __version__])
    return Shipment(
        hashlib.sha256(
            text.encode() + pickle.dumps(recipes)
        ).hexdigest(),  # recipes have limits and a policy, too
        recipes,
        tuple(files.values()),
        tuple(study.inputs),
        zlib.compress(plan_bytes(plan)),
        digests,
        facts(),
    )
