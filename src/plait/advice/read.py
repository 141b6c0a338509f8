"""Reads advice.json back into typed goals."""

from __future__ import annotations

import math

from pydantic import BaseModel, ValidationError

from plait.advice.result import GoalAdvice
from plait.dataset.provenance import explain
from plait.errors import DataError
from plait.files import MOST_BYTES, Folder
from plait.metrics import CATALOGUE

FILE = "advice.json"


class _AdviceFile(BaseModel):
    goals: tuple[GoalAdvice, ...]


def goals_in(folder: Folder) -> tuple[GoalAdvice, ...]:
    """Return the goals of the advice in a folder; none without advice.json.

    Raises:
        DataError: advice.json cannot be read, or is damaged.
    """
    remedy = "repeat `plait advise` with the same --out, which writes it again"
    try:
        content = folder.read(FILE, MOST_BYTES)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise DataError(f"{folder.path / FILE}: cannot be read ({error.strerror}); {remedy}") from error
    try:
        goals = _AdviceFile.model_validate_json(content).goals
    except ValidationError as error:
        raise DataError(f"{folder.path / FILE}: {explain(error)}; {remedy}") from error
    for goal in goals:
        problem = _problem(goal)
        if problem:
            raise DataError(f"{folder.path / FILE}: {problem}; {remedy}")
    return goals


def _problem(goal: GoalAdvice) -> str | None:
    """Return what contradicts itself in a goal."""
    names = {row.name for row in goal.tried}
    if goal.metric not in CATALOGUE:
        return f"{goal.goal} has the unknown metric {goal.metric}"
    if "now" not in names or (goal.best is not None and goal.best not in names):
        return f"{goal.goal} lacks the numbers of now, or of the best change"
    against_now = [row.against_now for row in goal.tried] + [row.against_now for row in goal.shifted]
    gains = [gain for gain in against_now if gain is not None]
    intervals = [(row.mean, row.ci95) for row in goal.tried] + [(gain.ratio, gain.ci95) for gain in gains]
    numbers = [number for value, ends in intervals for number in (value, *(ends or ())) if number is not None]
    if not all(math.isfinite(number) for number in numbers):
        return f"{goal.goal} has a number that is not finite"
    return None
