"""Completions for the shell: shipped scenarios, cases, fields, kernels. A file with a mistake gives none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import typer

from plait.errors import PlaitError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Verbs import what they need when they run, so that `plait list` and `plait --help` answer at once.

_MOST = 500


def scenarios(incomplete: str) -> list[str]:
    """Return the shipped scenarios that start so; with none, the shell offers files."""
    from plait.scenario.read.library import names

    return [name for name in names() if name.startswith(incomplete)]


def templates(incomplete: str) -> list[str]:
    """Return what `plait new` copies and starts so."""
    from plait.scenario.read.library import names
    from plait.scenario.templates import templates as known

    return sorted(
        {name for name in [*(name for name, _ in known()), *names()] if name.startswith(incomplete)}
    )


def planned_cases(context: typer.Context, incomplete: str) -> list[str]:
    """Return the cases of the scenario on the command line."""
    from plait.scenario import load as load_scenario
    from plait.scenario.vary.cases import expand

    try:
        names = [case.name for case in expand(load_scenario(_subject(context, "scenario")))]
    except (PlaitError, OSError):
        return []
    return _starting(names, incomplete)


def cases_of_results(context: typer.Context, incomplete: str) -> list[str]:
    """Return the cases of the result folder on the command line."""
    from pathlib import Path

    from plait.dataset.study_file import read_study_file

    try:
        names = [case.name for case in read_study_file(Path(_subject(context, "folder"))).cases]
    except (PlaitError, OSError):
        return []
    return _starting(names, incomplete)


def kernels(incomplete: str) -> list[str]:
    """Return the built kernels."""
    from plait.kernel import list_built

    return _starting([kernel.name for kernel, _ in list_built()], incomplete)


def suites(incomplete: str) -> list[str]:
    """Return upstream's suites of MPTCP."""
    from plait.testing.selftest.suites import SUITES

    return _starting(list(SUITES), incomplete)


def fields(context: typer.Context, incomplete: str) -> list[str]:
    """Return the fields that the scenario on the command line has, and the top-level ones of all scenarios."""
    from plait.scenario import Scenario
    from plait.scenario import load as load_scenario

    found = [f"{name}=" for name in Scenario.model_fields]
    try:
        loaded = load_scenario(_subject(context, "scenario"))
        found += _paths(loaded.model_dump(mode="json", exclude_unset=True), "")
    except (PlaitError, OSError):
        pass
    return _starting(list(dict.fromkeys(found)), incomplete)


def _paths(value: Any, prefix: str) -> Iterator[str]:
    """Yield the path of each single value: `network.links.h1-s1.rate=`."""
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, entry in entries:
            yield from _paths(entry, f"{prefix}.{key}" if prefix else str(key))
    elif prefix:
        yield f"{prefix}="


def _subject(context: typer.Context, name: str) -> str:
    """Return the scenario or folder on the command line; after an option without its value typer has parsed none."""
    value = context.params.get(name)
    if value is not None:
        return str(value)
    words = (os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS", "")).split()
    return words[2] if len(words) > 2 else ""


def _starting(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)][:_MOST]
