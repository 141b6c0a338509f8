"""A host's endpoints, limits and sysctls after a session equal those before it: 20 of the histories of `make bench`."""

from __future__ import annotations

import json
from pathlib import Path

from namespaces import in_namespaces

HISTORIES = 20
PROGRAM = Path(__file__).with_name("settings_histories.py")


def test_settings_are_left_as_found_wherever_a_process_dies() -> None:
    counts = json.loads(in_namespaces(str(PROGRAM), str(HISTORIES)).splitlines()[-1])
    assert counts["histories"] >= HISTORIES
    assert counts["configured"] > 0
