"""An advice as a person reads it: a table of candidates, sentences that its intervals allow, and the commands."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from rich.table import Table

from plait.advice.result import LOSS, RTT, Advice, Agreement, Gain, GoalAdvice
from plait.analysis.metrics.catalogue import title_of
from plait.analysis.values import show, with_interval
from plait.analysis.wording import MISSING, change, significant
from plait.metrics import CATALOGUE

_FACTOR = 2.0
_NAME_WIDTH = 17
_ROWS = 8
"""Rows of a goal in the table; the JSON has all."""


def table(goal: GoalAdvice) -> Table:
    """Return the candidates of one goal, `now` first and then the best ones."""
    shown = Table(
        box=None, pad_edge=False, title_justify="left", title=f"{goal.goal}: {title_of(goal.metric).lower()}"
    )
    for heading in ("change", "", "against now", "seeds"):
        shown.add_column(heading, justify="left" if heading == "change" else "right", no_wrap=True)
    for row in goal.tried[:_ROWS]:
        mark = "1 " if row.name == goal.best else "= " if row.name in goal.ties else "  "
        shown.add_row(
            f"{mark}{folded(row.name)}",
            with_interval(goal.metric, row.mean, row.ci95),
            against(row.against_now),
            str(row.trials),
        )
    return shown


def verified_table(rows: Sequence[Agreement]) -> Table:
    """Return the twin against the real lines: a heading for each goal and change, and a row for each metric."""
    shown = Table(box=None, pad_edge=False)
    for heading in ("", "twin", "lines", "twin against lines", ""):
        shown.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    named = ""
    for row in rows:
        name, unit = f"{row.goal}: {row.change}", "pp" if row.metric == LOSS else "%"
        if name != named:
            shown.add_row(folded(name))
        named = name
        values = (_measured(row.metric, value) for value in (row.twin, row.lines))
        verdict = MISSING if row.verdict == "not measured" else row.verdict
        label = f"{_row_name(row)} \N{PLUS-MINUS SIGN}{100 * row.bound:.0f} {unit}"
        shown.add_row(
            "\n".join(f"  {part}" for part in textwrap.wrap(label, _NAME_WIDTH)),
            *values,
            _difference(row),
            verdict,
        )
    return shown


def _row_name(row: Agreement) -> str:
    if row.metric == LOSS:
        return "resent"
    if row.metric == RTT:
        return f"RTT {row.line}" if row.line else "median RTT"
    return CATALOGUE[row.metric].heading or title_of(row.metric).lower()


def verified_sentences(rows: Sequence[Agreement]) -> Iterator[str]:
    """Yield what the trials on the real lines show."""
    for row in rows:
        if row.lines_against_now is not None:
            yield f"{row.goal}: on the real lines, {row.change} against now: {against(row.lines_against_now)}."
    differing = [f"{row.goal} with {row.change}" for row in rows if row.verdict == "differ"]
    if differing:
        yield (
            f"The twin differs from the lines for {', '.join(dict.fromkeys(differing))}: the lines or the settings of "
            "the hosts are no longer those of the scenario; `plait lines` measures them again."
        )
    if any(row.verdict == "undecided" for row in rows):
        yield "More trials decide more (--repeat); lines that change from trial to trial stay undecided."
    for row in rows:
        if row.line is not None and row.verdict == "not measured":
            side = "the lines send" if row.twin is None else "the twin sends"
            yield f"{row.goal} with {row.change}: only {side} data over {row.line}."
    unmeasured = [row.goal for row in rows if row.verdict == "not measured" and row.line is None]
    if unmeasured:
        yield (
            f"{', '.join(dict.fromkeys(unmeasured))}: a delay from one host to the other needs one clock, so the lines "
            "have none."
        )


def _measured(metric: str, value: float | None) -> str:
    return f"{100 * value:.2f} %" if metric == LOSS and value is not None else show(metric, value)


def _difference(row: Agreement) -> str:
    if row.difference is None:
        return MISSING
    unit, numbers = "pp" if row.metric == LOSS else "%", (row.difference, *(row.ci95 or ()))
    decimals = 0 if max(map(abs, numbers)) >= 1 else 1
    value, *ends = (f"{100 * x:+z.{decimals}f}".replace("-", "\N{MINUS SIGN}") for x in numbers)
    return f"{value} {unit} [{', '.join(ends)}]" if ends else f"{value} {unit}"


def folded(name: str) -> str:
    """Return the name of a change in lines of at most 17 characters, divided where its words end."""
    if len(name) <= _NAME_WIDTH:
        return name
    parts = re.findall(r"\+?[^+]+", name)
    return "\n  ".join(line for part in parts for line in textwrap.wrap(part, _NAME_WIDTH))


def against(gain: Gain | None) -> str:
    """Return the ratio to `now` with its interval, as a change, or from twice the value on as a factor."""
    if gain is None or gain.ratio is None:
        return MISSING
    shown = change if gain.ratio < _FACTOR else _times
    if gain.ci95 is None:
        return shown(gain.ratio)
    low, high = (shown(bound).removesuffix(" %") for bound in gain.ci95)
    return f"{shown(gain.ratio)} [{low}, {high}]"


def _times(ratio: float) -> str:
    return f"\N{MULTIPLICATION SIGN}{significant(ratio)}"


def sentences(goal: GoalAdvice, others: Sequence[GoalAdvice] = (), rows: int = _ROWS) -> Iterator[str]:
    """Yield what the numbers of a goal show.

    `others` are the goals whose best change shall suit this goal, too; `rows` is how many candidates a table shows.
    """
    now = goal.named("now")
    if now.cause:
        yield f"Now, the first cause is {now.cause}."
    if goal.best is None:
        if goal.undecided:
            few = ", ".join(goal.undecided[:3])
            yield f"Nothing is shown to help by more than 3 %; the seeds do not decide on {few}."
        else:
            yield "Nothing that you can change helps by more than 3 %."
    else:
        best = goal.named(goal.best)
        yield f"Best: {best.name}, {best.words} ({against(best.against_now)})."
        if best.cause:
            yield f"With it, the first cause is {best.cause}."
        if goal.ties:
            yield f"Not shown to be worse by more than 3 %: {', '.join(goal.ties)}."
    yield from _shifted(goal)
    yield from (
        f"The best for {other.goal}, {row.name}: {against(row.against_now)}."
        for other in others
        for row in goal.tried
        if row.name == other.best != goal.best and row.trials
    )
    if (hidden := len(goal.tried) - rows) > 0:
        yield f"advice.json has {hidden} further change{'s' * (hidden != 1)}."
    if goal.cut_short:
        yield "The time was over before the last round; --minutes gives it more."
    worse = [row.name for row in goal.tried if row.verdict == "worse"]
    if worse:
        yield f"Worse than now: {', '.join(worse)}."


def _shifted(goal: GoalAdvice) -> Iterator[str]:
    for helps, words in ((True, "It still helps with"), (False, "It is not shown to help with")):
        lines = [
            f"{shift.words} ({against(shift.against_now)})"
            for shift in goal.shifted
            if shift.against_now is not None and (shift.against_now.verdict == "better") is helps
        ]
        if lines:
            yield f"{words}: {'; '.join(lines)}."


def commands(advice: Advice, name: str, host: str | None = None) -> Iterator[str]:
    """Yield the commands of a candidate for `host` (None: both hosts), and then those that take it back."""
    chosen = [item for item in advice.candidate(name).commands if host in (None, item.host)]
    for on_host in dict.fromkeys(item.host for item in chosen):
        yield f"# {name}: on {on_host}, as root"
        yield from dict.fromkeys(f"# {item.note}" for item in chosen if item.host == on_host and item.note)
        yield from (item.command for item in chosen if item.host == on_host)
        yield "# to undo it:"
        yield from (item.undo for item in reversed(chosen) if item.host == on_host)
