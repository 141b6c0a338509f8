"""Runs the settings as they are, and the advised change, on the real lines, and judges the twin by them.

The hosts get the change as `plait advise --apply` makes it, with its journal, and lose it again at the end.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from plait.advice.changes.model import NOW, Candidate
from plait.advice.goals import Goal
from plait.advice.result import LOSS, RTT, Advice, Agreement, gain
from plait.advice.search import AdviceRequest, round_text
from plait.advice.situation import AccessLine, Situation
from plait.analysis.statistics.differences import unpaired
from plait.analysis.translation import path_rtts_us
from plait.dataset.trial import read_trial, trial_folder
from plait.engine.engine import Engine
from plait.engine.remote.lasting import RemoteHost, apply, undo
from plait.errors import Ended, MachineError, RequestError, shell_command
from plait.results.read import read_study
from plait.scenario import parse
from plait.study.perform import Options, perform
from plait.study.progress import silent

BOUNDS = {RTT: 0.2, LOSS: 0.01}
"""The largest difference that counts as agreement: a share of the line's value, of LOSS a difference of shares."""
_BOUND = 0.1
"""That of the metrics of goals."""


@dataclass(frozen=True)
class RealLines:
    """The hosts of a hosts file that stand for the two of an advice."""

    situation: Situation
    request: AdviceRequest
    """That of the advice."""
    hosts: Mapping[str, RemoteHost]
    """By their names in the scenario."""
    engine: Callable[[str], Engine]
    """Returns the engine `remote` for these hosts: one for all trials, which counts what they send."""
    change: str | None = None
    """The change to verify; None: the best one of each goal."""
    repeat: int = 5

    def refuse_changed(self) -> None:
        """Raise MachineError if plait cannot be root on a host, or has changed it already."""
        for name in (self.situation.client, self.situation.server):
            present = undo(self.hosts[name], preview=True)
            if present.changed or present.left:
                taken_back = shell_command("plait", "undo", name)
                raise MachineError(
                    f"verifying on the real lines: {name} has settings that plait changed, and `now` would include "
                    f"them; take them back first, with the same --hosts: `{taken_back}`"
                )

    def run(
        self, goal: Goal, changes: Sequence[Candidate], repeat: int, make_engine: Callable[[str], Engine]
    ) -> None:
        """Run a goal with the settings of some changes: on the real lines if the engine is that of the lines."""
        raw = json.loads(round_text(self.situation, goal, changes))
        is_real = make_engine is self.engine
        if is_real:
            raw["engine"] = "remote"
            for link in raw["network"]["links"].values():
                (link or {}).pop("middlebox", None)  # the line is its own middlebox
        name = f"lines-{changes[-1].name}" if is_real else "twin"
        options = Options(seed=self.request.seed, repeat=repeat, jobs=self.request.jobs, confirmed=True)
        _, outcome = perform(
            parse(json.dumps(raw), "the advice", ()), "advice", make_engine, options,
            folder=self.request.folder / f"{goal.name}-{name}", watch=silent, notify=lambda _: None,
        )  # fmt: skip
        if outcome.interrupted:
            raise KeyboardInterrupt if outcome.signal == signal.SIGINT else Ended(outcome.signal)


def verify(
    advice: Advice,
    real: RealLines,
    make_engine: Callable[[str], Engine],
    notify: Callable[[str], None] = lambda _: None,
) -> tuple[Agreement, ...]:
    """Return how the twin and the real lines compare for each goal: with the settings now, and with its best change.

    Raises RequestError (plait does not make the change itself), MachineError, and KeyboardInterrupt or Ended; the hosts
    then have their settings again.
    """
    rows: list[Agreement] = []
    for goal in real.request.goals:
        advised = next(row for row in advice.goals if row.goal == goal.name)
        name = real.change or advised.best
        changes = [NOW] if name is None else [NOW, advice.candidate(name)]
        real.run(goal, changes, min(advised.named(change.name).trials for change in changes), make_engine)
        run_on_lines(real, goal, changes, notify)
        rows += agreements(goal, real.request.folder, changes, real.situation.lines)
    return tuple(rows)


def run_on_lines(
    real: RealLines, goal: Goal, changes: Sequence[Candidate], notify: Callable[[str], None]
) -> None:
    """Run a goal on the real lines with each change, which the hosts lose again (raises as `verify` does)."""
    for change in changes:
        notify(f"{goal.name}: {real.repeat} trials on the real lines with {change.name}")
        with _changed(change, real, notify):
            real.run(goal, [change], real.repeat, real.engine)


@contextmanager
def _changed(change: Candidate, real: RealLines, notify: Callable[[str], None]) -> Iterator[None]:
    """Make a change on its hosts, and take it back at the end, whatever ends it."""
    by_host = {
        item.host: [other for other in change.commands if other.host == item.host] for item in change.commands
    }
    for name, items in by_host.items():
        if missing := next((item for item in items if item.lasting is None), None):
            remedy = "name the interfaces with --interfaces" if missing.note else "verify another change"
            raise RequestError(
                f"--verify: {change.name} needs a command on {name} that plait does not run by itself; {remedy}"
            )
    tried: list[str] = []
    try:
        for name, items in by_host.items():
            tried.append(name)
            apply(real.hosts[name], [item.lasting for item in items if item.lasting is not None])
        yield
    finally:
        for name in reversed(tried):
            try:
                remaining = undo(real.hosts[name]).left
            except MachineError as error:
                remaining = (str(error),)
            for line in remaining:
                notify(
                    f"{name}: {line}; `{shell_command('plait', 'undo', name)}` takes back what plait changed"
                )


def agreements(
    goal: Goal, folder: Path, changes: Sequence[Candidate], lines: Sequence[AccessLine]
) -> Iterator[Agreement]:
    """Yield a row for the metric of the goal, the RTT of each line, and the loss, with each change."""
    now = list[float]()
    for change in changes:
        twin, real = (
            _values(folder / f"{goal.name}-{side}", change.name, goal.metric, lines)
            for side in ("twin", f"lines-{change.name}")
        )
        now = real[goal.metric, None] if change is NOW else now
        for metric, line in dict.fromkeys([*twin, *real]):
            values = [side.get((metric, line), []) for side in (twin, real)]
            row = replace(compare(goal.name, change.name, metric, *values), line=line)
            if metric == goal.metric and change is not NOW and now and values[1]:
                row = replace(row, lines_against_now=gain(metric, unpaired(now, values[1])))
            yield row


def compare(goal: str, change: str, metric: str, twin: Sequence[float], lines: Sequence[float]) -> Agreement:
    """Return whether trials of the twin agree with those of the lines, by an equivalence test at 95 %."""
    bound = BOUNDS.get(metric, _BOUND)
    means = [sum(side) / len(side) if side else None for side in (twin, lines)]
    row = Agreement(goal, change, metric, means[0], means[1], None, None, bound, "not measured")
    if not twin or not lines:
        return row
    tested = unpaired(lines, twin)
    estimate, middle = (tested.difference, 0.0) if metric == LOSS else (tested.ratio, 1.0)
    if estimate is None:
        return row
    spread_known = estimate.ci95 is not None or tested.p_value is None
    low, high = estimate.ci95 or (estimate.value, estimate.value)
    is_within = spread_known and middle - bound <= low and high <= middle + bound
    is_beyond = spread_known and (high < middle - bound or low > middle + bound)
    return replace(
        row,
        difference=estimate.value - middle,
        ci95=None if estimate.ci95 is None else (low - middle, high - middle),
        verdict="agree" if is_within else "differ" if is_beyond else "undecided",
    )


def _values(
    folder: Path, change: str, metric: str, lines: Sequence[AccessLine]
) -> dict[tuple[str, str | None], list[float]]:
    """Return the values of the trials of a change: `metric`, RTT by the line that carries data, and LOSS."""
    case = next(case for case in read_study(folder).cases if case.settings.get("change") == change)
    words = {line.link: line.word for line in lines}
    trials = [read_trial(trial_folder(folder, case.name, row.index)) for row in case.rows]
    medians = [path_rtts_us(trial.plan, trial.tables) for trial in trials]
    shares = (_retransmitted(trial.tables["subflows"]) for trial in trials)
    return {
        (metric, None): [value for _, value in case.measured(metric)],
        **{
            (RTT, words.get(path, path)): [median[path] for median in medians if path in median]
            for path in sorted({path for median in medians for path in median})
        },
        (LOSS, None): [share for share in shares if share is not None],
    }


def _retransmitted(subflows: pl.DataFrame) -> float | None:
    """Return the share of retransmissions among the payload that all sides sent; None if they sent nothing."""
    last = subflows.group_by("flow", "side", "subflow").last()
    resent, sent = (int(last[f"{name}_bytes"].sum()) for name in ("retransmitted", "sent"))
    return resent / sent if sent else None
