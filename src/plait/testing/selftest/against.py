"""Compare results with earlier ones: subtests of JUnit files, and the figures of `plait benchmark`, as one list."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from plait.analysis.statistics.differences import direction, paired
from plait.analysis.statistics.tests import holm
from plait.benchmark.suite import cells
from plait.errors import DataError, RequestError, printable
from plait.files import Folder
from plait.metrics import CATALOGUE
from plait.testing.selftest.tap import IGNORED, Subtest, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from plait.benchmark.results_file import Results

MOST_BYTES = 64 << 20
_SUITE = re.compile(r"(?P<suite>.{1,200}) seed (?P<seed>\d{1,9})")
_MARGIN = 0.01
"""Figures that differ by less, as a ratio, have not moved."""
_Seeds = dict[int, Verdict]


@dataclass(frozen=True)
class Change:
    """A difference to earlier results."""

    kind: str
    """Of subtests: new failure, new flake, newly skipped, not run, fixed. Of figures: worse, better."""
    name: str
    detail: str

    @property
    def is_new_failure(self) -> bool:
        """Whether it fails a nightly run."""
        return self.kind in ("new failure", "new flake")


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
    return sorted(found, key=lambda change: order.index(change.kind))


def _change(key: tuple[str, str], before: _Seeds, after: _Seeds, suites: set[str]) -> Change | None:
    name = ": ".join(key)
    failed = [seed for seed, verdict in after.items() if verdict == "fail"]
    ever = "fail" in before.values()
    newly = [seed for seed in failed if (before[seed] != "fail" if seed in before else not ever)]
    if newly:
        kind = "new failure" if len(failed) == len(after) else "new flake"
        return Change(kind, name, f"{_seeds(newly)}; {'passed before' if before else 'not run before'}")
    if not after:
        ran = key[0] in suites and any(verdict != "skip" for verdict in before.values())
        return Change("not run", name, "its suite ran") if ran else None
    skipped = all(verdict == "skip" for verdict in after.values())
    if skipped and "pass" in before.values():
        return Change("newly skipped", name, _seeds(list(after)))
    fixed = [seed for seed, verdict in after.items() if verdict == "pass" and before.get(seed) == "fail"]
    return Change("fixed", name, f"{_seeds(fixed)} failed before") if fixed and not failed else None


def _by_name(subtests: Sequence[Subtest]) -> dict[tuple[str, str], _Seeds]:
    named: dict[tuple[str, str], _Seeds] = {}
    for subtest in subtests:
        named.setdefault((subtest.suite, subtest.name), {})[subtest.seed] = subtest.verdict
    return named


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' * (len(seeds) != 1)} {', '.join(map(str, seeds[:8]))}" + ", .." * (len(seeds) > 8)


def changes_of_figures(old: Results, new: Results) -> list[Change]:
    """Return the cells of a benchmark whose figure moved, seed by seed, with the interval of the ratio.

    Student's t over the pairs, or the bootstrap if they are skewed, with Holm's correction over the cells; a ratio
    within 1 % has not moved.

    Raises:
        RequestError: the results have no seed in common.
    """
    seeds = [seed for seed in old.seeds if seed in new.seeds]
    if not seeds:
        raise RequestError(
            f"comparing the figures of {old.entry.name} and {new.entry.name}: they have no seed in common"
        )
    more_is_better = {
        cell.name: CATALOGUE[cell.cell_class.metric].more_is_better for cell in cells(new.subset)
    }
    tested = []
    for name in sorted(old.cells.keys() & new.cells.keys()):
        pairs = [
            (x, y)
            for seed in seeds
            if (x := old.cells[name].values[old.seeds.index(seed)]) is not None
            and (y := new.cells[name].values[new.seeds.index(seed)]) is not None
        ]
        if pairs:
            tested.append((name, len(pairs), paired(*zip(*pairs, strict=True))))
    moved = []
    for (name, count, compared), p_holm in zip(tested, holm([t.p_value for _, _, t in tested]), strict=True):
        way = direction(compared, p_holm, _MARGIN)
        if way in ("more", "less") and compared.ratio is not None:
            better = (way == "more") == more_is_better[name]
            low, high = compared.ratio.ci95 or (compared.ratio.value,) * 2
            interval = f" ({_percent(low)} to {_percent(high)})" if compared.ratio.ci95 else ""
            detail = f"{_percent(compared.ratio.value)}{interval}, {count} seed{'s' * (count != 1)}"
            moved.append(Change("better" if better else "worse", f"benchmark: {name}", detail))
    return moved


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %".replace("-", "\N{MINUS SIGN}")
