"""The reasons of causes, which decide what to do: why a subflow came late or never, why a buffer was full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import polars as pl

from plait.analysis.cautions.join_time import patience_us
from plait.analysis.cautions.mptcp import findings
from plait.analysis.wording import capital, seconds, size
from plait.cautions import Code
from plait.dataset.model import Tables
from plait.explain.cause import Cause
from plait.explain.facts import FlowFacts, PathFacts
from plait.plan.model.mptcp import AddEndpoint, SetLimits
from plait.plan.model.plan import Plan

Reasons = Mapping[tuple[str, str], tuple[str, tuple[str, ...]]]
"""The reason of a cause on a path (a stable name), and its evidence."""

REASONS = {
    Code.SUBFLOW_LIMIT: "limit",
    Code.ADD_ADDR_LIMIT: "limit",
    Code.NO_ROUTE: "no-route",
    Code.NO_SIGNAL: "no-add-addr",
    Code.NO_ENDPOINT: "no-endpoint",
    Code.WRONG_SIDE: "no-endpoint",
}
REASON_TEXTS = {
    "limit": "a limit of the path manager prevented it",
    "no-route": "packets cannot travel both ways between its addresses",
    "no-add-addr": "the server never announced the address (no ADD_ADDR)",
    "no-endpoint": "the client has no `subflow` endpoint for it",
    "join-refused": "its join was refused",
    "fallback": "the connection had fallen back to TCP",
    "mptcp-off": "MPTCP was off",
    "no-answer": "its handshake was not answered",
    "link-down-at-start": "its link was down when the connection began",
    "too-late": "the connection ended first",
}
LATE_TEXTS = {
    "add-addr-lost": "its address was announced late: an ADD_ADDR or its echo was lost",
    "setting-changed": "an event added its endpoint or raised a limit",
    "link-down": "a link was down during its handshake",
    "syn-lost": "a SYN or its answer was lost",
}
FAR = 2.0
"""A path is far when its RTT is at least this many times another path's .."""
NO_DELAY_US = 2_000
""".. and this much longer."""
ENOUGH_SHARE = 0.75
"""A buffer below this share of its maximum is limited by how the kernel grows it, not by the maximum."""
ANNOUNCEMENT_REPEATS = "net.mptcp.add_addr_timeout"


def reasons_by_path(plan: Plan, tables: Tables, facts: FlowFacts, plan_reason: Code | None) -> Reasons:
    """Return the reasons of the causes on each path; `plan_reason` is why the plan leaves a path out."""
    planned = {path.name for path in facts.flow.paths}
    reasons: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}
    for path in facts.paths:
        if not path.subflows:
            lack = plan_reason if path.name not in planned else None
            reasons[Cause.SUBFLOW_NEVER, path.name] = why_never(plan, tables, facts, path, lack)
        elif (late := why_late(plan, facts, path)) is not None:
            reasons[Cause.SUBFLOW_LATE, path.name] = late
        if _differ_by_queues(facts):
            reasons[Cause.HEAD_OF_LINE, path.name] = ("queues", ())
        for cause, reason, sentence in _buffers(plan, facts):
            reasons[cause, path.name] = (reason, (sentence,))
    return reasons


def _buffers(plan: Plan, facts: FlowFacts) -> Iterator[tuple[str, str, str]]:
    """Yield the causes of buffers that are full for another reason than their maximum, with reason and evidence."""
    socket = facts.flow.socket
    for cause, node, requested, sysctl, buffers in (
        (Cause.SEND_BUFFER, facts.sender, socket.send_buffer, "net/ipv4/tcp_wmem", facts.send_buffer),
        (
            Cause.RECEIVE_WINDOW,
            facts.receiver,
            socket.receive_buffer,
            "net/ipv4/tcp_rmem",
            facts.receive_buffer,
        ),
    ):
        sysctls = plan.sysctls.get(node, {})
        if requested is not None or sysctl not in sysctls or not np.isfinite(buffers).any():
            continue
        largest_kept, largest = float(np.nanmax(buffers)), float(sysctls[sysctl].split()[-1])
        if cause == Cause.RECEIVE_WINDOW and (unscaled := _without_window_scaling(plan, facts)):
            yield (
                cause,
                "window-scaling",
                f"net.ipv4.tcp_window_scaling is 0 on {unscaled}, so no window exceeds 65 535 bytes.",
            )
        elif largest_kept < ENOUGH_SHARE * largest:
            yield (
                cause,
                "autotuning",
                f"The buffer grew to {size(largest_kept)} of at most {size(largest)}.",
            )


def _without_window_scaling(plan: Plan, facts: FlowFacts) -> str:
    """Return the hosts of a flow without window scaling: it takes both of them (RFC 7323)."""
    ends = (facts.flow.client.netns, facts.flow.server.netns)
    unscaled = (end for end in ends if plan.sysctls.get(end, {}).get("net/ipv4/tcp_window_scaling") == "0")
    return " and ".join(dict.fromkeys(unscaled))


def why_never(
    plan: Plan, tables: Tables, facts: FlowFacts, path: PathFacts, plan_reason: Code | None
) -> tuple[str, tuple[str, ...]]:
    """Return the reason (a stable name) and its evidence.

    `plan_reason` is the reason that follows from the plan, if there is one.
    """
    flow = facts.flow
    if facts.row.get("fallback"):
        fallbacks = [
            finding
            for finding in findings(plan, tables)
            if finding.flow == flow.name and finding.code == "FELL_BACK"
        ]
        return "fallback", tuple(_sentence(finding.text, finding.reasons) for finding in fallbacks)
    if plan_reason is not None:
        text = REASON_TEXTS[REASONS[plan_reason]]
        return REASONS[plan_reason], (f"{capital(text)}.",)
    ends = (flow.client.netns, flow.server.netns)
    if any(plan.sysctls.get(end, {}).get("net/mptcp/enabled") == "0" for end in ends):
        return "mptcp-off", ("net.mptcp.enabled is 0.",)
    for reason, code in (("join-refused", "JOIN_REFUSED"), ("no-answer", "JOIN_UNANSWERED")):
        if sentences := _handshakes(plan, tables, facts, path, code):
            return reason, sentences
    if _closed_before(facts, path):
        return "join-refused", ("The kernel closed the subflow before it was established.",)
    if path.planned is not None and facts.end_us - facts.connected_us < patience_us(
        flow.paths[0] if flow.paths else None, path.planned
    ):
        return "too-late", ("The connection ended before a join could complete.",)
    if absent := _down_at_start(plan, facts, path):
        return "link-down-at-start", absent
    if unannounced := _unannounced(plan, facts, path):
        return "no-add-addr", unannounced
    return "no-answer", ("No event mentions the subflow: its SYN was not answered, or never sent.",)


def _down_at_start(plan: Plan, facts: FlowFacts, path: PathFacts) -> tuple[str, ...]:
    """Return which link of the path had its interfaces down as the connection began; empty if none had."""
    if path.planned is None:
        return ()
    path_links = {*path.planned.forward, *path.planned.backward}
    members = {link.name: {direction.name for direction in link.directions} for link in plan.links}
    down: dict[str, int] = {}
    for event in plan.events:
        if event.t_us > facts.connected_us:
            break
        if event.name == "link_down":
            down[event.subject] = event.t_us
        elif event.name == "link_up":
            down.pop(event.subject, None)
    for name, since_us in down.items():
        if members.get(name, set()) & path_links:
            return (
                f"{name} was down from {seconds(since_us / 1e6)} on, so the address was no source for a subflow.",
                "Linux opens the subflows of its endpoints once, when the connection is established.",
            )
    return ()


def _unannounced(plan: Plan, facts: FlowFacts, path: PathFacts) -> tuple[str, ...]:
    """Return what the server announced instead of the path's address; empty if the client knew it."""
    flow = facts.flow
    if path.planned is None or not flow.paths:
        return ()
    announced = facts.events.filter((pl.col("event") == "announced") & (pl.col("node") == flow.client.netns))
    known_addresses = [
        flow.paths[0].server_address,
        *announced["remote_address"].unique(maintain_order=True).to_list(),
    ]
    if path.planned.server_address in known_addresses:
        return ()
    sentences = [
        f"{flow.server.netns} announced {', '.join(map(str, known_addresses[1:])) or 'nothing'} to {flow.client.netns}."
    ]
    endpoints = [
        endpoint
        for host in plan.network.mptcp
        if host.netns == flow.server.netns
        for endpoint in host.endpoints
    ]
    if (
        known_addresses[1:]
        and sum({"subflow", "signal"} <= set(endpoint.flags) for endpoint in endpoints) > 1
    ):
        sentences.append(
            "If endpoints are both `subflow` and `signal`, Linux announces only one of them: it marks the others as "
            "used as soon as this side tries to open subflows from them."
        )
    return tuple(sentences)


def _handshakes(plan: Plan, tables: Tables, facts: FlowFacts, path: PathFacts, code: str) -> tuple[str, ...]:
    """Return the findings of one code about joins between the addresses of a path."""
    if path.planned is None:
        return ()
    ends = {path.planned.client_address, path.planned.server_address}
    return tuple(
        _sentence(finding.text, finding.reasons)
        for finding in findings(plan, tables)
        if finding.flow == facts.flow.name
        and finding.code == code
        and all(f" {address}" in finding.text for address in ends)
        and (finding.t_us is None or finding.t_us < facts.end_us)
    )


def _closed_before(facts: FlowFacts, path: PathFacts) -> bool:
    """Return whether the kernel closed the subflow of a path; the end of the connection closes subflows, too."""
    if path.planned is None:
        return False
    closed = facts.events.filter(
        (pl.col("event") == "sub_closed")
        & (pl.col("local_address") == path.planned.client_address)
        & (pl.col("remote_address") == path.planned.server_address)
        & (pl.col("t_us") < facts.end_us)
    )
    return not closed.is_empty()


def why_late(plan: Plan, facts: FlowFacts, path: PathFacts) -> tuple[str, tuple[str, ...]] | None:
    """Return why the first subflow of a path came late (a stable name) and the evidence; None if it was in time."""
    initial, *_ = facts.flow.paths or (None,)
    usual_us = facts.connected_us + patience_us(initial, path.planned)
    came_us = min((subflow.established_us for subflow in path.subflows if subflow.number), default=0.0)
    if came_us <= usual_us or path.planned is None:
        return None
    if changes := _settings_changed(plan, facts, came_us):
        return "setting-changed", changes
    announced_us = _announced_us(facts, path)
    if announced_us is not None and announced_us > usual_us:
        return "add-addr-lost", _late_announcement(plan, facts, path.planned.server_address, announced_us)
    slices = (facts.edges[1:] > facts.connected_us) & (facts.edges[:-1] < came_us)
    if np.any(facts.network.down_shares((*path.planned.forward, *path.planned.backward))[slices] > 0):
        return "link-down", (f"A link of {path.name} was down during the handshake.",)
    return "syn-lost", ("TCP sends a lost SYN again after 1 s, and then after twice as long each time.",)


def _differ_by_queues(facts: FlowFacts) -> bool:
    """Return whether the base RTTs of the paths in use are alike, so that queues make up their difference."""
    rtts = [path.planned.base_rtt_us for path in facts.paths if path.planned is not None and path.subflows]
    return len(rtts) > 1 and max(rtts) < FAR * min(rtts) + NO_DELAY_US


def _late_announcement(plan: Plan, facts: FlowFacts, address: str, announced_us: float) -> tuple[str, ...]:
    """Return when the client learned of an address, and after how long Linux repeats an announcement."""
    flow = facts.flow
    timeout = plan.sysctls[flow.server.netns].get(ANNOUNCEMENT_REPEATS.replace(".", "/"))
    wait = f"{timeout} s" if timeout else "120 s by default"
    delay = seconds((announced_us - facts.connected_us) / 1e6)
    return (
        f"{flow.client.netns} learned of {address} {delay} after the connection.",
        f"Linux repeats an ADD_ADDR without an echo after {ANNOUNCEMENT_REPEATS} ({wait}).",
    )


def _announced_us(facts: FlowFacts, path: PathFacts) -> float | None:
    """Return when the client first learned of the server's address of a path; None if it never did."""
    times = facts.events.filter(
        (pl.col("event") == "announced")
        & (pl.col("node") == facts.flow.client.netns)
        & (pl.col("remote_address") == (path.planned.server_address if path.planned is not None else None))
    )["t_us"].drop_nulls()
    return float(times.to_numpy().min()) if len(times) else None


def _settings_changed(plan: Plan, facts: FlowFacts, end: float) -> tuple[str, ...]:
    """Return what events changed at the path managers of a flow's hosts between two times."""
    hosts = (facts.flow.client.netns, facts.flow.server.netns)
    return tuple(
        f"At {seconds(event.t_us / 1e6)}: {event.text or event.name}."
        for event in plan.events
        if facts.connected_us < event.t_us <= end
        and any(
            isinstance(action, AddEndpoint | SetLimits) and action.netns in hosts for action in event.actions
        )
    )


def _sentence(text: str, reasons: tuple[str, ...]) -> str:
    counters = f" [{', '.join(reasons)}]" if reasons else ""
    return f"{capital(text)}{counters}."
