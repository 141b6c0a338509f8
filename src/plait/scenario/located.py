"""Locate mistakes of fields, which pure stages raise, in the text of their scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from plait.errors import FieldMistakesError, ScenarioError
from plait.scenario.model import ScenarioModel
from plait.scenario.source import Source

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def located(scenario: ScenarioModel) -> Iterator[None]:
    """Raise mistakes of fields in the body as a ScenarioError, with their places if `scenario` comes from a text."""
    try:
        yield
    except FieldMistakesError as wrong:
        source = scenario.source or Source("")
        places = [source.mistake(scenario.place(where), problem) for where, problem in wrong.mistakes]
        raise ScenarioError(places) from wrong


def locating(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function with its mistakes of fields located in the text of the scenario, its first argument."""

    @wraps(function)
    def raising_located(*args: P.args, **kwargs: P.kwargs) -> T:
        with located(cast("ScenarioModel", args[0])):
            return function(*args, **kwargs)

    return raising_located
