"""Raise mistakes of fields as one error, each located in the text of the scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.errors import ScenarioError
from plait.scenario.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.scenario.model import ScenarioModel


def error_at(scenario: ScenarioModel, mistakes: Sequence[tuple[Sequence[str | int], str]]) -> ScenarioError:
    """Return the error for mistakes of a scenario, located if it comes from a text."""
    source = scenario.source or Source("")
    return ScenarioError([source.mistake(scenario.place(where), message) for where, message in mistakes])
