"""Tests of what strangers' files, signals and limits can do; `hostile` beside this has what they share."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
