"""study.json: the one record of what a study is, written by runs and merges and read by everything else."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from plait.cautions import Caution
from plait.dataset.provenance import explain
from plait.errors import DataError
from plait.files import Folder, wrong_name

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA: Literal[1] = 1
_SHARD = re.compile(r"[1-9][0-9]{0,5}/[1-9][0-9]{0,5}")


class _Part(BaseModel):
    # What a later version adds to study.json does not stop this one from reporting.
    model_config = ConfigDict(extra="ignore", frozen=True)


class KernelFacts(_Part):
    """The kernel that ran the study."""

    identity: str | None = None
    version: str | None = None


class EngineFacts(_Part):
    """One of several engines that ran the study."""

    name: str
    kernel: KernelFacts
    agent_sha256: str | None = None


class CaseEntry(_Part):
    """One case as study.json lists it."""

    name: str
    """Also that of its folder."""
    settings: dict[str, Any]

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        why = wrong_name(name)
        if why is not None:
            raise ValueError(f"{name[:80]!r} cannot be the name of a folder: {why}")
        return name


class MergedFrom(_Part):
    """One of the studies that `plait merge` put together."""

    name: str | None = None
    command: str
    seed: int


class StudyFile(_Part):
    """study.json: what a study asked for, what made its data, and what to check before trusting them."""

    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")
    name: str | None = None
    title: str | None = None
    description: str | None = None
    command: str
    """What gives the same data."""
    seed: int
    repeat: int
    until: float | None = None
    """To how narrow an interval it was to be repeated."""
    plait_version: str
    engine: str | None = None
    """The name of the engine; of several: all names, with commas."""
    kernel: KernelFacts = KernelFacts()
    """With several engines on different kernels, only the versions."""
    agent_sha256: str | None = None
    engines: tuple[EngineFacts, ...] = ()
    """Each engine, if there are several."""
    shard: str | None = None
    """Which part of the study this is (`3/16`); None for the whole study."""
    baseline: str | None = None
    cases: tuple[CaseEntry, ...]
    cautions: tuple[Caution, ...] = ()
    scenario: Any = None
    """As resolved."""
    merged: tuple[MergedFrom, ...] | None = None
    """The studies that were put together; None for a study that was run."""

    @field_validator("shard")
    @classmethod
    def _is_a_shard(cls, shard: str | None) -> str | None:
        if shard is not None and not _SHARD.fullmatch(shard):
            raise ValueError("it is not a shard such as 3/16")
        return shard

    @field_validator("cases")
    @classmethod
    def _cases_differ(cls, cases: tuple[CaseEntry, ...]) -> tuple[CaseEntry, ...]:
        if len({case.name for case in cases}) < len(cases):
            raise ValueError("two cases have one name")
        return cases

    @property
    def heading(self) -> str:
        """What to call the study."""
        return self.title or self.name or "Study"

    def text(self) -> str:
        """Return the content of the file."""
        left_out = {name for name in ("merged", "engines", "shard") if not getattr(self, name)}
        fields = self.model_dump(mode="json", by_alias=True, exclude=left_out)
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def read_study_file(folder: Path) -> StudyFile:
    """Return study.json of a result folder (DataError when it is missing or is not what it should be)."""
    path = folder / "study.json"
    try:
        return StudyFile.model_validate_json(Folder(folder).read(path.name))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); give the folder that `plait run` wrote"
        ) from error
    except ValidationError as error:
        raise DataError(f"{path}: not the description of a study: {explain(error)}") from error
