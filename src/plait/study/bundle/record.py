"""bundle.json: what a bundle holds, and what its trials measured.

NAME.plait.zip
  README.md ..       documents for a reader, and artefact.json (`plait.artefact`)
  bundle.json        this record
  scenario.yaml      the scenario with every override applied
  inputs/N/FILE      the files that the scenario names
  algorithms/*.c     the source of added schedulers and congestion controls
  packages.txt       the Python packages of the machine that wrote the bundle
  study/             the result folder: study.json, summary.json, report, figures, trials with their tables
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from plait.dataset.study_file import KernelFacts
from plait.whole_files import wrong_name

RECORD = "bundle.json"
SCENARIO = "scenario.yaml"
INPUTS = "inputs"
ALGORITHMS = "algorithms"
PACKAGES = "packages.txt"
STUDY = "study"
SUFFIX = ".plait.zip"


class _BundlePart(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


def _file_name(name: str) -> str:
    problem = wrong_name(name)
    if problem is not None:
        raise ValueError(f"{name[:80]!r} cannot be the name of a file: {problem}")
    return name


class BundledFile(_BundlePart):
    """A file that the scenario names."""

    reference: str
    """Its path as the scenario writes it."""
    name: str
    bytes: int = Field(ge=1)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")

    _names_a_file = field_validator("name")(_file_name)


class BundledTrial(_BundlePart):
    """A trial of the bundle, and the digest of its data."""

    case: str
    number: int = Field(ge=0)
    seed: int
    digest: str | None
    """None if the trial failed."""
    identity: str | None = None
    """The hash of all that decides the digest; None in the bundle of an earlier plait."""
    wall_s: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Seconds of real time that the trial took."""


class BundleRecord(_BundlePart):
    """bundle.json."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: str
    """The name of the study."""
    plait_version: str
    """The version that ran the study."""
    engine: str | None
    kernel: KernelFacts
    agent_sha256: str | None
    seed: int
    repeat: int = Field(ge=1)
    """The most trials that a case has."""
    inputs: tuple[BundledFile, ...] = ()
    algorithms: tuple[str, ...] = ()
    """Names of C files."""
    trials: tuple[BundledTrial, ...]
    machines: tuple[str, ...] = ()
    """The machines that ran the trials, in words."""

    _names_a_study = field_validator("name")(_file_name)

    @field_validator("algorithms")
    @classmethod
    def _name_files(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(_file_name, names))
