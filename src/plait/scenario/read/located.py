"""Mistakes of a whole scenario as one error, each located where its field stands in the text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.errors import ScenarioError
from plait.scenario.read.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plait.scenario.model import ScenarioModel


def error_at(scenario: ScenarioModel, mistakes: Sequence[tuple[Sequence[str | int], str]]) -> ScenarioError:
    """The error of a whole scenario's mistakes, located where the scenario was read from a text."""
    source = scenario.source or Source("")
    return ScenarioError([source.mistake(scenario.place(where), message) for where, message in mistakes])
