"""Findings about subflows that will not be established, or that add no capacity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from plait.cautions import Code
from plait.plan.finding import LintFinding
from plait.plan.model.plan import Flow, Plan
from plait.plan.traffic.flow_slots import slots
from plait.scenario import Scenario
from plait.units import Rate


def lint(scenario: Scenario, plan: Plan, absent: Sequence[Sequence[LintFinding]]) -> Iterator[LintFinding]:
    """Yield the findings flow by flow; `absent` holds what each entry of the traffic will lack."""
    lacks = [absent[slot.entry] for slot in slots(scenario)]
    for flow, lacking in zip(plan.flows, lacks, strict=True):
        if flow.transport != "mptcp":
            continue
        ends = (flow.client.netns, flow.server.netns)
        off = [end for end in ends if plan.sysctls[end].get("net/mptcp/enabled") == "0"]
        if off:
            yield _disabled(flow, off[0])
        elif lacking:
            yield from lacking
        elif len(flow.paths) < 2 and not flow.joins:
            yield _single_path(scenario, flow)
        yield from _shared(plan, flow)
        yield from _backups(scenario, plan, flow)
        yield from _stripped(scenario, flow)


def _disabled(flow: Flow, host: str) -> LintFinding:
    return LintFinding(
        Code.MPTCP_OFF,
        flow.name,
        f"it requests MPTCP, but net.mptcp.enabled is 0 in {host}: the kernel will refuse the socket",
        "set net.mptcp.enabled to 1, or set transport: tcp",
        ("sysctls",),
    )


def _single_path(scenario: Scenario, flow: Flow) -> LintFinding:
    limited = scenario.mptcp.limits.get(flow.client.netns)
    host = flow.client.netns if limited is not None else flow.server.netns
    return LintFinding(
        Code.SINGLE_PATH,
        flow.name,
        f"MPTCP has only one path ({flow.paths[0].name}) and cannot gain anything over TCP",
        f"give {flow.client.netns} and {flow.server.netns} a second link each, or set subflows_per_path",
        ("mptcp", "endpoints", host)
        if scenario.mptcp.endpoints.get(host) is not None
        else ("network", "links"),
    )


def _shared(plan: Plan, flow: Flow) -> Iterator[LintFinding]:
    """Yield paths that cross the same limited link, if their rates do not add up because of it."""
    paths = [path for path in flow.paths if not path.backup]
    total = sum(path.rate_bps or 0 for path in paths)
    ideal = flow.ideal_rate_bps
    if len(paths) < 2 or ideal is None or ideal >= total:
        return
    rates = {name: plan.directions[name].rate_bps for path in paths for name in path.forward}
    limited = [[name for name in path.forward if rates[name] is not None] for path in paths]
    crossed = [name for names in limited for name in names]
    shared = sorted({name for name in crossed if crossed.count(name) > 1}, key=lambda name: rates[name] or 0)
    if not shared:
        return
    figures = {"together_bps": ideal, "sum_bps": total, "paths": len(paths)}
    field = ("network", "links", _link(shared[0]))
    for names in limited:
        alike = [path.name for path, others in zip(paths, limited, strict=True) if set(others) == set(names)]
        if len(alike) == 1:
            continue
        message = (
            f"its paths {', '.join(alike[:-1])} and {alike[-1]} cross the same limited links ({', '.join(names)}): "
            "they act as one path"
        )
        remedy = "give each subflow links of its own, or keep only one of them"
        yield LintFinding(Code.SAME_PATH, flow.name, message, remedy, field, figures)
        return
    every_path = "both" if len(paths) == 2 else f"all {len(paths)}"
    message = (
        f"its paths share {shared[0]}, so {every_path} together carry at most {Rate(ideal)} instead of "
        f"{Rate(total)}"
    )
    remedy = "give the paths links of their own if their rates should add up"
    yield LintFinding(Code.SHARED_BOTTLENECK, flow.name, message, remedy, field, figures)


def _backups(scenario: Scenario, plan: Plan, flow: Flow) -> Iterator[LintFinding]:
    """Yield backup paths while no event touches a link of the others, so that they carry nothing."""
    regular = [path for path in flow.paths if not path.backup]
    links = {_link(name) for path in regular for name in (*path.forward, *path.backward)}
    if not regular or any(
        _link(event.subject) in links or event.name.startswith("endpoint_") for event in plan.events
    ):
        return
    declared = [
        host for host, ends in scenario.mptcp.endpoints.items() if any("backup" in end.flags for end in ends)
    ]
    for path in flow.paths:
        if path.backup:
            yield LintFinding(
                Code.BACKUP,
                flow.name,
                f"its path {path.name} is a backup: it carries no data, because nothing interrupts the other paths",
                "add an event that cuts another path, or leave out the flag backup",
                ("mptcp", "endpoints", *declared[:1]),
            )


def _stripped(scenario: Scenario, flow: Flow) -> Iterator[LintFinding]:
    """Yield middleboxes that make the connection fall back, or keep subflows from being established."""
    for place, path in enumerate(flow.paths):
        for name in dict.fromkeys(_link(name) for name in (*path.forward, *path.backward)):
            link = scenario.network.links.get(name)
            if link is None or link.middlebox is None or not link.middlebox.strip:
                continue
            what = (
                f"no subflow over {path.name} will carry data"
                if place
                else "the connection falls back to TCP, and uses this path only"
            )
            yield LintFinding(
                Code.STRIPPED,
                name,
                f"its middlebox strips MPTCP's options: {what}",
                "leave the middlebox out, or start on another path (via)",
                ("network", "links", name, "middlebox"),
            )


def _link(direction: str) -> str:
    """Return the link of a direction such as `s1->h2#2`; the order of the nodes does not matter for a place."""
    names, _, suffix = direction.partition("#")
    return names.replace("->", "-") + (f"#{suffix}" if suffix else "")
