"""Findings about the conditions of links, and about events of hosts that come too late to have an effect."""

from __future__ import annotations

from collections.abc import Iterator

from plait.cautions import Code
from plait.plan.finding import LintFinding
from plait.plan.links.distributions import VALUES, deviation_ns, longest_ns
from plait.plan.model.links import LinkDirection
from plait.plan.model.mptcp import AddEndpoint, SetLimits, SetSysctl
from plait.plan.model.plan import Event, Plan
from plait.plan.network.sysctls import CONGESTION_CONTROL, SCHEDULER
from plait.scenario import Scenario
from plait.scenario.fields.events import host_happenings


def lint(plan: Plan) -> Iterator[LintFinding]:
    """Yield the findings link by link, for directions that a flow crosses."""
    rtts: dict[str, float] = {}
    crossed: set[str] = set()
    for flow in plan.flows:
        for path in flow.paths:
            crossed |= {*path.forward, *path.backward}
            for name in path.forward:
                rtts[name] = max(rtts.get(name, 0), path.base_rtt_us)
    for link in plan.links:
        field = ("network", "links", link.name)
        dead = [
            direction.name
            for direction in link.directions
            if direction.name in crossed and direction.loss_ratio >= 1
        ]
        if dead:
            yield _dead(dead[0] if len(dead) == 1 else link.name, field)
            continue
        for direction in link.directions:
            if direction.name in rtts:
                yield from _queue(direction, rtts[direction.name], field)
            if direction.name in crossed:
                yield from _stall(direction, field)


def _dead(where: str, field: tuple[str, ...]) -> LintFinding:
    return LintFinding(
        Code.DEAD_LINK,
        where,
        "it loses every packet, so no subflow across it can be established",
        "lower its loss; to make it fail later, cut it by an event",
        (*field, "loss"),
    )


def _queue(direction: LinkDirection, rtt_us: float, field: tuple[str, ...]) -> Iterator[LintFinding]:
    """Yield queues below one bandwidth-delay product: one TCP flow empties them whenever it halves its window."""
    if direction.rate_bps is None:
        return
    product = int(direction.rate_bps * rtt_us / 8e6)
    held = direction.queue_bytes or (direction.queue_packets or 0) * direction.frame_bytes
    if held < product:
        yield LintFinding(
            Code.QUEUE,
            direction.name,
            f"its queue holds {held} bytes, less than a bandwidth-delay product ({product} bytes)",
            "set queue: 1bdp if the link should stay busy after a loss",
            (*field, "queue"),
            {"queue_bytes": held, "bdp_bytes": product},
        )


def _stall(direction: LinkDirection, field: tuple[str, ...]) -> Iterator[LintFinding]:
    """Yield heavy-tailed jitter that keeps order: everything waits behind a late packet.

    The longest wait is far longer than the deviation suggests.
    """
    distribution = direction.jitter_distribution
    if not direction.in_order or distribution not in _HEAVY_TAILED:
        return
    longest = longest_ns(distribution, direction.jitter_factor_ns)
    deviation = deviation_ns(distribution, direction.jitter_factor_ns)
    yield LintFinding(
        Code.STALL,
        direction.name,
        f"its {distribution} jitter keeps packets in order, so all of them wait behind a late one: one packet in "
        f"{VALUES} is {longest / 1e6:.3g} ms later than the mean, {longest / deviation:.2g} deviations",
        "set jitter: {.., reorder: true} if packets may overtake each other, or use a normal or uniform jitter",
        (*field, "jitter"),
        {"deviation_ms": deviation / 1e6, "longest_ms": longest / 1e6},
    )


_HEAVY_TAILED = ("pareto", "paretonormal")


_BY_SOCKET = {SCHEDULER: "scheduler", CONGESTION_CONTROL: "congestion_control"}


def lint_events(scenario: Scenario, plan: Plan) -> Iterator[LintFinding]:
    """Yield the findings in the order of the events."""
    happenings = iter(host_happenings(scenario.events))
    for event in plan.events:
        (action, *_) = event.actions or (None,)
        if not event.name.startswith(("endpoint_", "limits_", "sysctl_")):
            continue
        where = next(happenings).where
        if _connects_later(plan, event):
            continue
        if isinstance(action, SetSysctl) and action.path in _BY_SOCKET:
            field = _BY_SOCKET[action.path]
            message = (
                f"no flow connects from there after {event.t_us / 1e6:g} s, and a connection keeps the {field} "
                "that it began with"
            )
            remedy = f"use an earlier time, or set {field} of the flow or of the host"
        elif isinstance(action, SetLimits) and not _endpoint_comes_later(plan, event):
            message = (
                f"no flow connects from there after {event.t_us / 1e6:g} s, and no event adds an endpoint: a limit by "
                "itself neither closes nor opens a subflow"
            )
            remedy = "use an earlier time; to close a subflow, remove its endpoint"
        else:
            continue
        yield LintFinding(Code.TOO_LATE, event.subject, message, remedy, where)


def _connects_later(plan: Plan, event: Event) -> bool:
    """Return whether a flow connects from the host at that time or later, or may do so."""
    flows = (flow for flow in plan.flows if event.subject in (flow.client.netns, flow.server.netns))
    return any(flow.after or flow.start_us >= event.t_us for flow in flows)


def _endpoint_comes_later(plan: Plan, event: Event) -> bool:
    later = (other for other in plan.events if other.t_us >= event.t_us)
    return any(isinstance(action, AddEndpoint) for other in later for action in other.actions)
