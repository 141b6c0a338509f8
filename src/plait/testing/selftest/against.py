"""Compare subtests with those of an earlier JUnit file: what fails newly, what flakes, and what is mended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from plait.errors import DataError, printable
from plait.files import Folder
from plait.testing.selftest.tap import IGNORED, Subtest, Verdict

MOST_BYTES = 64 << 20
_SUITE = re.compile(r"(?P<suite>.{1,200}) seed (?P<seed>\d{1,9})")
_Seeds = dict[int, Verdict]


Change = tuple[str, str, str]
"""new failure, new flake, newly skipped, not run or fixed; the suite and subtest; its seeds and why."""


def read_junit(path: Path) -> list[Subtest]:
    """Return the subtests in a file of `plait selftest --junit` (DataError: it is no such file)."""
    try:
        return list(_subtests(Folder(path.parent).read(path.name, MOST_BYTES).decode()))
    except OSError as error:
        raise DataError(f"reading {path}: {error.strerror or error}; check the path") from error
    except (ET.ParseError, ValueError) as error:
        raise DataError(
            f"reading {path}: {printable(str(error), keep='')}; give a file of `plait selftest --junit`"
        ) from error


def _subtests(text: str) -> Iterator[Subtest]:
    if "<!DOCTYPE" in text:
        raise ValueError("it has a document type")
    root = ET.fromstring(text)  # noqa: S314 - without a document type there are no entities to expand
    for suite in root.iter("testsuite"):
        title = _SUITE.fullmatch(suite.get("name") or "")
        if title is None:
            raise ValueError("a testsuite has no name such as `diag seed 1`")
        yield from _of_suite(title["suite"], int(title["seed"]), suite.findall("testcase"))


def _of_suite(suite: str, seed: int, cases: Sequence[ET.Element]) -> Iterator[Subtest]:
    for case in cases:
        verdict: Verdict = "pass"
        if case.find("failure") is not None:
            verdict = "fail"
        elif (skipped := case.find("skipped")) is not None:
            verdict = "ignore" if (skipped.get("message") or "").startswith(IGNORED) else "skip"
        yield Subtest(suite, printable(case.get("name") or "", keep=""), seed, verdict)


def changes_of_subtests(old: Sequence[Subtest], new: Sequence[Subtest]) -> list[Change]:
    """Return how subtests changed, those that matter most first.

    A subtest fails newly with a seed if it passed with that seed before; with a seed that is new, if it never failed
    before. It is a flake if it also passes with a seed.
    """
    before, after = _by_name(old), _by_name(new)
    suites = {suite for suite, _ in after}
    found = [
        change
        for key in dict.fromkeys([*after, *before])
        if (change := _change(key, before.get(key, {}), after.get(key, {}), suites)) is not None
    ]
    order = ("new failure", "new flake", "newly skipped", "not run", "fixed")
    return sorted(found, key=lambda change: order.index(change[0]))


def _change(key: tuple[str, str], before: _Seeds, after: _Seeds, suites: set[str]) -> Change | None:
    name = ": ".join(key)
    failed = [seed for seed, verdict in after.items() if verdict == "fail"]
    ever = "fail" in before.values()
    newly = [seed for seed in failed if (before[seed] != "fail" if seed in before else not ever)]
    if newly:
        kind = "new failure" if len(failed) == len(after) else "new flake"
        return (kind, name, f"{_seeds(newly)}; {'passed before' if before else 'not run before'}")
    if not after:
        ran = key[0] in suites and any(verdict != "skip" for verdict in before.values())
        return ("not run", name, "its suite ran") if ran else None
    skipped = all(verdict == "skip" for verdict in after.values())
    if skipped and "pass" in before.values():
        return ("newly skipped", name, _seeds(list(after)))
    fixed = [seed for seed, verdict in after.items() if verdict == "pass" and before.get(seed) == "fail"]
    return ("fixed", name, f"{_seeds(fixed)} failed before") if fixed and not failed else None


def _by_name(subtests: Sequence[Subtest]) -> dict[tuple[str, str], _Seeds]:
    named: dict[tuple[str, str], _Seeds] = {}
    for subtest in subtests:
        named.setdefault((subtest.suite, subtest.name), {})[subtest.seed] = subtest.verdict
    return named


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds[:8]))}" + ", .." * (len(seeds) > 8)
