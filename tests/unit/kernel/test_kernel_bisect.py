"""A bisection finds the planted commit among noise and commits that do not build, and continues where it stopped.

The noise of a seed differs from commit to commit, as that of a real kernel does: only an interval over pairs tells.
"""

from __future__ import annotations

import math
import os
import subprocess
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from kernel_fakes import make_numbered_commits, number_in
from plait.api.bisection import median_interval
from plait.errors import RequestError
from plait.kernel.bisect import Answer, Bisection, JudgedCommit, Question
from plait.kernel.checkout import GitTree

if TYPE_CHECKING:
    from pathlib import Path

COMMITS = 64
SEEDS, MOST_SEEDS = 10, 160
QUESTION = Question(
    "first", "HEAD", "goodput", 0.02, less_is_better=False, seeds=SEEDS, most_seeds=MOST_SEEDS
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitTree:
    """A tree of 64 commits, whose file has the number of its commit."""
    monkeypatch.setenv("PLAIT_CACHE", str(tmp_path / "cache"))
    folder = make_numbered_commits(tmp_path / "linux", COMMITS)
    first = f"HEAD~{COMMITS - 1}"
    subprocess.run(["git", "tag", "first", first], cwd=folder, check=True)
    return GitTree(folder)


def measuring(
    tree: GitTree, planted: int, broken: tuple[int, ...] = (), *, noise: float = 0.5, lost: float = 3.0
) -> Measured:
    """Return a measurement that loses 3 % from the commit `planted` on, with noise of 0.5 % (standard deviation)."""
    return Measured(tree, planted, broken, noise, lost)


@dataclass
class Measured:
    """A fake measurement, and what it was asked for."""

    tree: GitTree
    planted: int
    broken: tuple[int, ...]
    noise: float
    lost: float
    asked: list[tuple[int, int]] = field(default_factory=list)
    """Numbers of commits, and of seeds."""

    def __call__(self, commit: str, seeds: int) -> list[float | None] | None:
        """Return a value for each seed, always the same for one commit and seed."""
        number = number_in(self.tree.folder, commit)
        self.asked.append((number, seeds))
        if number in self.broken:
            return None
        mean = 100 - (self.lost if number >= self.planted else 0)
        return [mean + Random(f"{number} {seed}").gauss(0, self.noise) for seed in range(seeds)]


def answer_of(tree: GitTree, measure: Measured, question: Question = QUESTION) -> Answer:
    return Bisection(tree, question, measure, median_interval).run(lambda _: None)


@pytest.mark.parametrize("planted", [1, 2, 17, 32, 40, 62, 63])
def test_the_planted_commit_is_found_in_the_logarithm_of_steps(tree: GitTree, planted: int) -> None:
    answer = answer_of(tree, measuring(tree, planted))
    assert answer.first_bad is not None
    assert number_in(tree.folder, answer.first_bad) == planted
    assert len(answer.steps) <= 10


def test_commits_that_do_not_build_are_skipped(tree: GitTree) -> None:
    answer = answer_of(tree, measuring(tree, 40, broken=(31, 32, 47)))
    assert answer.first_bad is not None
    assert number_in(tree.folder, answer.first_bad) == 40


def test_skipped_commits_beside_the_bad_one_are_named_as_candidates(tree: GitTree) -> None:
    answer = answer_of(tree, measuring(tree, 40, broken=(38, 39)))
    assert answer.first_bad is None
    assert sorted(number_in(tree.folder, commit) for commit in answer.candidates) == [38, 39, 40]


def test_an_interrupted_bisection_measures_no_commit_again(tree: GitTree) -> None:
    measure = measuring(tree, 40)

    def interrupted(commit: str, seeds: int) -> list[float | None] | None:
        if len(measure.asked) == 4:
            raise KeyboardInterrupt
        return measure(commit, seeds)

    with pytest.raises(KeyboardInterrupt):
        Bisection(tree, QUESTION, interrupted, median_interval).run(lambda _: None)
    answer = answer_of(tree, measure)
    assert number_in(tree.folder, answer.first_bad or "") == 40
    assert len(measure.asked) == len(set(measure.asked))


@pytest.mark.parametrize("lost", [0.0, 1.0, 2.0])
def test_ends_that_do_not_surely_differ_are_refused_with_their_interval(tree: GitTree, lost: float) -> None:
    measure = measuring(tree, 20, lost=lost)
    with pytest.raises(
        RequestError, match=r"changes by [+-]\d\.\d+% to [+-]\d\.\d+% \(interval over \d+ seeds\)"
    ):
        answer_of(tree, measure)
    assert {number for number, _ in measure.asked} == {0, COMMITS - 1}, "no step began"
    assert max(seeds for _, seeds in measure.asked) == (MOST_SEEDS if lost == 2.0 else SEEDS)


def test_further_seeds_are_drawn_only_until_the_interval_decides(tree: GitTree) -> None:
    calm = measuring(tree, 40)
    assert answer_of(tree, calm).first_bad is not None
    assert {seeds for _, seeds in calm.asked} == {SEEDS}


@pytest.mark.parametrize("planted", [5, 40, 62])
def test_noise_as_large_as_the_regression_leads_to_no_wrong_commit(tree: GitTree, planted: int) -> None:
    measure = measuring(tree, planted, noise=3.0, lost=4.0)
    answer = answer_of(tree, measure, replace(QUESTION, worse_by=0.01))
    assert max(seeds for _, seeds in measure.asked) > SEEDS
    assert planted in {number_in(tree.folder, commit) for commit in answer.candidates}


def test_a_commit_that_the_most_seeds_do_not_decide_is_skipped(tree: GitTree) -> None:
    """A commit half way between both ends is neither good nor bad."""
    measure = measuring(tree, 40)

    def with_a_middle(commit: str, seeds: int) -> list[float | None] | None:
        values = measure(commit, seeds)
        assert values is not None
        number = number_in(tree.folder, commit)
        return [98.5 + (-0.3) ** (seed % 2) for seed in range(seeds)] if number == 39 else values

    steps: list[JudgedCommit] = []
    answer = Bisection(tree, QUESTION, with_a_middle, median_interval).run(steps.append)
    assert answer.first_bad is None
    assert sorted(number_in(tree.folder, commit) for commit in answer.candidates) == [39, 40]
    [middle] = [step for step in steps if step.verdict == "skip"]
    assert len(middle.values or ()) == MOST_SEEDS


@pytest.mark.slow
def test_the_interval_of_a_median_covers_it_as_often_as_it_says() -> None:
    """1 % over four looks are 0.25 % each; 2000 samples of ten values of a skewed distribution."""
    random = Random(1)
    missed = 0
    for _ in range(2000):
        low, high = median_interval([random.expovariate(1) for _ in range(10)], 4) or (0, 0)
        missed += not low <= math.log(2) <= high
    assert missed <= 2000 * 0.0025 + 3 * math.sqrt(2000 * 0.0025)
    assert median_interval([1.0] * 5, 4) is None, "five values cannot exclude anything that surely"


def test_nothing_is_written_to_the_tree(tree: GitTree) -> None:
    before = sorted(os.walk(tree.folder))
    answer_of(tree, measuring(tree, 9))
    assert sorted(os.walk(tree.folder)) == before
