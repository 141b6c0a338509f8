"""study.json: the one record of what a study is, written by runs and merges and read by everything else."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from plait.cautions import Caution
from plait.dataset.provenance import explain
from plait.errors import DataError, shell_command
from plait.files import Folder
from plait.whole_files import wrong_name

SCHEMA: Literal[1] = 1
_VERBS = {"run", "crosscheck", "merge", "observe", "benchmark"}
REAL_TIME = ("host", "remote", "observed")
"""The engines whose trials nothing repeats: they run in real time."""
_SHARD = re.compile(r"[1-9][0-9]{0,5}/[1-9][0-9]{0,5}")


def _requoted(command: str) -> str:
    """Return the command with each word quoted, because reports offer it to be copied, also that of a stranger."""
    try:
        words = shlex.split(command)
    except ValueError:  # an earlier version recorded names with quotes as they were
        words = command.split()
    if words and (words[0] != "plait" or not _VERBS & {*words[1:2]}):
        raise ValueError("it is not a command that makes a study, such as `plait run two-paths`")
    return shell_command(*words)


def _in_json(value: object) -> object:
    """Return a value without NaN and infinite numbers, which JSON does not have."""
    json.dumps(value, allow_nan=False)
    return value


Json = Annotated[Any, AfterValidator(_in_json)]
"""What a scenario has: any value of JSON."""
Command = Annotated[str, AfterValidator(_requoted)]
"""A command of plait that makes the data of a study; empty if there is none."""


class _Part(BaseModel):
    # What a later version adds to study.json does not stop this one from reporting.
    model_config = ConfigDict(extra="ignore", frozen=True)


class KernelFacts(_Part):
    """The kernel that ran the study."""

    identity: str | None = None
    version: str | None = None

    @property
    def title(self) -> str | None:
        """Return the version as people write it; an observation of captures has a text instead."""
        return self.version and kernel_title(self.version)


def kernel_title(version: str) -> str:
    """Return a version as people write it, `Linux 6.12`, or what an observation has instead as it is."""
    return f"kernel {version}" if version[:1].isalpha() else f"Linux {version}"


class EngineFacts(_Part):
    """One of several engines that ran the study."""

    name: str
    kernel: KernelFacts
    agent_sha256: str | None = None


class CaseEntry(_Part):
    """One case as study.json lists it."""

    name: str
    """Also that of its folder."""
    settings: dict[str, Json]

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
    command: Command
    seed: int


class StudyFile(_Part):
    """study.json: what a study asked for, what made its data, and what to check before trusting them."""

    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")
    name: str | None = None
    title: str | None = None
    description: str | None = None
    command: Command
    """The command that repeats the data."""
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
    scenario: Json = None
    """As resolved."""
    merged: tuple[MergedFrom, ...] | None = None
    """The studies that were put together; None for a study that was run."""

    def repeats_seeds(self, settings: Mapping[str, Any]) -> bool:
        """Return whether a seed decides the trials of the case with these settings: no engine in real time ran them."""
        names = str(settings.get("engine") or self.engine or "").split(",")
        return all(name.strip().partition("@")[0] not in REAL_TIME for name in names)

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
        """The name of the study."""
        return self.title or self.name or "Study"

    def text(self) -> str:
        """Return the content of the file."""
        left_out = {name for name in ("merged", "engines", "shard") if not getattr(self, name)}
        fields = self.model_dump(mode="json", by_alias=True, exclude=left_out)
        return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"


def read_study_file(folder: Path) -> StudyFile:
    """Return study.json of a result folder (DataError when it is missing or is not what it should be)."""
    path = folder / "study.json"
    record = b""
    try:
        record = Folder(folder).read(path.name)
        return StudyFile.model_validate_json(record)
    except OSError as error:
        default = Path("results") / (
            folder.stem if folder.suffix in (".yaml", ".yml", ".json") else folder.name
        )
        meant = (
            f"did you mean {default}?"
            if (default / path.name).is_file()
            else ("give the result folder that `plait run` wrote, such as results/NAME, not a scenario file")
        )
        raise DataError(f"{path}: cannot be read ({error.strerror}); {meant}") from error
    except ValidationError as error:
        raise DataError(f"{path}: not the description of a study: {explain(error, record)}") from error
