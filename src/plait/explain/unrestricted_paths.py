"""What a flow could have had if neither limits nor endpoints were given: the paths that the plan leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.explain.attribution import Possible
from plait.plan.structure import structure, without_traces
from plait.plan.traffic.flow_slots import slots

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan
    from plait.scenario import Scenario


def possible_of_case(asked: object, case: str, plan: Plan) -> dict[int, Possible]:
    """Returns the same for a case of a scenario as study.json keeps it; empty where nothing is restricted.

    Raises pydantic's ValidationError when this version does not take the scenario.
    """
    if not isinstance(asked, dict):
        return {}
    mptcp, varied = asked.get("mptcp") or {}, str(asked.get("vary") or "")
    if not (mptcp.get("limits") or mptcp.get("endpoints") or "limits" in varied or "endpoints" in varied):
        return {}
    from plait.scenario import Scenario
    from plait.scenario.vary.cases import expand

    found = next((one for one in expand(Scenario.model_validate(asked)) if one.name == case), None)
    return possible(found.scenario, plan) if found is not None else {}


def possible(scenario: Scenario, plan: Plan) -> dict[int, Possible]:
    """Returns by a flow's number what the path manager was kept from; `scenario` is one case, `plan` its plan.

    Empty where nothing is restricted. No file that the scenario names is needed: a result folder has none of them.
    Raises ScenarioError when the scenario cannot be planned any more.
    """
    if not (scenario.mptcp.limits or scenario.mptcp.endpoints):
        return {}
    shape = without_traces(scenario)
    freed = scenario.mptcp.model_copy(update={"limits": {}, "endpoints": {}})
    free = structure(shape.model_copy(update={"mptcp": freed})).paths()
    lacks = structure(shape).lacking()
    found = {}
    for flow, paths, slot in zip(plan.flows, free, slots(scenario), strict=True):
        if flow.transport != "mptcp":
            continue
        known = {path.name for path in flow.paths}
        further = tuple(path for path in paths if path.name not in known)
        reasons = lacks[slot.entry]
        if further:
            found[flow.id] = Possible(further, reasons[0].reason if reasons else None)
    return found
