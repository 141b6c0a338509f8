"""The paths that a flow would have without `limits` and `endpoints`, and that its plan leaves out."""

from __future__ import annotations

from dataclasses import replace

from plait.analysis.labels.labelled import labelled_paths
from plait.analysis.labels.study_labels import StudyLabels
from plait.explain.attribution import UnrestrictedPaths
from plait.plan.model.plan import Plan
from plait.scenario import Scenario


def unrestricted_paths_of_case(
    scenario: object, case: str, plan: Plan, labels: StudyLabels | None = None
) -> dict[int, UnrestrictedPaths]:
    """Return `unrestricted_paths` for a case of the scenario in study.json; empty if nothing is restricted.

    Paths and links have labels if `labels` are given, as in `analysis.labels.labelled`.

    Raises:
        pydantic.ValidationError: this version of plait does not accept the scenario.
    """
    if not isinstance(scenario, dict):
        return {}
    mptcp, varied = scenario.get("mptcp") or {}, str(scenario.get("vary") or "")
    if not (mptcp.get("limits") or mptcp.get("endpoints") or "limits" in varied or "endpoints" in varied):
        return {}
    from plait.scenario import Scenario
    from plait.scenario.vary.cases import expand

    cases = {expanded.name: expanded.scenario for expanded in expand(Scenario.model_validate(scenario))}
    by_flow = unrestricted_paths(cases[case], plan) if case in cases else {}
    if not labels:
        return by_flow
    return {
        flow: replace(further, paths=labelled_paths(further.paths, labels, plan=plan))
        for flow, further in by_flow.items()
    }


def unrestricted_paths(scenario: Scenario, plan: Plan) -> dict[int, UnrestrictedPaths]:
    """Return the paths, by flow ID, that limits and endpoints keep the path manager from using.

    The result is empty if nothing is restricted. The files that the scenario names are not needed, because a result
    folder does not contain them.

    Args:
        scenario: the scenario of one case.
        plan: the plan of the case.

    Raises:
        ScenarioError: this version of plait cannot plan the scenario.
    """
    if not (scenario.mptcp.limits or scenario.mptcp.endpoints):
        return {}
    # Imported here: the fields of scenarios take a third of a second, and few studies restrict anything.
    from plait.plan.structure import structure
    from plait.plan.traffic.flow_slots import slots

    mptcp = scenario.mptcp.model_copy(update={"limits": {}, "endpoints": {}})
    # Events that change endpoints or limits fit only the endpoints that the scenario has.
    events = tuple(event for event in scenario.events if not (event.endpoints or event.limits))
    unrestricted = structure(
        scenario.model_copy(update={"mptcp": mptcp, "events": events}), traces=False
    ).paths()
    lacks = structure(scenario, traces=False).missing_subflows()
    by_flow = {}
    for flow, paths, slot in zip(plan.flows, unrestricted, slots(scenario), strict=True):
        if flow.transport != "mptcp":
            continue
        planned = {path.name for path in flow.paths}
        further = tuple(path for path in paths if path.name not in planned)
        reasons = lacks[slot.entry]
        if further:
            by_flow[flow.id] = UnrestrictedPaths(further, reasons[0].code if reasons else None)
    return by_flow
