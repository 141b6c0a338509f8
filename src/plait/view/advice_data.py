"""What `plait advise` says of a study that is one of its rounds, for the study's page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from plait.advice.read import goals_in
from plait.advice.words import against, sentences
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.values import with_interval
from plait.errors import DataError, printable
from plait.files import Folder

if TYPE_CHECKING:
    from pathlib import Path

    from plait.advice.result import GoalAdvice

_ROUND = re.compile(r"(?P<goal>[a-z]+)-(worse-)?[0-9]+")


def advice_view(folder: Path) -> dict[str, Any] | None:
    """Return the advice on the goal of a round: its candidates in words, and sentences.

    The folder above the round has the advice. Returns None if the study is no round of an advice that has ended, and
    only the problem if the advice is damaged.
    """
    match = _ROUND.fullmatch(folder.name)
    if match is None:
        return None
    try:
        goals = goals_in(Folder(folder.parent))
    except DataError as error:
        return {"problem": str(error)}
    goal = next((goal for goal in goals if goal.goal == match["goal"]), None)
    return None if goal is None else _goal_view(goal, [other for other in goals if other is not goal])


def _goal_view(goal: GoalAdvice, others: list[GoalAdvice]) -> dict[str, Any]:
    rows = [
        {
            "name": printable(row.name),
            "words": printable(row.words),
            "best": row.name == goal.best,
            "value": with_interval(goal.metric, row.mean, row.ci95),
            "against": against(row.against_now),
            "trials": row.trials,
        }
        for row in goal.tried
    ]
    return {
        "goal": goal.goal,
        "metric": title_of(goal.metric),
        "rows": rows,
        "sentences": [printable(sentence) for sentence in sentences(goal, others, rows=len(rows))],
    }
