"""Each field of each shipped scenario changes the plan, or lint knows why it does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from field_variants import additions, lint_knows, planned, raw_case, variants

from plait.scenario import load
from plait.scenario.read import library

SHIPPED = library.folder() or Path()
NAMES = sorted(path.stem for path in SHIPPED.glob("*.yaml"))


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_a_shipped_scenario_changes_the_plan_or_lint_knows_why(name: str) -> None:
    raw = raw_case(load(name))
    base = planned(raw, SHIPPED)
    tried = list(variants(raw, SHIPPED))
    unknown = [
        variant.name for variant in tried if not variant.differs_from(base) and not lint_knows(variant, base)
    ]
    assert tried
    assert unknown == []


def test_lint_knows_of_settings_that_a_scenario_over_tcp_does_not_read() -> None:
    raw = raw_case(load("two-paths", ("vary.transport=[tcp]",)))
    base = planned(raw, SHIPPED)
    known = {variant.name for variant in additions(raw, SHIPPED) if lint_knows(variant, base)}
    assert known >= {"mptcp.scheduler", "mptcp.limits.h1", "sysctls", "traffic.0.bulk.dscp", "events"}
    assert "tcp.congestion_control" not in known
