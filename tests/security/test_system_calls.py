"""Every system call that a guest may make has a row in the table beside the filter, and every row has its proof."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attacks import ATTACKS, KINDS, OF_EMULATORS, WITH_TESTS_OF_THEIR_OWN, built, output

from plait.binaries import CONTAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

SECURITY = Path(__file__).parents[2] / "docs/explanation/security.md"
ROOT_OR_TRACING = {
    *("mount", "make a device", "change the mode of a device"),
    *("trace a process", "write another process's memory"),
}
"""Attacks that the suite has only for root, or where processes may trace others."""
HIGHEST_CALL = 500
UPROBES = {335, 336}
"""uretprobe and uprobe, which Linux handles without filters since 6.14; a process that calls them gets SIGILL."""
X32 = 0x40000000
PROBED = {
    "fcntl": (1, range(2000)),
    "ioctl": (1, range(0x5400, 0x5480)),
    "prctl": (0, range(80)),
    "madvise": (2, range(32)),
    "socketpair": (1, range(12)),
    "seccomp": (0, range(5)),
    "prlimit64": (2, (1, 1 << 32)),
    "renameat2": (4, range(4, 8)),
}
"""Calls with rows for single values: the position of the argument, and the values to try."""


@pytest.fixture(scope="session")
def attack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("attack"))


@cache
def table() -> list[dict[str, Any]]:
    done = subprocess.run([str(CONTAIN), "--calls"], capture_output=True, check=True, timeout=300)
    groups: list[dict[str, Any]] = json.loads(done.stdout)
    return groups


def rows(*guests: str) -> Iterator[dict[str, Any]]:
    for group in table():
        yield from (row for row in group["rows"] if not guests or row["guests"] in guests)


def allowed_values(call: str, position: int) -> set[int]:
    """Return the values of an argument that a row of the call names."""
    values = set()
    for row in rows("all"):
        for argument in row["arguments"]:
            if row["call"] == call and argument["position"] == position and "is" in argument["rule"]:
                values.add(argument["rule"]["is"])
    return values


def test_every_row_says_what_it_reaches_and_why_that_is_safe() -> None:
    for group in table():
        assert group["reaches"], group
        ((kind, proof),) = group["proof"].items()
        assert kind in {"attacks", "harmless", "unclaimed"}
        assert proof, group["reaches"]


def test_every_attack_that_proves_a_row_is_in_the_suite_and_no_kind_of_object_is_left_out() -> None:
    named = {name for group in table() for name in group["proof"].get("attacks", ())}
    named |= {name for names in KINDS.values() for name in names}
    assert named <= {*ATTACKS, *OF_EMULATORS, *WITH_TESTS_OF_THEIR_OWN, *ROOT_OR_TRACING}
    assert set(KINDS) == {
        *("regular file", "folder", "FIFO", "stream socket", "datagram socket", "abstract socket", "device"),
        *(
            "lock",
            "lease",
            "signal",
            "process group",
            "terminal",
            "shared memory",
            "disk space",
            "inodes",
            "memory",
            "process outside of the sandbox",
        ),
    }


def test_a_call_has_either_rows_with_conditions_or_a_single_one_without() -> None:
    for call in {row["call"] for row in rows()}:
        of_call = [row for row in rows() if row["call"] == call]
        assert len(of_call) == 1 or all(row["arguments"] for row in of_call), call


def test_the_filter_refuses_every_call_without_a_row(attack: Path, tmp_path: Path) -> None:
    numbers = {row["number"] for row in rows("all")}
    others = [number for number in range(HIGHEST_CALL) if number not in numbers | UPROBES]
    others += [X32 + number for number in sorted(numbers)]
    assert len(others) > HIGHEST_CALL // 2
    lines = output(attack, tmp_path, "calls=" + ",".join(map(str, others)), ())
    assert lines == ["calls 0"]


@pytest.mark.parametrize("call", PROBED)
def test_the_filter_refuses_every_value_of_an_argument_without_a_row(
    call: str, attack: Path, tmp_path: Path
) -> None:
    position, values = PROBED[call]
    number = next(row["number"] for row in rows() if row["call"] == call)
    others = [value for value in values if value not in allowed_values(call, position)]
    assert others
    words = ",".join(f"{number}:{position}:{value}" for value in others)
    assert output(attack, tmp_path, f"calls={words}", ()) == ["calls 0"]


def sentence(group: dict[str, Any]) -> str:
    """Return the line of the documentation for a group of rows."""
    calls: dict[str, list[str]] = {}
    for row in group["rows"]:
        calls.setdefault(row["call"], []).extend(argument["meaning"] for argument in row["arguments"])
    names = [
        f"`{call}`" + (f" ({', '.join(dict.fromkeys(what))})" if what else "") for call, what in calls.items()
    ]
    ((kind, proof),) = group["proof"].items()
    why = f"Attacks: {', '.join(proof)}." if kind == "attacks" else f"{proof[0].upper()}{proof[1:]}."
    return f"**{group['reaches'][0].upper()}{group['reaches'][1:]}:** {', '.join(names)}. {why}"


def test_security_md_describes_every_row_of_the_table() -> None:
    text = " ".join(SECURITY.read_text(encoding="utf-8").split())
    for group in table():
        assert sentence(group) in text
    calls = {row["call"] for row in rows("all")}, {row["call"] for row in rows()}
    assert f"{len(calls[0])} system calls" in text
    assert f"{len(calls[1] - calls[0])} further system calls" in text


if __name__ == "__main__":
    for described in table():
        print(f"- {sentence(described)}")
