"""The scenario file: its fields, checks, cases and generators, and the scenarios that ship with plait.

load(reference)     read a file, or the shipped scenario of a name
parse(text, name)   read a text, without access to files
"""

from __future__ import annotations

from plait.scenario.read.load import load
from plait.scenario.read.parse import parse
from plait.scenario.scenario import Scenario

__all__ = ["Scenario", "load", "parse"]
