"""What a flow could have had if neither limits nor endpoints were given: the paths that the plan leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.explain.attribution import UnrestrictedPaths
from plait.plan.structure import structure, without_traces
from plait.plan.traffic.flow_slots import slots

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan
    from plait.scenario import Scenario


def unrestricted_paths_of_case(scenario: object, case: str, plan: Plan) -> dict[int, UnrestrictedPaths]:
    """Returns the same for a case of a scenario as study.json keeps it; empty where nothing is restricted.

    Raises pydantic's ValidationError when this version does not take the scenario.
    """
    if not isinstance(scenario, dict):
        return {}
    mptcp, varied = scenario.get("mptcp") or {}, str(scenario.get("vary") or "")
    if not (mptcp.get("limits") or mptcp.get("endpoints") or "limits" in varied or "endpoints" in varied):
        return {}
    from plait.scenario import Scenario
    from plait.scenario.vary.cases import expand

    cases = {expanded.name: expanded.scenario for expanded in expand(Scenario.model_validate(scenario))}
    return unrestricted_paths(cases[case], plan) if case in cases else {}


def unrestricted_paths(scenario: Scenario, plan: Plan) -> dict[int, UnrestrictedPaths]:
    """Returns by a flow's number what the path manager was kept from; `scenario` is one case, `plan` its plan.

    Empty where nothing is restricted. No file that the scenario names is needed: a result folder has none of them.
    Raises ScenarioError when the scenario cannot be planned any more.
    """
    if not (scenario.mptcp.limits or scenario.mptcp.endpoints):
        return {}
    shape = without_traces(scenario)
    mptcp = scenario.mptcp.model_copy(update={"limits": {}, "endpoints": {}})
    unrestricted = structure(shape.model_copy(update={"mptcp": mptcp})).paths()
    lacks = structure(shape).lacking()
    by_flow = {}
    for flow, paths, slot in zip(plan.flows, unrestricted, slots(scenario), strict=True):
        if flow.transport != "mptcp":
            continue
        planned = {path.name for path in flow.paths}
        further = tuple(path for path in paths if path.name not in planned)
        reasons = lacks[slot.entry]
        if further:
            by_flow[flow.id] = UnrestrictedPaths(further, reasons[0].reason if reasons else None)
    return by_flow
