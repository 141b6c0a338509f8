"""Finds the first bad commit of a git tree by measurements, with `git bisect` in plait's own folder below its cache.

A commit is bad if its value is nearer to that of the bad end than to that of the good end. Digests play no role: any
change of timing changes bytes. The state stays on disk, so the same request continues after an interrupt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from plait.errors import KernelBuildError, RequestError
from plait.files import Folder
from plait.kernel import cache
from plait.kernel.checkout import run_git

if TYPE_CHECKING:
    from plait.kernel.checkout import GitTree

MOST_STEPS = 200
"""Most commits that plait tries; a bisection of a million commits needs 20."""
_FIRST_BAD = re.compile(r"^([0-9a-f]{40}) is the first bad commit$", re.MULTILINE)


@dataclass(frozen=True)
class Question:
    """What to find: the commit between `good` and `bad` that made a value worse by `worse_by` (0.02: 2 %)."""

    good: str
    bad: str
    subject: str
    """What is measured, so that an interrupted bisection of something else does not continue."""
    worse_by: float
    less_is_better: bool


@dataclass(frozen=True)
class Answer:
    """The result of a bisection."""

    first_bad: str | None
    """None if skipped commits hide it."""
    candidates: tuple[str, ...]
    """The commits that it can be; one if `first_bad` is known."""
    values: dict[str, float | None]
    """By commit, its value; None if it could not be built, booted or measured."""


Measure = Callable[[str], float | None]
"""Returns the value of a commit, or None if the commit must be skipped."""


class Bisection:
    """A bisection of a tree, whose state stays on disk."""

    def __init__(self, tree: GitTree, question: Question) -> None:
        """Continue the bisection that asks `question`, or start it."""
        self._tree = tree
        self._question = question
        text = json.dumps([str(tree.folder), asdict(question)])
        self._folder = cache.kernels_root() / ".bisect" / hashlib.sha256(text.encode()).hexdigest()[:16]
        self.values: dict[str, float | None] = {}
        if (self._folder / "values.json").is_file():
            self.values = json.loads(Folder(self._folder).read("values.json"))

    def run(self, measure: Measure, report: Callable[[str, float | None, str], None]) -> Answer:
        """Return the first bad commit; `report` gets each commit, its value and the verdict.

        Raises RequestError if an end cannot be measured, or if they differ by less than the question says.
        """
        good, bad = self._tree.commit(self._question.good), self._tree.commit(self._question.bad)
        low, high = self._end(good, "good", measure, report), self._end(bad, "bad", measure, report)
        loss = (high - low if self._question.less_is_better else low - high) / abs(low) if low else 0.0
        if loss < self._question.worse_by:
            raise RequestError(
                f"bisecting {self._tree.folder}: the value is {low:g} at {self._question.good} and {high:g} at "
                f"{self._question.bad}, which is {loss:.2%} worse, and not {self._question.worse_by:.2%}; choose other "
                "commits, more seeds or a lower --worse-by"
            )
        self._start(good)
        text = self._git("bisect", "start", "--no-checkout", bad, good, "--")
        for _ in range(MOST_STEPS):
            done = self._answer(text)
            if done is not None:
                return done
            commit = self._git("rev-parse", "BISECT_HEAD").strip()
            value = self._value(commit, measure)
            verdict = "skip" if value is None else "bad" if abs(value - high) < abs(value - low) else "good"
            report(commit, value, verdict)
            text = self._git("bisect", verdict, commit, allowed=(0, 2))
        raise KernelBuildError(
            f"bisecting {self._tree.folder}: there is no answer after {MOST_STEPS} commits"
        )

    def _end(
        self, commit: str, side: str, measure: Measure, report: Callable[[str, float | None, str], None]
    ) -> float:
        value = self._value(commit, measure)
        if value is None:
            raise RequestError(
                f"bisecting {self._tree.folder}: the {side} commit {commit[:12]} cannot be built, booted or measured; "
                "choose another one"
            )
        report(commit, value, side)
        return value

    def _value(self, commit: str, measure: Measure) -> float | None:
        if commit not in self.values:
            self.values[commit] = measure(commit)
            self._folder.mkdir(parents=True, exist_ok=True)
            Folder(self._folder).write("values.json", json.dumps(self.values).encode())
        return self.values[commit]

    def _start(self, good: str) -> None:
        """Make a repository that borrows the objects of the tree, because `git bisect` writes its state to one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if not (self._folder / ".git").is_dir():
            self._git("init", "--quiet")
        alternates = self._folder / ".git" / "objects" / "info" / "alternates"
        alternates.write_text(f"{self._tree.path('objects')}\n", encoding="utf-8")
        self._git("update-ref", "HEAD", good)

    def _answer(self, text: str) -> Answer | None:
        match = _FIRST_BAD.search(text)
        if match is not None:
            return Answer(match[1], (match[1],), self.values)
        if "only 'skip'ped commits left" in text:
            return Answer(None, tuple(re.findall(r"^([0-9a-f]{40})$", text, re.MULTILINE)), self.values)
        return None

    def _git(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
        done = run_git(list(arguments), {}, self._folder)
        if done.returncode not in allowed:
            reason = done.stderr.strip().splitlines() or ["it failed"]
            raise KernelBuildError(f"`git {' '.join(arguments[:2])}` for {self._tree.folder}: {reason[0]}")
        return done.stdout + done.stderr
