"""What is asked: the scenario file, its model, and the scenarios that ship with plait.

load(reference)     a file, or the name of a shipped scenario -> Scenario
parse(text, name)   the same from text, without files
"""

from __future__ import annotations

from plait.scenario.load import load
from plait.scenario.model import Scenario
from plait.scenario.parse import parse

__all__ = ["Scenario", "load", "parse"]
