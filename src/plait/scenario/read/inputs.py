"""The real files that a scenario names, what transfers send and traces: their size, checksum, and what traces say."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from plait.scenario.fields.network import InputFile
from plait.scenario.fields.programs import InputContent
from plait.scenario.read.located import error_at
from plait.scenario.read.traces import MAX_TRACE_BYTES, TraceSpec, read_trace
from plait.scenario.vary.text import varied_fields

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plait.scenario.mistakes import FieldMistake, Where
    from plait.scenario.scenario import Scenario


MAX_FILE_BYTES = 2**40


def input_files(scenario: Scenario, folder: Path) -> dict[str, InputFile]:
    """The facts of each file that the scenario names, by the text that names it; relative ones are in `folder`.

    Raises ScenarioError for files that cannot be read, and for traces that say nothing sensible.
    """
    files: dict[str, InputFile] = {}
    mistakes: list[FieldMistake] = []
    for where, reference, trace in _named(scenario):
        earlier = files.get(reference)
        if earlier is not None and (trace is None or earlier.trace is not None):
            continue
        try:
            files[reference] = _read(folder / reference, trace, {file.name for file in files.values()})
        except OSError as error:
            mistakes.append((where, f"'{reference}' cannot be read: {error.strerror}; name another"))
        except ValueError as error:
            mistakes.append((where, f"'{reference}': {error}"))
    if mistakes:
        raise error_at(scenario, mistakes)
    return files


def _named(scenario: Scenario) -> Iterator[tuple[Where, str, TraceSpec | None]]:
    """(field, the text that names a file, as which trace it is read if it is one)."""
    for i, entry in enumerate(scenario.traffic):
        if entry.transfer is not None and entry.transfer.file is not None:
            yield ("traffic", i, "transfer", "file"), entry.transfer.file, None
    for i, program in enumerate(scenario.programs):
        for path, content in program.files.items():
            if isinstance(content, InputContent):
                yield ("programs", i, "files", path, "input"), content.input, None
    for key, link in scenario.network.links.items():
        for part, side in ((link, ()), (link.forward, ("forward",)), (link.backward, ("backward",))):
            spec = None if part is None else part.trace
            if spec is not None:
                yield ("network", "links", key, *side, "trace", "file"), spec.file, spec
    for where, path, values in varied_fields(scenario.vary):
        for place, value in values:
            spec = _varied(path, value)
            if spec is not None:
                yield place or where, spec.file, spec


def _varied(path: str, value: Any) -> TraceSpec | None:
    """The trace that one value under `vary` stands for, if it does."""
    if path.endswith(".trace.file") and isinstance(value, str):
        return TraceSpec(file=value, loop=False)
    if path.endswith(".trace") and isinstance(value, dict):
        return TraceSpec.model_validate(value)
    return None


def _read(path: Path, trace: TraceSpec | None, names: set[str]) -> InputFile:
    size = path.stat().st_size
    if not path.is_file() or not 1 <= size <= MAX_FILE_BYTES:
        raise ValueError("this is not a file with content; name another")
    content = None
    if trace is not None:
        if size > MAX_TRACE_BYTES:
            raise ValueError(f"it has {size} bytes; a trace has at most {MAX_TRACE_BYTES}")
        content = read_trace(_text(path), trace.kind, loop=trace.loop)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = path.name if path.name not in names else f"{len(names)}-{path.name}"
    return InputFile(name=name, path=path.resolve(), bytes=size, sha256=digest, trace=content)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("this is not text; a trace is a list of times, or CSV") from None
