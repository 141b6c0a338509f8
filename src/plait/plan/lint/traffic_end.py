"""When all traffic of a plan has ended, as far as the plan shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait.plan.model.plan import Flow, Plan


def end_us(plan: Plan) -> int:
    """Return the time after which no flow sends, and the trial's last time if only the trial shows it."""
    if plan.programs:
        return plan.end_us
    ends: dict[int, int | None] = {}
    for flow in plan.flows:
        ends[flow.id] = _end_us(flow, ends)
    known = [end for end in ends.values() if end is not None]
    return min(max(known), plan.end_us) if known and len(known) == len(ends) else plan.end_us


def _end_us(flow: Flow, ends: dict[int, int | None]) -> int | None:
    begins = [ends.get(number) for number in flow.after] or [0]
    lasts = flow.application.ends_us
    if lasts is None or flow.after_programs:
        return None
    known = [begin for begin in begins if begin is not None]
    return max(known) + flow.start_us + lasts if len(known) == len(begins) else None
