"""Read a scenario and its input files from disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from plait.errors import Mistake, ScenarioError, shell_command
from plait.scenario.read import library
from plait.scenario.read.document import MAX_CHARACTERS
from plait.scenario.read.inputs import input_files
from plait.scenario.read.parse import parse
from plait.scenario.scenario import Scenario
from plait.scenario.vary.overrides import Choice, Override
from plait.scenario.wording import closest


def load(reference: str | Path, overrides: Sequence[str | Override | Choice] = ()) -> Scenario:
    """Return the scenario in a file, or the shipped one of that name; a file takes precedence.

    `parse` says what `overrides` are. Raises ScenarioError.
    """
    path = Path(reference)
    name = str(reference)
    if not path.is_file():
        shipped = library.find(name)
        if shipped is None:
            raise ScenarioError([Mistake("", None, None, "", _missing(path, name))])
        path, name = shipped, shipped.name
    if path.suffix == ".py":
        raise ScenarioError([Mistake("", None, None, "", _python(name))])
    return with_files(parse(read_text(path, name), name, overrides), path.parent)


def with_files(scenario: Scenario, folder: Path) -> Scenario:
    """Return the scenario after reading its input files, whose paths are relative to `folder` (ScenarioError)."""
    return scenario.attached(files=input_files(scenario, folder))


def _missing(path: Path, name: str) -> str:
    if not name:
        return "the name of the scenario is empty; name a scenario file, or a shipped scenario (`plait list`)"
    if path.is_dir():
        return f"{name} is a directory; name a scenario file in it"
    if path.exists():
        return f"{name} is not a regular file; name the file of a scenario"
    places = {title: title for title, _ in library.shipped()}
    places |= {
        file.name: str(file) for kind in ("yaml", "yml") for file in sorted(path.parent.glob(f"*.{kind}"))
    }
    near = closest(path.name, places)
    guess = "`plait list` shows them" if near is None else f"did you mean '{places[near]}'?"
    return f"there is no file {name} and no shipped scenario of that name; {guess}"


def _python(name: str) -> str:
    return (
        f"{name} is a Python program, not a scenario; {shell_command('plait', 'import', name)} converts a topology of "
        f"Mininet, and {shell_command('plait', 'exec', '--', 'python3', name)} runs the program"
    )


def without_waiting(path: str, flags: int) -> int:
    """Open a file that a person named, as `opener` of open(): a pipe to which no program writes is empty.

    Raises OSError.
    """
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
    os.set_blocking(descriptor, True)
    return descriptor


def read_text(path: Path, name: str) -> str:
    """Return the text of a file, cut a little above the limit of the parser (ScenarioError if it is no text)."""
    try:
        with open(path, "rb", opener=without_waiting) as file:
            data = file.read(4 * MAX_CHARACTERS + 4)
        text = data.decode("utf-8-sig")
    except OSError as error:
        message = f"cannot be read: {error.strerror}; check the path"
        raise ScenarioError([Mistake(name, None, None, "", message)]) from error
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        message = "this is not UTF-8 text; if it is a scenario, save it as UTF-8"
        raise ScenarioError([Mistake(name, line, column, "", message)]) from error
    if not data and not path.is_file():
        message = "it is no regular file, and no program writes to it; name another file"
        raise ScenarioError([Mistake(name, None, None, "", message)])
    return text
