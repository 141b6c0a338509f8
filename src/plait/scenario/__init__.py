"""What is asked: the scenario file, its model, and the scenarios that ship with plait.

load(reference)     a file, or the name of a shipped scenario -> Scenario
parse(text, name)   the same from text, without files
"""

from __future__ import annotations

from plait.scenario.read.load import load
from plait.scenario.read.parse import parse
from plait.scenario.scenario import Scenario

__all__ = ["Scenario", "load", "parse"]
