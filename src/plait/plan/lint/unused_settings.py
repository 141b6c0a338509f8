"""Findings about settings without an effect: nothing in the trial reads them, or nothing is left that they change."""

from __future__ import annotations

import math
from collections.abc import Iterator

from plait.cautions import Code
from plait.plan.finding import LintFinding
from plait.plan.model.links import LinkDirection
from plait.plan.model.plan import Flow, Plan
from plait.scenario import Scenario
from plait.scenario.fields.events import happenings
from plait.scenario.mistakes import Where

_OF_SOCKETS = (
    ("mptcp", "scheduler", "scheduler", ("mptcp",)),
    ("tcp", "congestion_control", "congestion_control", ("tcp", "mptcp")),
    ("tcp", "receive_buffer_max", "receive_buffer", ("tcp", "mptcp")),
    ("tcp", "send_buffer_max", "send_buffer", ("tcp", "mptcp")),
)
"""Section and field of a setting of hosts, the option of sockets that overrides it, and the transports that read it."""
_TCP_ECN = "net/ipv4/tcp_ecn"


def lint(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    """Yield the findings: of events, of sections, of links."""
    last_us = end_us(plan)
    yield from _events(scenario, plan, last_us)
    if not plan.programs:
        yield from _unread_sections(scenario, plan)
        yield from _overridden(scenario, plan)
        yield from _options(scenario, plan)
        yield from _uncrossed_links(scenario, plan)
    yield from _idle_queues(scenario, plan)
    for link in plan.links:
        for direction in link.directions:
            yield from _bucket(direction, ("network", "links", link.name), last_us)
            yield from _ecn(plan, direction, ("network", "links", link.name))


def _events(scenario: Scenario, plan: Plan, last_us: int) -> Iterator[LintFinding]:
    """Yield events of links that change nothing, and events after `last_us`, the end of all traffic."""
    changes = {(event.t_us, event.name, event.subject) for event in plan.events if event.actions}
    for happening in happenings(scenario.events):
        t_us = happening.at // 1000
        if t_us < last_us and (t_us, f"link_{happening.kind}", happening.subject) not in changes:
            yield LintFinding(
                Code.NO_CHANGE,
                happening.subject,
                f"the event at {t_us / 1e6:g} s changes nothing: the link already is in this state",
                "leave the event out, or change its time or its values",
                happening.where,
            )
    for number, event in enumerate(scenario.events):
        t_us = event.at // 1000
        if t_us >= last_us and not (event.sysctls or event.limits):
            yield LintFinding(
                Code.TOO_LATE,
                f"the event at {t_us / 1e6:g} s",
                f"all traffic has ended by {last_us / 1e6:.3g} s, so it changes nothing; because of it, the results "
                "have no theoretical maximum",
                "use an earlier time, or let the traffic last longer",
                ("events", number, "at"),
            )


def _unread_sections(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    transports = {flow.transport for flow in plan.flows}
    sysctls = [name for name in scenario.sysctls if name.startswith("net.mptcp.")]
    boxes = [name for name, link in scenario.network.links.items() if link.middlebox and link.middlebox.strip]
    if not transports & {"mptcp", "prototype"}:
        places: list[Where] = [("mptcp", field) for field in sorted(scenario.mptcp.model_fields_set)]
        places += [("sysctls", name) for name in sysctls]
        places += [("network", "links", name, "middlebox") for name in boxes]
        for where in places:
            yield _unread(where, "no flow uses MPTCP", "set transport: mptcp, or leave it out")
    if not transports & {"tcp", "mptcp"}:
        for field in sorted(scenario.tcp.model_fields_set):
            if field != "receive_buffer_max" or "prototype" not in transports:
                yield _unread(("tcp", field), "no flow uses TCP", "leave it out, or add a flow over TCP")


def _unread(where: Where, reason: str, remedy: str) -> LintFinding:
    name = ".".join(map(str, where))
    return LintFinding(Code.UNREAD, name, f"it has no effect, because {reason}", remedy, where)


def _overridden(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    """Yield settings of hosts that every flow overrides by an option of its socket."""
    for section, field, option, transports in _OF_SOCKETS:
        readers = [flow for flow in plan.flows if flow.transport in transports]
        given = field in getattr(scenario, section).model_fields_set
        if given and readers and all(getattr(flow.socket, option) is not None for flow in readers):
            yield _unread((section, field), f"every flow sets its own {option}", "leave out one of the two")


def _options(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    """Yield options that no queue, no route and no segment of the flow depends on."""
    multipath = any(flow.multipath for flow in plan.flows)
    for number, entry in enumerate(scenario.traffic):
        for field in ("dscp", "mark"):
            if getattr(entry.flow, field, None):
                where = ("traffic", number, entry.key, field)
                remedy = "leave it out; only a program in a router could read it"
                yield _unread(where, "nothing in the network reads it", remedy)
        # MPTCP hands data to its subflows in another way with nodelay.
        if (
            not multipath
            and entry.kind in ("bulk", "transfer", "page")
            and getattr(entry.flow, "nodelay", False)
        ):
            where = ("traffic", number, entry.key, "nodelay")
            reason = "Linux holds a partial segment back only behind another partial one, which this flow never has"
            yield _unread(where, reason, "leave it out")


def _uncrossed_links(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    """Yield links with conditions that no packet of a flow crosses."""
    crossed = {name for flow in plan.flows for name in _links_of(flow)}
    for link in plan.links:
        given = scenario.network.links.get(link.name)
        if given is None or not given.model_fields_set - {"label", "mtu"}:
            continue
        if not any(direction.name in crossed for direction in link.directions):
            yield LintFinding(
                Code.UNCROSSED,
                link.name,
                "no flow has a path over it, so its conditions have no effect",
                "use MPTCP, start a flow there (via), or leave the link out",
                ("network", "links", link.name),
            )


def _links_of(flow: Flow) -> set[str]:
    return {name for path in flow.paths for name in (*path.forward, *path.backward, *path.spread)}


def _idle_queues(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    """Yield queues that a scenario sets behind a link that is no faster and that all their packets cross."""
    paths = [path for flow in plan.flows for path in flow.paths]
    if plan.programs or plan.events or any(path.spread for path in paths):
        return  # a router that spreads flows decides what is in front of the queue
    before: dict[str, set[str]] = {}
    for way in {path.forward for path in paths}:
        for position, name in enumerate(way):
            crossed = before.setdefault(name, set(way[:position]))
            crossed.intersection_update(way[:position])
    for link in plan.links:
        given = scenario.network.links.get(link.name)
        fields = given.model_fields_set & {"queue", "aqm"} if given is not None else set()
        for direction in link.directions if fields else ():
            rate_bps = direction.rate_bps
            slow = {
                name
                for name in before.get(direction.name, ())
                if rate_bps is not None and (plan.directions[name].rate_bps or math.inf) <= rate_bps
            }
            if slow:
                yield LintFinding(
                    Code.UNREAD,
                    direction.name,
                    f"its queue stays empty, because {min(slow)} in front of it is no faster",
                    f"set the queue of {min(slow)}",
                    ("network", "links", link.name, min(fields)),
                )


def _bucket(direction: LinkDirection, field: Where, last_us: int) -> Iterator[LintFinding]:
    """Yield token buckets that no traffic until `last_us` can empty."""
    if direction.baseline_bps is None or direction.burst_bytes is None or direction.rate_bps is None:
        return
    most = max(0, direction.rate_bps - direction.baseline_bps) * last_us / 8e6
    if most < direction.burst_bytes:
        yield LintFinding(
            Code.BUCKET,
            direction.name,
            f"its bucket never becomes empty: at its full rate it loses {most:.0f} bytes within {last_us / 1e6:.3g} s, "
            f"and it holds {direction.burst_bytes}",
            "use a smaller burst, a lower baseline, or a longer flow",
            (*field, "bucket"),
            {"taken_bytes": round(most), "burst_bytes": direction.burst_bytes},
        )


def _ecn(plan: Plan, direction: LinkDirection, field: Where) -> Iterator[LintFinding]:
    """Yield queues that should mark packets of connections that do not negotiate ECN."""
    if direction.aqm in (None, "fq_codel"):
        return
    if not getattr(direction.manager, "ecn", False):
        return
    hosts = {side.netns for flow in plan.flows for side in (flow.client, flow.server)}
    negotiates = any(plan.sysctls[host].get(_TCP_ECN) == "1" for host in hosts)
    if not negotiates:
        yield LintFinding(
            Code.ECN,
            direction.name,
            "its queue marks only packets of connections that negotiated ECN, and no host asks for that: it drops "
            "packets instead",
            "set sysctls: {net.ipv4.tcp_ecn: 1}",
            (*field, "aqm"),
        )


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
