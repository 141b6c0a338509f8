"""The scenario file: its fields, checks, cases and generators, and the scenarios that ship with plait.

load(reference)     read a file, or the shipped scenario of a name
parse(text, name)   read a text, without access to files
build(fields)       make one of Python's values
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from plait.scenario.read.load import load, with_files
from plait.scenario.read.parse import build, parse
from plait.scenario.scenario import Scenario

__all__ = ["Scenario", "build", "load", "parse"]


class _Package(ModuleType):
    """This package, which is also the function `plait.scenario`."""

    def __call__(self, fields: Mapping[str, Any], *, folder: str | Path = ".") -> Scenario:
        """Return the scenario with the fields of a file as Python values, and with its input files.

        `folder` is where paths of input files begin. Raises plait.errors.ScenarioError with every mistake.
        """
        return with_files(build(fields), Path(folder))


sys.modules[__name__].__class__ = _Package
