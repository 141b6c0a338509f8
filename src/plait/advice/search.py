"""Runs the candidates with the same seeds: few for all, more for the better half, and on worse lines for the best."""

from __future__ import annotations

import copy
import json
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from plait.advice.candidates import candidates
from plait.advice.changes.model import NOW, Candidate, together
from plait.advice.goals import Goal
from plait.advice.result import Advice, Gain, GoalAdvice, Shifted, compared, judged
from plait.advice.situation import Situation, common_of, rate_of, shaped, sides_of, slower
from plait.engine.engine import Engine
from plait.errors import Ended, RequestError
from plait.files import Folder, UnfitError
from plait.metrics import CATALOGUE
from plait.results.explain import explain_study
from plait.results.read import read_study
from plait.scenario import Scenario, parse
from plait.study.perform import Options, perform
from plait.study.progress import silent
from plait.study.result_folder import refuse_unusable
from plait.units import Duration, Ratio

ROUNDS = (4, 8, 16)
"""Seeds of a candidate up to the end of each round."""
KEPT = (0.5, 0.5)
"""The share of candidates that the next round has, beside `now`."""
_LEAST = 3
_COMBINED = 3
"""Of this many of the best changes, plait also tries pairs."""
_SHIFTED_SEEDS = 4
_MORE_LOSS = "0.5%"
_LINES = "lines.json"
"""The scenario that an advice is on, as far as it decides the advice."""


@dataclass(frozen=True)
class AdviceRequest:
    """What to advise on, and how long to search."""

    goals: tuple[Goal, ...]
    minutes: float
    folder: Path
    """A new or former result folder; each round is a study in it."""
    seed: int | None = None
    jobs: int | None = None
    interfaces: tuple[str, ...] = ()
    """The client's interfaces for commands, in the order of its lines; empty: those that the labels name."""


def search(
    scenario: Scenario,
    request: AdviceRequest,
    make_engine: Callable[[str], Engine],
    notify: Callable[[str], None] = lambda _: None,
) -> Advice:
    """Return what helps on the lines of a scenario.

    Raises RequestError (the scenario has no lines to advise on, a candidate cannot be planned, or the folder has the
    advice on another scenario), MachineError, and KeyboardInterrupt or Ended by signals.
    """
    situation = Situation.of(scenario, request.interfaces)
    claim(request.folder, situation)
    if situation.others:
        notify(
            f"the advice is for {situation.client} and {situation.server}; links and traffic of "
            f"{', '.join(situation.others)} are left out"
        )
    searcher = _Search(situation, request, make_engine, notify)
    seed = request.seed if request.seed is not None else scenario.seed
    advices = [searcher.goal(goal) for goal in request.goals]
    known = {candidate.name: candidate for candidate in searcher.known}
    return Advice(
        scenario.title, situation.client, situation.server, seed, tuple(advices), tuple(known.values())
    )


def refuse_taken(folder: Path, situation: Situation) -> None:
    """Raise RequestError if a folder has the advice on another scenario, or a study; change nothing."""
    try:
        if not (folder.is_dir() and Folder(folder).has(_LINES)):
            refuse_unusable(folder, "advice")
            if folder.is_dir() and Folder(folder).has("study.json"):
                raise RequestError(
                    f"writing the advice to {folder}: it is a result folder of a study; give another --out"
                )
        elif Folder(folder).read(_LINES) != _text(situation):
            raise RequestError(
                f"writing the advice to {folder}: it has the advice on other lines or settings ({folder / _LINES}), "
                "and the rounds of two scenarios would mix; give another --out, or remove the folder"
            )
    except UnfitError as error:
        raise RequestError(f"writing the advice to {folder}: {error.strerror}; give another --out") from error


def claim(folder: Path, situation: Situation) -> None:
    """Note in a folder on which scenario its rounds are. Raises RequestError if it has those on another one."""
    refuse_taken(folder, situation)
    folder.mkdir(parents=True, exist_ok=True)
    Folder(folder).write(_LINES, _text(situation))


def _text(situation: Situation) -> bytes:
    return (json.dumps(situation.raw, indent=1, sort_keys=True) + "\n").encode()


class _Search:
    def __init__(
        self,
        situation: Situation,
        request: AdviceRequest,
        make_engine: Callable[[str], Engine],
        notify: Callable[[str], None],
    ) -> None:
        self._situation, self._request = situation, request
        self._make_engine, self._notify = make_engine, notify
        self.known = candidates(situation)
        self._share_s = request.minutes * 60 / len(request.goals)

    def goal(self, goal: Goal) -> GoalAdvice:
        """Search the candidates of one goal within its share of the time."""
        deadline = time.monotonic() + self._share_s
        field, values = list(self.known), dict[str, dict[int, float]]()
        cut_short, study = False, Path()
        for number, seeds in enumerate(ROUNDS):
            self._notify(f"{goal.name}: round {number + 1}, {len(field)} candidates with {seeds} seeds each")
            began = time.monotonic()
            study = self._request.folder / f"{goal.name}-{number + 1}"
            values |= self._run(study, round_text(self._situation, goal, field), goal.metric, seeds)
            if number + 1 == len(ROUNDS):
                break
            spent_s, before = time.monotonic() - began, len(field) * seeds
            field = self._next(goal, field, values, number)
            ahead = len(field) * ROUNDS[number + 1]
            # the search leaves a part of the time for the worse lines
            if time.monotonic() + spent_s * ahead / before > deadline - 0.2 * self._share_s:
                cut_short = True
                break
        least = self._situation.least_delay_s(goal.crossings) * (1e6 if goal.metric.endswith("_us") else 1)
        judge = partial(judged, goal.name, goal.metric, values, self.known, cut_short=cut_short, least=least)
        shown = ("now", judge({}).best or "now")
        causes = {name: self._cause(study, name, goal) for name in shown}
        advice = judge(causes)
        return replace(advice, shifted=tuple(self._shifted(goal, advice, deadline)))

    def _next(
        self, goal: Goal, field: Sequence[Candidate], values: Mapping[str, Mapping[int, float]], number: int
    ) -> list[Candidate]:
        """Return the better half, and after the first round also pairs of the best changes."""
        sign = -1 if CATALOGUE[goal.metric].better == "more" else 1

        def mean(candidate: Candidate) -> float:
            measured = values.get(candidate.name) or {}
            return sign * sum(measured.values()) / len(measured) if measured else float("inf")

        ranked = sorted((candidate for candidate in field if candidate is not NOW), key=mean)
        kept = ranked[: max(_LEAST, round(len(ranked) * KEPT[number]))]
        if number == 0:
            helpful = [candidate for candidate in kept if mean(candidate) < mean(NOW)][:_COMBINED]
            pairs = [
                pair
                for i, first in enumerate(helpful)
                for second in helpful[i + 1 :]
                if (pair := together(first, second)) is not None
            ]
            self.known += [pair for pair in pairs if pair.name not in {known.name for known in self.known}]
            kept += pairs
        return [NOW, *kept]

    def _run(self, folder: Path, text: str, metric: str, seeds: int) -> dict[str, dict[int, float]]:
        """Run a round; return the metric by candidate and seed."""
        options = Options(seed=self._request.seed, repeat=seeds, jobs=self._request.jobs, confirmed=True)
        scenario = parse(text, "the advice", ())
        _, outcome = perform(
            scenario, "advice", self._make_engine, options, folder=folder, watch=silent, notify=lambda _: None
        )
        if outcome.interrupted:
            raise KeyboardInterrupt if outcome.signal == signal.SIGINT else Ended(outcome.signal)
        study = read_study(folder)
        values = {str(case.settings["change"]): case.by_seed(metric) for case in study.cases}
        if not values.get("now"):
            failed = next((trial.error for case in study.cases for trial in case.failed), "")
            raise RequestError(
                f"advising: no trial of the settings as they are measured {metric}; see {folder} {failed}".rstrip()
            )
        return values

    def _cause(self, study: Path, name: str, goal: Goal) -> str | None:
        """Return the first cause of a candidate in its last round. A page has several flows, named after it."""
        case = next((row.name for row in read_study(study).cases if row.settings["change"] == name), None)
        if case is None:
            return None
        explanation = explain_study(study, case=case)
        flows = [flow for part in explanation.cases for flow in part.flows]
        flows.sort(key=lambda flow: not flow.flow.startswith(goal.flow))
        return next((str(flow.first) for flow in flows if flow.first is not None), None)

    def _shifted(self, goal: Goal, advice: GoalAdvice, deadline: float) -> list[Shifted]:
        """Return the best candidate against `now` on lines that are worse than measured."""
        if advice.best is None:
            return []
        best = next(candidate for candidate in self.known if candidate.name == advice.best)
        rows = []
        for number, (words, shift) in enumerate(worse_lines(self._situation)):
            if number and time.monotonic() > deadline:
                break
            shifted = shaper_on(best, shift)
            if not shifted.settings:
                rows.append(Shifted(words, Gain(1.0, None, "same")))
                continue
            study = self._request.folder / f"{goal.name}-worse-{number + 1}"
            values = self._run(
                study, round_text(self._situation, goal, [NOW, shifted], shift), goal.metric, _SHIFTED_SEEDS
            )
            rows.append(Shifted(words, compared(goal.metric, values["now"], values.get(best.name, {}))))
        return rows


def round_text(
    situation: Situation, goal: Goal, field: Sequence[Candidate], shift: Mapping[str, Any] | None = None
) -> str:
    """Return the scenario with the traffic of a goal that has a case for each candidate; `shift` replaces links."""
    raw: dict[str, Any] = copy.deepcopy(dict(situation.raw))
    raw["title"] = f"{goal.name}: {raw.get('title', 'lines')}"[:120]
    for link, conditions in (shift or {}).items():
        raw["network"]["links"][link] = conditions
    raw["traffic"] = goal.traffic(situation.client, situation.server)
    raw["vary"] = {"change": {candidate.name: candidate.fields(raw["traffic"]) for candidate in field}}
    if any(path.startswith("network.") for candidate in field for path in candidate.settings):
        # the changes are compared with each other, although they are of the network
        raw["across"] = ["change"]
    raw["judge"] = [goal.metric]
    return json.dumps(raw)


def shaper_on(candidate: Candidate, shift: Mapping[str, Any]) -> Candidate:
    """Return a candidate whose shapers are in front of the links of `shift`.

    A shaper keeps the rate that it was set to. In front of a line that has become slower, it does nothing.
    """
    settings = dict[str, Any]()
    for path, value in candidate.settings.items():
        link = path.removeprefix("network.links.")
        if not path.startswith("network.links.") or link not in shift:
            settings[path] = value
            continue
        shaped = {
            side: _shaped_on(conditions, value[side], shift[link][side])
            for side, conditions in sides_of(shift[link]).items()
        }
        if any(shaped[side] != shift[link][side] for side in shaped):
            settings[path] = {**common_of(shift[link]), **shaped}
    return replace(candidate, settings=settings)


def _shaped_on(
    conditions: Mapping[str, Any], candidate: Mapping[str, Any], unshaped: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a direction with the shaper of a candidate, if it has one that is slower than the line."""
    is_shaped = candidate.get("aqm") == "fq_codel" and unshaped.get("aqm") != "fq_codel"
    if not is_shaped or (rate_of(conditions) or 0.0) <= (rate_of(candidate) or 0.0):
        return unshaped
    return shaped(conditions, candidate["rate"])


def worse_lines(situation: Situation) -> list[tuple[str, dict[str, Any]]]:
    """Return lines that are worse: the first one slower, the others farther and more lossy."""
    links = situation.raw["network"]["links"]
    rows = []
    first, *others = situation.lines
    slow = {
        side: slower(conditions, 0.7)
        for side, conditions in sides_of(links[first.link]).items()
        if rate_of(conditions)
    }
    if slow:
        rows.append((f"{first.title} 30 % slower", {first.link: {**common_of(links[first.link]), **slow}}))
    for line in others:
        sides = sides_of(links[line.link])
        farther = {side: {**part, "delay": _twice(part.get("delay", "0ms"))} for side, part in sides.items()}
        lossy = {side: {**part, "loss": _thrice(part.get("loss"))} for side, part in sides.items()}
        rows.append((f"RTT of {line.title} doubled", {line.link: {**common_of(links[line.link]), **farther}}))
        loss = (
            "tripled"
            if all(part.get("loss") for part in sides.values())
            else f"tripled, or {_MORE_LOSS} where it had none"
        )
        rows.append((f"loss of {line.title} {loss}", {line.link: {**common_of(links[line.link]), **lossy}}))
    return rows


def _twice(delay: object) -> str:
    return f"{int(Duration.parse(str(delay))) * 2 // 1000}us"


def _thrice(loss: object) -> object:
    """Return three times an independent loss; bursts stay as long and come three times as often."""
    if isinstance(loss, dict):
        model = loss.get("gemodel")
        if isinstance(model, dict) and "p" in model:
            share = min(1.0, 3 * float(Ratio.parse(str(model["p"]))))
            return {**loss, "gemodel": {**model, "p": f"{share * 100:.6g}%"}}
        if "ratio" in loss:
            return {**loss, "ratio": f"{min(1.0, 3 * float(Ratio.parse(str(loss['ratio'])))) * 100:.6g}%"}
        return loss
    ratio = float(Ratio.parse(str(loss))) if loss else 0.0
    return f"{min(1.0, 3 * ratio) * 100:.6g}%" if ratio else _MORE_LOSS
