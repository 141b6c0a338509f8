"""Every shipped scenario with flows runs: the last of its cases, cut short, moves data on every flow.

Those that have only programs run in test_programs_network.py and test_vpn.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conftest import run_plan
from plait.plan.resolve import resolve
from plait.scenario import load
from plait.scenario.read.library import find, names
from plait.scenario.vary.cases import expand
from plait.seeds import trial_seed
from plait.traffic.bulk import Bulk
from plait.traffic.on_off import OnOff
from plait.traffic.request import Request
from plait.traffic.stream import Stream
from plait.traffic.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plait.engine.virtual.trial import VirtualEngine
    from plait.plan.model.plan import Flow

SHORT_US = (200_000, 3_000_000)
"""Long enough for a first SYN that is lost, and for the longest round trips; less where there is much to carry."""
SLOW_BPS, SLOW_US = 100_000_000, 2_500_000
"""Where no flow can be faster than this, there is time for a lost SYN however many flows there are."""
WORK_BITS = 500_000_000
FEW_BYTES = 300_000


def shortened(flow: Flow, flows: Sequence[Flow]) -> Flow:
    """Return the flow, over soon."""
    together = sum(other.ideal_rate_bps or 0 for other in flows) or 1
    least = SLOW_US if all((other.ideal_rate_bps or 0) <= SLOW_BPS for other in flows) else SHORT_US[0]
    short = min(max(least, WORK_BITS * 1_000_000 // together), SHORT_US[1])
    application = flow.application
    if isinstance(application, Stream):
        few = max(1, short * 1000 // application.interval_ns)
        application = application.model_copy(update={"count": min(application.count, few)})
    elif isinstance(application, (Bulk, OnOff)) and application.duration_us is not None:
        application = application.model_copy(update={"duration_us": min(application.duration_us, short)})
    elif isinstance(application, Request) and application.count is not None:
        application = application.model_copy(update={"count": min(application.count, 3)})
    elif isinstance(application, Transfer):
        application = application.model_copy(update={"bytes": min(application.bytes, FEW_BYTES)})
    return flow.model_copy(update={"application": application})


WITH_FLOWS = [
    name for name in names() if (path := find(name)) and "\ntraffic:\n" in path.read_text(encoding="utf-8")
]
"""To read the text is enough; to load all scenarios takes a second in each process of the tests."""


@pytest.mark.parametrize("name", WITH_FLOWS)
def test_a_shipped_scenario_runs(name: str, engine: VirtualEngine, tmp_path: Path) -> None:
    scenario = load(name)
    plan = resolve(expand(scenario)[-1].scenario, trial_seed(scenario.seed, 0))
    flows = tuple(shortened(flow, plan.flows) for flow in plan.flows)
    end = max(flow.start_us for flow in flows) + 40_000_000
    ran = run_plan(
        engine, plan.model_copy(update={"flows": flows, "end_us": end}), tmp_path, scenario.input_files()
    )
    rows = list(ran.tables["flows"].iter_rows(named=True))
    assert len(rows) == len(flows)
    for row in rows:
        assert row["completed"], str(row)
        # A page's connection that came late may find nothing left to fetch.
        assert row["received_bytes"] > 0 or row["kind"] == "page_connection", str(row)
