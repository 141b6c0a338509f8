"""Read the input files of a scenario: size and checksum of each, and the content of traces."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from plait.errors import refuse_fields
from plait.scenario.fields.network import InputFile
from plait.scenario.fields.programs import InputContent
from plait.scenario.fields.traces import MAX_TRACE_BYTES, TraceSpec, read_trace
from plait.scenario.located import locating
from plait.scenario.mistakes import FieldMistake, Where
from plait.scenario.scenario import Scenario
from plait.scenario.vary.text import varied_fields

MAX_FILE_BYTES = 2**40
MAX_SCHEDULER_BYTES = 65_536


@locating
def input_files(
    scenario: Scenario, folder: Path, places: Mapping[str, Path] | None = None
) -> dict[str, InputFile]:
    """Return the facts of each input file, by its path in the scenario, which is relative to `folder`.

    With `places`, plait reads only the files that it lists by their path in the scenario. Raises ScenarioError for
    unreadable files and invalid traces.
    """
    files: dict[str, InputFile] = {}
    mistakes: list[FieldMistake] = []
    for where, reference, trace in _named(scenario):
        earlier = files.get(reference)
        if earlier is not None and (trace is None or earlier.trace is not None):
            continue
        try:
            path = folder / reference if places is None else _listed(reference, places)
            files[reference] = _read(path, trace, {file.name for file in files.values()})
        except OSError as error:
            mistakes.append((where, f"'{reference}' cannot be read: {error.strerror}; check the path"))
        except ValueError as error:
            mistakes.append((where, f"'{reference}': {error}"))
    refuse_fields(mistakes)
    return files


def _listed(reference: str, places: Mapping[str, Path]) -> Path:
    """Return the file for a path in the scenario. Raise ValueError if there is none."""
    if reference not in places:
        raise ValueError("the bundle lacks this file; get a new copy of it")
    return places[reference]


def _named(scenario: Scenario) -> Iterator[tuple[Where, str, TraceSpec | None]]:
    """Yield (field, path in the scenario, trace specification or None) for each input file."""
    for i, entry in enumerate(scenario.traffic):
        for field, path in entry.flow.input_files():
            yield ("traffic", i, entry.key, field), path, None
    for i, program in enumerate(scenario.programs):
        for path, content in program.files.items():
            if isinstance(content, InputContent):
                yield ("programs", i, "files", path, "input"), content.input, None
    for key, link in scenario.network.links.items():
        for part, side in ((link, ()), (link.forward, ("forward",)), (link.backward, ("backward",))):
            spec = None if part is None else part.trace
            if spec is not None:
                yield ("network", "links", key, *side, "trace", "file"), spec.file, spec
    yield from _varied_files(scenario)


def _varied_files(scenario: Scenario) -> Iterator[tuple[Where, str, TraceSpec | None]]:
    """Yield the same for the files that values under `vary` name."""
    for where, path, values in varied_fields(scenario.vary):
        for place, value in values:
            spec = _varied(path, value)
            if spec is not None:
                yield place or where, spec.file, spec
            elif path.endswith(".transfer.file") and isinstance(value, str):
                yield place or where, value, None
            elif path.endswith(".prototype.scheduler") and isinstance(value, str) and ".py:" in value:
                yield place or where, value.rpartition(":")[0], None


def _varied(path: str, value: Any) -> TraceSpec | None:
    """Return the trace that a value under `vary` sets; None for other fields."""
    if path.endswith(".trace.file") and isinstance(value, str):
        return TraceSpec(file=value, loop=False)
    if path.endswith(".trace") and isinstance(value, dict):
        return TraceSpec.model_validate(value)
    return None


def _read(path: Path, trace: TraceSpec | None, used_names: set[str]) -> InputFile:
    """Return the facts of a file, with a name that is not in `used_names`, and its content if it is a trace.

    Raises OSError if plait cannot read the file, ValueError with the problem and the remedy if it is unsuitable.
    """
    size = path.stat().st_size
    if not path.is_file() or not 1 <= size <= MAX_FILE_BYTES:
        raise ValueError("this is empty or not a regular file; name another file")
    content = None
    if trace is not None:
        if size > MAX_TRACE_BYTES:
            raise ValueError(f"the file has {size} bytes, and a trace at most {MAX_TRACE_BYTES}; shorten it")
        content = read_trace(_text(path), trace.kind, loop=trace.loop)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    text = None
    if path.suffix == ".py" and size <= MAX_SCHEDULER_BYTES:
        text = _text(path)
    name = path.name if path.name not in used_names else f"{len(used_names)}-{path.name}"
    return InputFile(name=name, path=path.resolve(), bytes=size, sha256=digest, trace=content, text=text)


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("this is not text; write a list of times, or CSV") from None
