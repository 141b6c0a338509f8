"""Finds the first bad commit of a git tree by measurements, with `git bisect` in plait's own folder below its cache.

A measurement is a list of values, one for each seed. A commit is bad if its values are nearer to those of the bad end
than to those of the good end, seed by seed, and the interval over these pairs excludes the middle. Until it does,
plait draws further seeds. Digests play no role: any change of timing changes bytes. The state stays on disk, so the
same request continues after an interrupt.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from plait.errors import KernelBuildError, RequestError, shell_command
from plait.files import Folder
from plait.kernel import cache
from plait.kernel.checkout import GitTree, run_git

MOST_STEPS = 200
"""Most commits that plait tries; a bisection of a million commits needs 20."""
_FIRST_BAD = re.compile(r"^([0-9a-f]{40}) is the first bad commit$", re.MULTILINE)


@dataclass(frozen=True)
class Question:
    """The goal: the commit between `good` and `bad` that made a value worse by `worse_by` (0.02: 2 %)."""

    good: str
    bad: str
    subject: str
    """A description of the measurement, so that an interrupted bisection of another one does not continue."""
    worse_by: float
    less_is_better: bool
    seeds: int
    """How many seeds each commit gets first."""
    most_seeds: int
    """How many it gets at most, if fewer do not decide."""

    @property
    def looks(self) -> int:
        """At most how often plait looks at the interval of a commit: the seeds double from look to look."""
        return 1 + max(0, math.ceil(math.log2(self.most_seeds / self.seeds)))


Values = Sequence[float | None]
"""The values of a commit, one for each seed; None where a trial did not measure it."""


@dataclass(frozen=True)
class JudgedCommit:
    """The verdict on a commit."""

    commit: str
    verdict: str
    """`good`, `bad` or `skip`."""
    values: Values | None
    """None if it could not be built, booted or measured."""
    change: tuple[float, float] | None = None
    """The interval of its change against the good end, as a share of that end's value (-0.02: 2 % less).

    None for that end itself, and if there are too few seeds.
    """


@dataclass(frozen=True)
class Answer:
    """The result of a bisection."""

    first_bad: str | None
    """None if skipped commits hide it."""
    candidates: tuple[str, ...]
    """The commits that it can be; one if `first_bad` is known."""
    steps: dict[str, JudgedCommit]
    """By commit, what plait found out about it."""


Measure = Callable[[str, int], Values | None]
"""Returns the values of a commit for the first N seeds, or None if the commit must be skipped."""
Interval = Callable[[Sequence[float], int], tuple[float, float] | None]
"""Returns the interval of the median of values, for one of N looks; None if there are too few values."""


class Bisection:
    """A bisection of a tree, whose state stays on disk."""

    def __init__(self, tree: GitTree, question: Question, measure: Measure, interval: Interval) -> None:
        """Continue the bisection that asks `question`, or start it."""
        self._tree = tree
        self._question = question
        self._measure = measure
        self._interval = interval
        self._good, self._bad = tree.commit(question.good), tree.commit(question.bad)
        text = json.dumps([str(tree.folder), asdict(question)])
        self._folder = cache.kernels_root() / ".bisect" / hashlib.sha256(text.encode()).hexdigest()[:16]
        self._values: dict[str, list[float | None] | None] = {}
        if (self._folder / "values.json").is_file():
            self._values = json.loads(Folder(self._folder).read("values.json"))

    def run(self, report: Callable[[JudgedCommit], None]) -> Answer:
        """Return the first bad commit; `report` gets each step.

        Raises RequestError if an end cannot be measured, or if they do not differ by what the question says.
        """
        ends = (JudgedCommit(self._good, "good", None), JudgedCommit(self._bad, "bad", None))
        for end in ends:
            if self._drawn(end.commit, self._question.seeds) is None:
                raise RequestError(
                    f"bisecting {self._tree.folder}: the {end.verdict} commit {end.commit[:12]} cannot be built, "
                    "booted or measured; choose another one"
                )
        loss = self._decided(partial(self._losses, self._bad), self._question.worse_by)
        for end in ends:
            report(self._step(end.commit, end.verdict))
        if loss is None or loss[1] < self._question.worse_by:
            raise self._alike()
        steps: dict[str, JudgedCommit] = {self._bad: self._step(self._bad, "bad")}
        self._start(self._good)
        text = self._git("bisect", "start", "--no-checkout", self._bad, self._good, "--")
        for _ in range(MOST_STEPS):
            answer = self._answer(text, steps)
            if answer is not None:
                return answer
            commit = self._git("rev-parse", "BISECT_HEAD").strip()
            steps[commit] = self._judged(commit)
            report(steps[commit])
            text = self._git("bisect", steps[commit].verdict, commit, allowed=(0, 2))
        raise KernelBuildError(
            f"bisecting {self._tree.folder}: there is no answer after {MOST_STEPS} commits"
        )

    def _alike(self) -> RequestError:
        low, high = self._step(self._bad, "bad").change or (math.nan, math.nan)
        return RequestError(
            f"bisecting {self._tree.folder}: from {self._question.good} to {self._question.bad} the value changes by "
            f"{low:+.2%} to {high:+.2%} (interval over {self._known(self._bad)} seeds), which is not surely worse by "
            f"{self._question.worse_by:.2%}; choose other commits, a higher --most-seeds or a lower --worse-by"
        )

    def _judged(self, commit: str) -> JudgedCommit:
        if self._drawn(commit, self._question.seeds) is None:
            return JudgedCommit(commit, "skip", None)
        shift = self._decided(partial(self._beyond_middle, commit), 0.0)
        return self._step(commit, "skip" if shift is None else "bad" if shift[0] > 0 else "good")

    def _step(self, commit: str, verdict: str) -> JudgedCommit:
        seeds = self._known(commit)
        sign = 1 if self._question.less_is_better else -1
        changes = [sign * loss for loss in self._losses(commit, seeds)]
        change = None if commit == self._good else self._interval(changes, self._question.looks)
        return JudgedCommit(commit, verdict, self._values[commit], change)

    def _decided(self, effects: Callable[[int], Sequence[float]], bound: float) -> tuple[float, float] | None:
        """Return the interval of the median effect once it excludes `bound`; None if the most seeds do not decide."""
        seeds = self._question.seeds
        while True:
            interval = self._interval(effects(seeds), self._question.looks)
            if interval is not None and not interval[0] <= bound <= interval[1]:
                return interval
            if seeds == self._question.most_seeds:
                return None
            seeds = min(2 * seeds, self._question.most_seeds)

    def _losses(self, commit: str, seeds: int) -> list[float]:
        """Return by what share the commit is worse than the good end, for each pair of one seed."""
        sign = 1 if self._question.less_is_better else -1
        pairs = self._pairs(seeds, self._good, commit)
        return [sign * (value - good) / abs(good) for good, value in pairs if good]

    def _beyond_middle(self, commit: str, seeds: int) -> list[float]:
        """Return how far the commit is beyond the middle between both ends, towards worse, for each seed."""
        sign = 1 if self._question.less_is_better else -1
        triples = self._pairs(seeds, self._good, self._bad, commit)
        return [sign * (value - (good + bad) / 2) for good, bad, value in triples]

    def _pairs(self, seeds: int, *commits: str) -> list[tuple[float, ...]]:
        """Return the values of these commits for each of the first seeds with which all of them measured one."""
        columns = [(self._drawn(commit, seeds) or [])[:seeds] for commit in commits]
        rows = zip(*columns, strict=False)
        return [row for row in rows if all(value is not None for value in row)]

    def _known(self, commit: str) -> int:
        return len(self._values.get(commit) or ())

    def _drawn(self, commit: str, seeds: int) -> list[float | None] | None:
        """Return the values of the first seeds or more, measured if the state lacks them; None for a skipped commit."""
        if commit not in self._values or (self._values[commit] is not None and self._known(commit) < seeds):
            values = self._measure(commit, seeds)
            self._values[commit] = None if values is None else list(values)
            self._folder.mkdir(parents=True, exist_ok=True)
            Folder(self._folder).write("values.json", json.dumps(self._values).encode())
        return self._values[commit]

    def _start(self, good: str) -> None:
        """Make a repository that borrows the objects of the tree, because `git bisect` writes its state to one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if not (self._folder / ".git").is_dir():
            self._git("init", "--quiet")
        info = Folder(self._folder, (".git", "objects", "info"))
        info.write("alternates", f"{self._tree.path('objects')}\n".encode())
        self._git("update-ref", "HEAD", good)

    def _answer(self, text: str, steps: dict[str, JudgedCommit]) -> Answer | None:
        match = _FIRST_BAD.search(text)
        if match is not None:
            return Answer(match[1], (match[1],), steps)
        if "only 'skip'ped commits left" in text:
            return Answer(None, tuple(re.findall(r"^([0-9a-f]{40})$", text, re.MULTILINE)), steps)
        return None

    def _git(self, *arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
        result = run_git(list(arguments), {}, self._folder)
        if result.returncode not in allowed:
            reason = result.stderr.strip().splitlines() or ["it failed"]
            command = shell_command("git", *arguments[:2])
            raise KernelBuildError(f"`{command}` for {self._tree.folder}: {reason[0]}")
        return result.stdout + result.stderr
