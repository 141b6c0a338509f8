"""What an advice says follows from its intervals: no winner among equals, and no gain that its interval denies."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from plait.advice.changes.model import NOW, Candidate, HostCommand
from plait.advice.result import Advice, GoalAdvice, Shifted, compared, judged
from plait.advice.words import against, sentences, table
from plait.cli.results.advise import _apply, _Target
from plait.engine.remote.lasting import RemoteHost
from plait.errors import RequestError

COMMAND = HostCommand("home", "true", "true")
NOW_VALUES = {1: 50e6, 2: 51e6, 3: 49e6, 4: 50e6}


def times(factor: float, wobble: float = 0.0) -> dict[int, float]:
    return {seed: value * (factor + (wobble if seed % 2 else -wobble)) for seed, value in NOW_VALUES.items()}


def advice(values: dict[str, dict[int, float]], metric: str = "goodput_bps") -> GoalAdvice:
    pairs = {"a+b": ("a", "b")}
    known = [NOW, *(Candidate(name, f"change {name}", parts=pairs.get(name, ())) for name in values)]
    return judged(
        "download", metric, {"now": NOW_VALUES, **values}, known, {"now": "head-of-line"}, cut_short=False
    )


@pytest.mark.parametrize(
    ("factor", "wobble", "metric", "verdict"),
    [
        (1.2, 0.0, "goodput_bps", "better"),
        (0.8, 0.0, "goodput_bps", "worse"),
        (1.2, 0.0, "message_delay_p95_us", "worse"),
        (0.8, 0.0, "message_delay_p95_us", "better"),
        (1.01, 0.001, "goodput_bps", "same"),
        (1.02, 0.2, "goodput_bps", "unclear"),
        (1.035, 0.01, "goodput_bps", "unclear"),
    ],
)
def test_a_verdict_needs_the_whole_interval(factor: float, wobble: float, metric: str, verdict: str) -> None:
    result = compared(metric, NOW_VALUES, times(factor, wobble))
    assert result is not None
    assert result.verdict == verdict


def test_of_candidates_that_do_not_differ_the_one_with_the_fewest_changes_is_advised() -> None:
    goal = advice({"a+b": times(1.31), "a": times(1.3), "b": times(1.1)})
    assert (goal.best, goal.ties) == ("a", ("a+b",))
    assert [row.name for row in goal.tried] == ["now", "a+b", "a", "b"]


def test_nothing_helps_is_said_only_where_the_intervals_exclude_a_gain() -> None:
    same = advice({"a": times(1.01, 0.001), "b": times(0.7)})
    assert same.best is None
    text = " ".join(sentences(same))
    assert "Nothing that you can change helps by more than 3 %." in text
    assert "Worse than now: b." in text
    open_ = advice({"a": times(1.02, 0.2)})
    assert "the seeds do not decide on a" in " ".join(sentences(open_))


def test_seeds_that_one_candidate_lacks_are_left_out() -> None:
    result = compared("goodput_bps", NOW_VALUES, {1: 100e6, 9: 1.0})
    assert result is not None
    assert result.ratio == pytest.approx(2.0)
    assert compared("goodput_bps", NOW_VALUES, {9: 1.0}) is None


def test_worse_lines_on_which_a_change_does_not_help_are_named() -> None:
    from dataclasses import replace

    better, unclear = (compared("goodput_bps", NOW_VALUES, times(*pair)) for pair in ((1.3,), (1.0, 0.3)))
    goal = replace(
        advice({"a": times(1.3)}), shifted=(Shifted("cable slower", better), Shifted("RTT doubled", unclear))
    )
    text = " ".join(sentences(goal))
    assert "It still helps with: cable slower (+30" in text
    assert "It is not shown to help with: RTT doubled" in text
    assert against(None) == "\N{EN DASH}"


def test_a_change_that_one_goal_suffers_from_is_not_applied_without_being_named() -> None:
    download, call = advice({"a": times(1.3)}), advice({"a": times(1.3)}, "message_delay_p95_us")
    both = Advice(
        "lines", "home", "vps", 1, (download, call), (NOW, Candidate("a", "change a", commands=(COMMAND,)))
    )
    assert both.best == "a"
    assert both.worse_for("a") == ["download"]
    home = _Target("home", RemoteHost.named("home"))
    with pytest.raises(RequestError, match="choose a change with --change NAME"):
        _apply(both, home, None, printed=True)
    _apply(both, home, "a", printed=True)


def test_the_interval_of_a_delay_does_not_begin_below_what_the_line_allows() -> None:
    values = {"now": {1: 20_000.0, 2: 21_000.0, 3: 20_500.0, 4: 90_000.0}}
    goal = judged("call", "message_delay_p95_us", values, [NOW], {}, cut_short=False, least=7_000.0)
    assert goal.tried[0].ci95 is not None
    assert goal.tried[0].ci95[0] >= 7_000.0


def test_the_table_has_room_for_long_names_at_80_columns() -> None:
    name = "shape-a-line-of-a-long-name+use-another-of-a-long-name"
    shown = io.StringIO()
    Console(file=shown, width=80).print(table(advice({name: times(1.3, 0.02)})))
    text = shown.getvalue()
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "+use-another-of" in text
    assert "[+" in text
