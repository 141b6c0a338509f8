"""Reads a scenario, and the facts about the files that it sends, from disk. Everything else about it is pure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plait.errors import Mistake, ScenarioError
from plait.scenario import library
from plait.scenario.read.document import MAX_CHARACTERS
from plait.scenario.read.inputs import input_files
from plait.scenario.read.parse import parse
from plait.scenario.read.wording import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.scenario.scenario import Scenario


def load(reference: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """The scenario in a file, or the shipped one of that name; a name that is both is the file.

    `overrides` are `PATH=VALUE`, put in before the scenario is validated. Raises ScenarioError.
    """
    path = Path(reference)
    name = str(reference)
    if not path.is_file():
        shipped = library.find(name)
        if shipped is None:
            raise ScenarioError([Mistake("", None, None, "", _missing(path, name))])
        path, name = shipped, shipped.name
    scenario = parse(_text(path, name), name, overrides)
    return scenario.attached(files=input_files(scenario, path.parent))


def _missing(path: Path, name: str) -> str:
    if path.is_dir():
        return f"{name} is a directory; name the scenario file in it"
    guess = nearest(name, [name for name, _ in library.shipped()])
    return (
        f"there is no file {name} and no shipped scenario of that name; {guess or '`plait list` shows them'}"
    )


def _text(path: Path, name: str) -> str:
    """The file's text, at most a little more than the parser will read."""
    try:
        with path.open("rb") as file:
            data = file.read(4 * MAX_CHARACTERS + 4)
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ScenarioError([Mistake(name, None, None, "", f"cannot be read: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        message = "this is not UTF-8 text; is it a scenario? If so, save it as UTF-8"
        raise ScenarioError([Mistake(name, line, column, "", message)]) from error
