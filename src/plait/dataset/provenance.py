"""The origin of a trial's data: the record in provenance.json, beside the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from plait.errors import DataError
from plait.files import Folder, json_of
from plait.parts import Part
from plait.version import other_version

FILE = "provenance.json"


class Provenance(Part):
    """The program, kernel and agent of a trial, and how it ended. The digest of the data does not cover it."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    status: Literal["ok", "failed"]
    error: str | None = None
    """Why the trial failed, as text; null if it succeeded."""
    excluded: str | None = None
    """Why means leave this trial out although it is complete: the machine disturbed it; null if they count it."""
    seed: int
    identity: str
    """Hash of everything that determines the outcome: plan, kernel and agent."""
    digest: str | None = None
    """`trial_digest` of the tables at the time of the trial; null if there are none."""
    engine: str = "virtual"
    kernel_identity: str | None = None
    """Hash of the kernel's source, patches and configuration."""
    kernel_version: str | None = None
    """The version that the kernel reports: "6.12.117"."""
    agent_sha256: str | None = None
    plait_version: str
    wall_s: float | None = None
    """Seconds of real time, from starting the guest to data on disk."""
    virtual_s: float | None = None
    """Seconds of virtual time in the guest."""
    host: dict[str, str | int | float | None] = Field(default_factory=dict)
    """Facts about the machine that ran the trial, for information."""


def read_provenance(folder: Folder | Path) -> Provenance:
    """Return the provenance of the trial in `folder`.

    Raises:
        DataError: the file is missing or invalid.
    """
    place = Folder.of(folder)
    path = place.path / FILE
    record = b""
    try:
        record = place.read(FILE)
        return Provenance.model_validate_json(record)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror}); the trial was interrupted: run the study again"
        ) from error
    except ValidationError as error:
        raise DataError(f"{path}: not a trial's provenance: {explain(error, record)}") from error


def explain(error: ValidationError, record: bytes = b"") -> str:
    """Return the first mistake of a failed validation in one line, with its location and a remedy.

    `record` is the text of the record, whose `plait_version` says what made it.
    """
    try:
        made_by = json_of(record).get("plait_version")
    except (ValueError, AttributeError):
        made_by = None
    remedy = other_version(made_by)
    mistakes = error.errors(include_url=False)
    wrong_schema = next(
        (
            mistake
            for mistake in mistakes
            if mistake["loc"] == ("schema",) and mistake["type"] == "literal_error"
        ),
        None,
    )
    if wrong_schema is not None:
        supported = wrong_schema["ctx"]["expected"]
        return (
            f"it has schema {wrong_schema['input']}, and this version of plait reads {supported}; "
            + (remedy or "use the version that wrote it (plait_version in study.json)")
            + ", or run the study again into another folder"
        )
    first = mistakes[0]
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    others_text = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{place}: {first['msg']}{others_text}" + (f"; {remedy}" if remedy else "")
