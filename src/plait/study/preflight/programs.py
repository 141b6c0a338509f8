"""Find the programs that a scenario names and this machine does not have, before anything runs.

plait reports only what is certain. It checks a shell's command line only if that is one simple command. It does not
check programs in a folder that the guest fills itself, or in a program's own directory.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from plait.engine.packages import install_hint
from plait.plan.model.programs import PRIVATE
from plait.plan.traffic.programs import ENVIRONMENT
from plait.scenario.fields.programs import SHELL, ProgramSpec
from plait.scenario.mistakes import Where
from plait.scenario.wording import closest

_GUEST_FOLDERS = (*PRIVATE, "/dev", "/proc", "/sys")
"""Folders in which the guest has its own files instead of this machine's."""
_SHELL_WORDS = """
. : [ alias bg break case cd command continue do done echo elif else esac eval exec exit export false fc fg fi for
getopts hash if in jobs kill local printf pwd read readonly return set shift test then times trap true type
ulimit umask unalias unset until wait while
"""
"""Keywords and built-in commands of sh(1)."""
_NOT_FOUND = 127


def missing_programs(programs: Sequence[ProgramSpec]) -> Iterator[tuple[Where, str]]:
    """Yield the place of each command that cannot start, and the reason."""
    for number, program in enumerate(programs):
        place: Where = ("programs", number, "run")
        is_shell = program.run[:-1] == SHELL
        if is_shell and program.exit_code in {"any", _NOT_FOUND}:
            continue
        word = _first_word(program.run[-1]) if is_shell else program.run[0]
        problem = None if word is None else _problem(word, program)
        if problem is not None:
            yield (place if is_shell else (*place, 0)), problem


def _first_word(line: str) -> str | None:
    """Return the program of one simple command; None for anything else, or for a word of the shell."""
    if any(character in line for character in "|&;()<>$`\\\n{}*?[]~#!"):
        return None
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    if (
        not words
        or "=" in words[0]
        or words[0] in _SHELL_WORDS.split()
        or not line.lstrip().startswith(words[0])
    ):
        return None
    return words[0]


def _problem(word: str, program: ProgramSpec) -> str | None:
    """Return what is wrong with the program `word`; None if nothing is wrong, or if that is uncertain."""
    if "/" in word:
        path = Path(word)
        if not path.is_absolute() or _in_guest_folder(word):
            return None
        if not path.is_file():
            return f"there is no file {word} on this machine; {install_hint(word)}, or correct its path"
        return None if os.access(path, os.X_OK) else f"{word} is not executable; chmod +x it"
    search = dict(program.environment).get("PATH", ENVIRONMENT["PATH"])
    folders = search.split(":")
    if any(not folder.startswith("/") or _in_guest_folder(folder) for folder in folders):
        return None
    if shutil.which(word, path=search) is not None:
        return None
    close = closest(word, [name for folder in folders for name in _programs_in(folder, word[:1])])
    guess = f"did you mean '{close}'? Otherwise " if close is not None else ""
    remedy = f"{guess}{install_hint(word)}, or give its path"
    return f"there is no program '{word}' on this machine (searched {search}); {remedy}"


def _in_guest_folder(path: str) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in _GUEST_FOLDERS)


def _programs_in(folder: str, first: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.startswith(first)]  # noqa: PTH208 - names are wanted
    except OSError:
        return []
