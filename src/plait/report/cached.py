"""Keeps in the cache what every report of the same trials computes alike: their summary, and explanations.

An entry's name is the hash of all that it follows from, the code included. What an analysis could not compute is not
kept: the caution about it belongs to the report.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import astuple
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from plait.analysis.gaps import noted
from plait.analysis.judge import judged_in
from plait.analysis.model import Summary
from plait.cache import ContentCache
from plait.explain.model import FlowExplanation
from plait.results.reduce import CODE, TrialPlace, code_of, code_of_rows, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.results.read import StudyData

T = TypeVar("T")
SUMMARIES = ContentCache("summaries", most=100)
EXPLANATIONS = ContentCache("explanations", most=2_000)
MOST_BYTES = 4 << 20
"""A larger summary is not kept: the cache would take gigabytes."""
_SUMMARY = TypeAdapter(Summary)
_FLOWS = TypeAdapter(tuple[FlowExplanation, ...])
_EXPLAINING = (*CODE, "explain", "scenario")
"""Packages on whose code an explanation depends; the scenario's plan the paths that a case leaves out."""

_SHOWN = frozenset({"title", "description", "figures", "judge", "across"})
"""Fields of a scenario that say what is shown, and nothing about a trial."""


def kept_summary(study: StudyData, make: Callable[[], Summary]) -> Summary:
    """Return the summary of a study, which `make` computes where the cache does not have it."""
    about = study.about
    of_study = (about.name, about.heading, about.baseline, study.digest)
    of_scenario = (study.published, judged_in(about.scenario), study.design, study.labels)
    content = hashlib.sha256(repr((code_of_rows(), of_study, of_scenario)).encode())
    for case in study.cases:
        content.update(json.dumps(astuple(case), default=str).encode())
    return _through(SUMMARIES, content.hexdigest(), _SUMMARY, make)


def kept_explanation(
    study: StudyData, place: TrialPlace, make: Callable[[], tuple[FlowExplanation, ...]]
) -> tuple[FlowExplanation, ...]:
    """Return the explanation of a trial, which `make` computes where the cache does not have it."""
    name = name_of(place)
    if name is None:  # a file cannot be read
        return make()
    scenario = study.about.scenario
    if isinstance(scenario, dict):
        scenario = {field: value for field, value in scenario.items() if field not in _SHOWN}
    content = json.dumps([code_of(_EXPLAINING), name, place.case, scenario], default=str)
    return _through(EXPLANATIONS, hashlib.sha256(content.encode()).hexdigest(), _FLOWS, make)


def _through(cache: ContentCache, key: str, form: TypeAdapter[T], make: Callable[[], T]) -> T:
    """Return what the cache has under `key`, or make it and keep it if it is whole and JSON can hold it."""
    kept = cache.get(key)
    if kept is not None:
        try:
            return form.validate_json(kept)
        except ValidationError:
            pass  # written by other code: made again
    gaps = len(noted())
    made = make()
    text = form.dump_json(made)
    if len(noted()) == gaps and len(text) <= MOST_BYTES and _holds(form, text, made):
        cache.put(key, text)
        cache.prune()
    return made


def _holds(form: TypeAdapter[T], text: bytes, made: T) -> bool:
    """Return whether the text has everything: JSON has no infinite number."""
    try:
        return form.validate_json(text) == made
    except ValidationError:
        return False
