"""Keeps in the cache what every report of the same trials computes alike: their summary, and explanations.

An entry's name is the hash of all that it follows from, the code included. What an analysis could not compute is not
kept: the caution about it belongs to the report.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import astuple
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from plait.analysis.gaps import noted
from plait.analysis.judge import judged_in
from plait.analysis.model import Summary
from plait.cache import ContentCache
from plait.explain.model import FlowExplanation
from plait.files import Folder
from plait.results.read import StudyData
from plait.results.reduce import CODE, code_of, code_of_rows, name_of

T = TypeVar("T")
SUMMARIES = ContentCache("summaries", most=100)
EXPLANATIONS = ContentCache("explanations", most=2_000)
MOST_BYTES = 4 << 20
"""A larger summary is not kept: the cache would take gigabytes."""
_SUMMARY = TypeAdapter(Summary)
_FLOWS = TypeAdapter(tuple[FlowExplanation, ...])
EXPLAINING = (*CODE, "explain", "scenario")
"""Packages on whose code an explanation depends; the scenario's plan the paths that a case leaves out."""

_SHOWN = frozenset({"title", "description", "figures", "judge", "across"})
"""Fields of a scenario that say what is shown, and nothing about a trial."""


def kept_summary(study: StudyData, compute: Callable[[], Summary]) -> Summary:
    """Return the summary of a study, from the cache, or else from `compute`."""
    study_file = study.about
    of_study = (study_file.name, study_file.heading, study_file.baseline, study.digest)
    of_scenario = (study.published, judged_in(study_file.scenario), study.design, study.labels)
    content = hashlib.sha256(repr((code_of_rows(), of_study, of_scenario)).encode())
    for case in study.cases:
        content.update(json.dumps(astuple(case), default=str).encode())
    return _kept_or_made(SUMMARIES, content.hexdigest(), _SUMMARY, compute)


def kept_explanation(
    study: StudyData, case: str, folder: Folder, compute: Callable[[], tuple[FlowExplanation, ...]]
) -> tuple[FlowExplanation, ...]:
    """Return the explanation of a trial, from the cache, or else from `compute`."""
    name = name_of(folder)
    if name is None:  # a file cannot be read
        return compute()
    scenario = study.about.scenario
    if isinstance(scenario, dict):
        scenario = {field: value for field, value in scenario.items() if field not in _SHOWN}
    content = json.dumps([code_of(EXPLAINING), name, case, scenario], default=str)
    return _kept_or_made(EXPLANATIONS, hashlib.sha256(content.encode()).hexdigest(), _FLOWS, compute)


def _kept_or_made(cache: ContentCache, key: str, form: TypeAdapter[T], compute: Callable[[], T]) -> T:
    """Return what the cache has under `key`, or make it and keep it if it is whole and JSON can hold it."""
    kept = cache.get(key)
    if kept is not None:
        try:
            return form.validate_json(kept)
        except ValidationError:
            pass  # written by other code: made again
    gaps = len(noted())
    computed = compute()
    text = form.dump_json(computed)
    if len(noted()) == gaps and len(text) <= MOST_BYTES and _holds(form, text, computed):
        cache.put(key, text)
        cache.prune()
    return computed


def _holds(form: TypeAdapter[T], text: bytes, computed: T) -> bool:
    """Return whether the text has everything: JSON has no infinite number."""
    try:
        return form.validate_json(text) == computed
    except ValidationError:
        return False
