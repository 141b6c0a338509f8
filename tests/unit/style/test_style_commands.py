"""A command that plait advises is quoted by one function, and no name in it can add to what it does."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plait.cli import app
from plait.dataset.study_file import StudyFile
from plait.errors import shell_command

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parents[3] / "src" / "plait"
VERBS = "|".join(str(command.name) for command in app.registered_commands) + "|kernel|store|bpf|fidelity"
PROGRAMS = "sudo|apt-get|apt|pip|git|mkdir|unzip|sysctl|modprobe|make|gdb|ssh|python3|rm|chmod"
COMMAND = re.compile(rf"(\bplait ({VERBS})|([`(]|\brun |\n)({PROGRAMS})) ([^`;:,\n]* )?[^`;:,\n ]*\Z")
NAME = "a; touch PWNED $(id) `id` '\" .plait.zip"


def pasted_words(tree: ast.Module) -> Iterator[str]:
    """Yield each text up to a value that is pasted into a command."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
            added = str(node.left.value) if isinstance(node.op, ast.Add) else ""
            yield from [f"{added} + .. in line {node.lineno}"] * bool(COMMAND.search(added))
        if not isinstance(node, ast.JoinedStr):
            continue
        text = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            elif COMMAND.search(text):
                yield f"{text}{{..}} in line {node.lineno}"


@pytest.mark.parametrize(
    "source",
    [
        'f"run `plait run {path}`"',
        'f"repeat it: plait run --seed 1 {path}"',
        'f"plait kernel add {FOLDER}/{name}"',
        'f"create it (mkdir -p {path})"',
        'f"`unzip {path}`"',
        '"plait merge OUT " + " ".join(names)',
    ],
)
def test_a_value_in_a_command_is_noticed(source: str) -> None:
    assert list(pasted_words(ast.parse(source)))


def test_no_message_pastes_a_value_into_a_command() -> None:
    pasted = {
        path.relative_to(PACKAGE).as_posix(): words
        for path in sorted(PACKAGE.rglob("*.py"))
        if (words := list(pasted_words(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert not pasted, "build the command with plait.errors.shell_command"


def test_a_command_has_its_words_whatever_they_contain() -> None:
    assert shlex.split(shell_command("plait", "run", NAME, 3)) == ["plait", "run", NAME, "3"]
    assert shell_command("plait", "run", Path("-x"), "--verify") == "plait run ./-x --verify"


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("plait run two-paths --seed 3", "plait run two-paths --seed 3"),
        ("plait run 'my file.yaml'", "plait run 'my file.yaml'"),
        ("plait run x; touch PWNED", "plait run 'x;' touch PWNED"),
        ("plait run $(id) `id`\ntouch PWNED", "plait run '$(id)' '`id`' touch PWNED"),
        ("plait run it's", "plait run 'it'\"'\"'s'"),
        ("", ""),
    ],
)
def test_the_command_of_a_strangers_study_is_one_command(recorded: str, shown: str) -> None:
    assert study(recorded).command == shown


@pytest.mark.parametrize(
    "recorded", ["touch PWNED", "plait", "plait kernel add x.c", "plait exec --unconfined sh"]
)
def test_the_command_of_a_study_makes_a_study(recorded: str) -> None:
    with pytest.raises(ValueError, match="not a command that makes a study"):
        study(recorded)


def study(command: str) -> StudyFile:
    return StudyFile(command=command, seed=1, repeat=1, plait_version="0", cases=())
