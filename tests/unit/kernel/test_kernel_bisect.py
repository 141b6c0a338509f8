"""A bisection finds the planted commit among noise and commits that do not build, and continues where it stopped."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from kernel_fakes import make_numbered_commits, number_in
from plait.errors import RequestError
from plait.kernel.bisect import Bisection, Question
from plait.kernel.checkout import GitTree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMITS = 64
QUESTION = Question("first", "HEAD", "goodput", 0.02, less_is_better=False)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitTree:
    """A tree of 64 commits, whose file has the number of its commit."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    folder = make_numbered_commits(tmp_path / "linux", COMMITS)
    first = f"HEAD~{COMMITS - 1}"
    subprocess.run(["git", "tag", "first", first], cwd=folder, check=True)
    return GitTree(folder)


def measuring(
    tree: GitTree, planted: int, broken: tuple[int, ...] = (), seen: list[int] | None = None
) -> Callable[[str], float | None]:
    """Return a measurement that loses 3 % from the commit `planted` on, with noise of 0.5 %."""

    def measure(commit: str) -> float | None:
        number = number_in(tree.folder, commit)
        if seen is not None:
            seen.append(number)
        if number in broken:
            return None
        return 100 * (0.97 if number >= planted else 1.0) + number % 7 / 12

    return measure


@pytest.mark.parametrize("planted", [1, 2, 17, 32, 40, 62, 63])
def test_the_planted_commit_is_found_in_the_logarithm_of_steps(tree: GitTree, planted: int) -> None:
    answer = Bisection(tree, QUESTION).run(measuring(tree, planted), lambda *_: None)
    assert answer.first_bad is not None
    assert number_in(tree.folder, answer.first_bad) == planted
    assert len(answer.values) <= 10


def test_commits_that_do_not_build_are_skipped(tree: GitTree) -> None:
    answer = Bisection(tree, QUESTION).run(measuring(tree, 40, broken=(31, 32, 47)), lambda *_: None)
    assert answer.first_bad is not None
    assert number_in(tree.folder, answer.first_bad) == 40


def test_skipped_commits_beside_the_bad_one_are_named_as_candidates(tree: GitTree) -> None:
    answer = Bisection(tree, QUESTION).run(measuring(tree, 40, broken=(38, 39)), lambda *_: None)
    assert answer.first_bad is None
    assert sorted(number_in(tree.folder, commit) for commit in answer.candidates) == [38, 39, 40]


def test_an_interrupted_bisection_measures_no_commit_again(tree: GitTree) -> None:
    seen: list[int] = []
    measure = measuring(tree, 40, seen=seen)

    def interrupted(commit: str) -> float | None:
        if len(seen) == 4:
            raise KeyboardInterrupt
        return measure(commit)

    with pytest.raises(KeyboardInterrupt):
        Bisection(tree, QUESTION).run(interrupted, lambda *_: None)
    answer = Bisection(tree, QUESTION).run(measure, lambda *_: None)
    assert number_in(tree.folder, answer.first_bad or "") == 40
    assert len(seen) == len(set(seen))


def test_ends_that_do_not_differ_are_refused_with_their_values(tree: GitTree) -> None:
    with pytest.raises(RequestError, match=r"which is -?0\.\d+% worse, and not 2\.00%"):
        Bisection(tree, QUESTION).run(measuring(tree, COMMITS), lambda *_: None)


def test_nothing_is_written_to_the_tree(tree: GitTree) -> None:
    before = sorted(os.walk(tree.folder))
    Bisection(tree, QUESTION).run(measuring(tree, 9), lambda *_: None)
    assert sorted(os.walk(tree.folder)) == before
