"""The job of a flow, from an entry of the traffic, and an estimate of its duration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from plait.errors import FieldMistakesError
from plait.plan.model.plan import Flow
from plait.plan.traffic.flow_slots import Slot
from plait.scenario.scenario import Scenario
from plait.seeds import derived
from plait.traffic.kinds import Application
from plait.traffic.spec import SlotFacts


def application(scenario: Scenario, slot: Slot, first: int, start_us: int, seed: int) -> Application:
    """Return the job of the flow of `slot` with this start; `first` is the flow that is part 0 of the same.

    Raises FieldMistakesError for a file that was not read, or is of no use.
    """
    entry = scenario.traffic[slot.entry]
    facts = SlotFacts(
        part=slot.part,
        first=first,
        start_us=start_us,
        seed=derived(seed, entry.kind, slot.entry, slot.copy, slot.turn),
        files=scenario.files,
        receive_buffer_max=int(scenario.tcp.receive_buffer_max),
    )
    try:
        return cast("Application", entry.flow.job(facts))
    except FieldMistakesError as wrong:
        raise wrong.within("traffic", slot.entry, entry.key) from None


def length_us(flow: Flow, flows: Sequence[Flow]) -> int:
    """Return the longest duration of the flow in us: the expected one, and ample time for delays."""
    page = flow.application.page_flow
    return flow.application.longest_us(flow) if page is None else length_us(flows[page], flows)
