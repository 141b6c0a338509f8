"""A subflow comes late, never, closes, or is a backup."""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.analysis.wording import percent, seconds
from plait.explain.cause import Cause, Places
from plait.explain.causes.kind import Kind
from plait.explain.changes import Remedy, Suspect, host_setting, without_events
from plait.explain.facts import FlowFacts
from plait.explain.link_evidence import MAX_PLACES
from plait.explain.reasons import ANNOUNCEMENT_REPEATS


def late_subflows(facts: FlowFacts, _: Places) -> list[str]:
    """Return when further subflows were established."""
    joins = [
        (path.name, subflow.established_us)
        for path in facts.paths
        for subflow in path.subflows
        if subflow.number
    ]
    return [
        f"The subflow on {name} was established {seconds((established_us - facts.connected_us) / 1e6)} after the "
        "connection."
        for name, established_us in joins[:MAX_PLACES]
    ]


def _late_subflow(suspect: Suspect) -> Remedy | None:
    if suspect.share.reason == "add-addr-lost":
        return host_setting(suspect, "ADD_ADDRs repeated after 1 s", ANNOUNCEMENT_REPEATS, 1)
    return without_events(suspect)


def _subflow(suspect: Suspect) -> Remedy | None:
    if suspect.share.reason in ("limit", "no-endpoint", "no-add-addr", "no-route"):
        mptcp = suspect.scenario.mptcp
        fields: list[tuple[str, Any]] = [
            (f"mptcp.{name}", {}) for name in ("limits", "endpoints") if getattr(mptcp, name)
        ]
        return Remedy("the limits and endpoints that plait derives", tuple(fields)) if fields else None
    if suspect.share.reason == "link-down-at-start":
        return without_events(suspect)
    boxes = [name for name, link in suspect.scenario.network.links.items() if link.middlebox is not None]
    if not boxes:
        return None
    return Remedy(
        f"no middlebox on {', '.join(boxes)}",
        tuple((f"network.links.{name}.middlebox", None) for name in boxes),
    )


def _backup(facts: FlowFacts, _: Places) -> list[str]:
    shares = {
        path.name: float(np.mean([np.mean(subflow.is_backup) for subflow in path.subflows]))
        for path in facts.paths
        if path.subflows
    }
    return [
        f"{name} was a backup in {percent(share, 2)} of the samples."
        for name, share in shares.items()
        if share
    ][:MAX_PLACES]


def _regular_paths(suspect: Suspect) -> Remedy | None:
    """Return the endpoints without the flag `backup`, and no events."""
    fields: list[tuple[str, Any]] = []
    for host, endpoints in suspect.scenario.mptcp.endpoints.items():
        raw = [endpoint.model_dump(mode="json", by_alias=True, exclude_unset=True) for endpoint in endpoints]
        if any("backup" in endpoint["flags"] for endpoint in raw):
            for endpoint in raw:
                endpoint["flags"] = [flag for flag in endpoint["flags"] if flag != "backup"]
            fields.append((f"mptcp.endpoints.{host}", raw))
    if not suspect.scenario.events:
        return Remedy("no backup path", tuple(fields)) if fields else None
    description = "no backup path and no events" if fields else "no events"
    return Remedy(description, (*fields, ("events", [])))


KINDS = (
    Kind(
        Cause.SUBFLOW_LATE,
        title="late subflow",
        clause="a subflow was established late",
        next_step="look at the events during its handshake: TCP sends a lost SYN again after a second or more",
        next_steps={
            "add-addr-lost": "set net.mptcp.add_addr_timeout to a few seconds on the server (`sysctls`), or find what "
            "drops packets on the initial path",
            "setting-changed": "compare with the scenario's `events`",
            "link-down": "compare with the scenario's `events`",
        },
        evidence=late_subflows,
        change=_late_subflow,
        names_place=True,
        keeps_messages="partial segments",
    ),
    Kind(
        Cause.SUBFLOW_NEVER,
        title="missing subflow",
        clause="a subflow was never established",
        next_step="remove the reason; `plait lint` reports what the plan lacks",
        next_steps={
            "no-answer": "find what drops its packets: a cut or lossy link, a firewall, or no way back",
            "link-down-at-start": "add the endpoint when the link comes up (`ip mptcp endpoint add`; `events`: "
            "`endpoints`), because Linux does not try again",
            "fallback": "find what removes MPTCP's options from the handshake: a middlebox, or a peer without MPTCP",
            "mptcp-off": "set net.mptcp.enabled to 1 on both hosts",
            "join-refused": "find what refuses it: a middlebox that strips MPTCP's options, or no listener at the "
            "address",
            "limit": "raise the limits under mptcp.limits (`subflows`, `add_addr_accepted`)",
            "no-add-addr": "let the server announce the address: an endpoint with flags: [signal]",
            "no-endpoint": "give the client an endpoint with flags: [subflow] for the address",
        },
        change=_subflow,
        names_place=True,
    ),
    Kind(
        Cause.SUBFLOW_CLOSED,
        title="closed subflow",
        clause="a subflow closed before the end",
        next_step="see `error` and `reset_reason` of its events",
        change=without_events,
        is_marked=True,
    ),
    Kind(
        Cause.BACKUP,
        title="backup",
        clause="a path is a backup, which carries data only while no other path works",
        next_step="clear the flag `backup` of its endpoint if the path should always carry data",
        evidence=_backup,
        change=_regular_paths,
    ),
)
