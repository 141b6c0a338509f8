"""Scenario changes that test whether a cause is the real one: each removes one cause from a case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plait.explain.causes import Cause
from plait.explain.reasons import ANNOUNCEMENT_REPEATS
from plait.plan.model.applications import Prototype
from plait.plan.traffic.flow_slots import slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from plait.explain.model import FlowExplanation, Share
    from plait.plan.model.plan import Flow, Plan
    from plait.scenario import Scenario

LONGER = 10
"""A transfer that may have been too short becomes this many times as long."""
BUFFER = 4
"""A buffer becomes this many times what fills the paths: half of it is overhead, and losses need as much again."""
LEAST_BUFFER = 2**20


@dataclass(frozen=True)
class Remedy:
    """One change to try: a description, and fields by their path in the form of `--set`."""

    description: str
    fields: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Suspect:
    """A cause of one flow, and everything that a remedy depends on."""

    scenario: Scenario
    """The scenario of the case; nothing in it varies."""
    plan: Plan
    flow: FlowExplanation
    share: Share

    @property
    def entry(self) -> tuple[int, str] | None:
        """The number and the kind of the `traffic` entry of the flow; None if a program opened the flow."""
        for slot, flow in zip(slots(self.scenario), self.plan.flows, strict=False):
            if flow.id == self.flow.flow_id:
                return slot.entry, self.scenario.traffic[slot.entry].kind
        return None

    @property
    def planned(self) -> Flow:
        """The flow in the plan."""
        return next(planned for planned in self.plan.flows if planned.id == self.flow.flow_id)

    @property
    def prototype(self) -> str | None:
        """The path of the fields of a prototype flow in the form of `--set`; None for other flows."""
        if self.entry is None or self.entry[1] != "prototype":
            return None
        return f"traffic.{self.entry[0]}.prototype"

    def links(self) -> list[str]:
        """Return the links of the directions that the cause affects."""
        return [
            link.name
            for link in self.plan.links
            if {direction.name for direction in link.directions} & set(self.share.where)
        ]

    def fill_bytes(self) -> int:
        """Return how many bytes fill the flow's paths: their total rate times the longest RTT."""
        longest = max((path.base_rtt_us for path in self.planned.paths), default=0.0)
        return int((self.flow.capacity_bps or 0) * longest / 8e6)


def remedy(suspect: Suspect) -> Remedy | None:
    """Return the change that removes a cause; None if there is none."""
    make = _REMEDIES.get(suspect.share.cause)
    if make is None or not any(flow.id == suspect.flow.flow_id for flow in suspect.plan.flows):
        return None
    return make(suspect)


def _receive_buffer(suspect: Suspect) -> Remedy:
    if suspect.share.reason == "window-scaling":
        return _setting(suspect, "window scaling", "net.ipv4.tcp_window_scaling", 1)
    if suspect.share.reason == "autotuning" and suspect.entry is not None and suspect.prototype is None:
        return _socket_buffer(suspect, "receive")
    size = max(BUFFER * suspect.fill_bytes(), LEAST_BUFFER, 4 * int(suspect.scenario.tcp.receive_buffer_max))
    if suspect.prototype is not None:
        window = (f"{suspect.prototype}.receive_window", f"{size}B")
        return Remedy(f"a receive window of {size / 1e6:.1f} MB", (window,))
    fields: list[tuple[str, Any]] = [
        ("tcp.receive_buffer_max", f"{size}B"),
        *_without_socket_buffer(suspect, "receive_buffer"),
    ]
    return Remedy(f"a receive buffer of up to {size / 1e6:.1f} MB", tuple(fields))


def _setting(suspect: Suspect, description: str, name: str, value: int) -> Remedy:
    """Return a sysctl of all hosts, also of those that have their own value."""
    fields: list[tuple[str, Any]] = [("sysctls", {**suspect.scenario.sysctls, name: value})]
    for host, options in suspect.scenario.network.hosts.items():
        if name in options.sysctls:
            fields.append((f"network.hosts.{host}.sysctls", {**options.sysctls, name: value}))
    return Remedy(description, tuple(fields))


def _both_buffers(suspect: Suspect) -> Remedy:
    """Return a larger receive buffer, and a send buffer of that size if it is smaller: late data fill either."""
    receive, send = _receive_buffer(suspect), _send_buffer(suspect)
    needed = BUFFER * suspect.fill_bytes()
    if suspect.prototype is not None or int(suspect.scenario.tcp.send_buffer_max) >= needed:
        return receive
    return Remedy(f"{receive.description} and {send.description}", (*receive.fields, *send.fields))


def _buffer_at_once(suspect: Suspect) -> Remedy | None:
    """Return a buffer that is large from the start, where the automatic one has not grown yet."""
    if suspect.entry is None:
        return None
    number, kind = suspect.entry
    return Remedy("a receive buffer of 2 MiB at once", ((f"traffic.{number}.{kind}.receive_buffer", "2MiB"),))


def _without_socket_buffer(suspect: Suspect, field: str) -> list[tuple[str, Any]]:
    """Return the fields that remove a socket buffer size from the flow's traffic entry."""
    if suspect.entry is None:
        return []
    number, kind = suspect.entry
    requested = getattr(suspect.scenario.traffic[number].flow, field)
    return [] if requested is None else [(f"traffic.{number}.{kind}.{field}", None)]


def _smaller_buffers(suspect: Suspect) -> Remedy:
    size = max(suspect.fill_bytes(), LEAST_BUFFER)
    fields = (("tcp.receive_buffer_max", f"{size}B"), ("tcp.send_buffer_max", f"{size}B"))
    return Remedy(f"buffers of at most {size / 1e6:.1f} MB", fields)


def _socket_buffer(suspect: Suspect, word: str) -> Remedy:
    """Return a buffer that the socket asks for, which the kernel does not size itself."""
    assert suspect.entry is not None
    number, kind = suspect.entry
    size = max(BUFFER * suspect.fill_bytes(), LEAST_BUFFER)
    fields = ((f"traffic.{number}.{kind}.{word}_buffer", f"{size}B"),)
    return Remedy(f"a {word} buffer of {size / 1e6:.1f} MB at once", fields)


def _send_buffer(suspect: Suspect) -> Remedy:
    if suspect.share.reason == "autotuning" and suspect.entry is not None and suspect.prototype is None:
        return _socket_buffer(suspect, "send")
    size = max(BUFFER * suspect.fill_bytes(), LEAST_BUFFER, 4 * int(suspect.scenario.tcp.send_buffer_max))
    fields: list[tuple[str, Any]] = [
        ("tcp.send_buffer_max", f"{size}B"),
        *_without_socket_buffer(suspect, "send_buffer"),
    ]
    return Remedy(f"a send buffer of up to {size / 1e6:.1f} MB", tuple(fields))


def _for_links(field: str, value: Any, description: str) -> Callable[[Suspect], Remedy | None]:
    """Return a remedy that sets a condition on every affected link, in both directions."""

    def make(suspect: Suspect) -> Remedy | None:
        fields: list[tuple[str, Any]] = []
        for name in suspect.links():
            fields.append((f"network.links.{name}.{field}", value))
            link = suspect.scenario.network.links.get(name)
            for side in ("forward", "backward"):
                conditions = getattr(link, side) if link is not None else None
                if conditions is not None and field in conditions.model_fields_set:
                    fields.append((f"network.links.{name}.{side}.{field}", value))
        names = ", ".join(suspect.links())
        return Remedy(description.format(links=names), tuple(fields)) if fields else None

    return make


def _bucket(suspect: Suspect) -> Remedy | None:
    fields: list[tuple[str, Any]] = [(f"network.links.{name}.bucket", None) for name in suspect.links()]
    for kind in ("hosts", "routers"):
        for name, node in getattr(suspect.scenario.network, kind).items():
            if node.bucket is not None and any(place.split(" ")[0] == name for place in suspect.share.where):
                fields.append((f"network.{kind}.{name}.bucket", None))
    return Remedy("no token bucket", tuple(fields)) if fields else None


def _scheduler(suspect: Suspect) -> Remedy:
    if suspect.prototype is None:
        other = "minrtt" if suspect.scenario.mptcp.scheduler == "default" else "default"
        return Remedy(f"the scheduler `{other}`", (("mptcp.scheduler", other),))
    application = suspect.planned.application
    chosen = application.scheduler if isinstance(application, Prototype) else None
    other = "roundrobin" if chosen == "minrtt" else "minrtt"
    return Remedy(f"the scheduler `{other}`", ((f"{suspect.prototype}.scheduler", other),))


def _longer_transfer(suspect: Suspect) -> Remedy | None:
    if suspect.entry is None:
        return None
    number, kind = suspect.entry
    spec = suspect.scenario.traffic[number].flow
    size, duration = getattr(spec, "bytes", None), getattr(spec, "duration", None)
    if size is not None:
        return Remedy(
            f"a transfer {LONGER} times as large",
            ((f"traffic.{number}.{kind}.bytes", f"{int(size) * LONGER}B"),),
        )
    if duration is not None:
        longer = f"{int(duration) * LONGER}ns"
        return Remedy(f"a duration {LONGER} times as long", ((f"traffic.{number}.{kind}.duration", longer),))
    return None


def _subflow(suspect: Suspect) -> Remedy | None:
    if suspect.share.reason in ("limit", "no-endpoint", "no-add-addr", "no-route"):
        mptcp = suspect.scenario.mptcp
        fields: list[tuple[str, Any]] = [
            (f"mptcp.{name}", {}) for name in ("limits", "endpoints") if getattr(mptcp, name)
        ]
        return Remedy("the limits and endpoints that plait derives", tuple(fields)) if fields else None
    if suspect.share.reason == "link-down-at-start":
        return _without_events(suspect)
    boxes = [name for name, link in suspect.scenario.network.links.items() if link.middlebox is not None]
    if not boxes:
        return None
    return Remedy(
        f"no middlebox on {', '.join(boxes)}",
        tuple((f"network.links.{name}.middlebox", None) for name in boxes),
    )


def _late_subflow(suspect: Suspect) -> Remedy | None:
    if suspect.share.reason == "add-addr-lost":
        return _setting(suspect, "ADD_ADDRs repeated after 1 s", ANNOUNCEMENT_REPEATS, 1)
    return _without_events(suspect)


def _return_path(suspect: Suspect) -> Remedy | None:
    """Return the links without a rate limit in the direction of the ACKs."""
    fields = []
    for name in suspect.links():
        link = next(link for link in suspect.plan.links if link.name == name)
        side = ("forward", "backward")[link.directions[1].name in suspect.share.where]
        fields.append((f"network.links.{name}.{side}.rate", None))
    links = ", ".join(suspect.links())
    return Remedy(f"no rate limit on the return path over {links}", tuple(fields)) if fields else None


def _regular_paths(suspect: Suspect) -> Remedy | None:
    """Return the endpoints without the flag `backup`, and no events."""
    fields: list[tuple[str, Any]] = []
    for host, endpoints in suspect.scenario.mptcp.endpoints.items():
        raw = [endpoint.model_dump(mode="json", by_alias=True, exclude_unset=True) for endpoint in endpoints]
        if any("backup" in endpoint["flags"] for endpoint in raw):
            for endpoint in raw:
                endpoint["flags"] = [flag for flag in endpoint["flags"] if flag != "backup"]
            fields.append((f"mptcp.endpoints.{host}", raw))
    if suspect.scenario.events:
        fields.append(("events", []))
    return Remedy("no backup path", tuple(fields)) if fields else None


def _without_events(suspect: Suspect) -> Remedy | None:
    return Remedy("no events", (("events", []),)) if suspect.scenario.events else None


def _always_sending(suspect: Suspect) -> Remedy | None:
    if suspect.entry is None:
        return None
    number, kind = suspect.entry
    spec = suspect.scenario.traffic[number].flow
    duration = getattr(spec, "duration", None)
    if kind in ("bulk", "transfer") or duration is None:
        return None
    ends = {"from": spec.from_, "to": spec.to, "duration": str(duration)}
    return Remedy("an application that always has data", ((f"traffic.{number}", {"bulk": ends}),))


def _without_nagle(suspect: Suspect) -> Remedy | None:
    if suspect.entry is None:
        return None
    number, kind = suspect.entry
    return Remedy("Nagle's algorithm off (nodelay)", ((f"traffic.{number}.{kind}.nodelay", True),))


def _start_on_best_path(suspect: Suspect) -> Remedy | None:
    flow = suspect.planned
    best = min(flow.paths, key=lambda path: path.base_rtt_us)
    first = best.forward[0] if flow.sender == "client" else best.backward[0]
    name = next(
        (
            link.name
            for link in suspect.plan.links
            if first in {direction.name for direction in link.directions}
        ),
        None,
    )
    if name is None or best is flow.paths[0] or suspect.entry is None:
        return None
    number, kind = suspect.entry
    return Remedy(f"{best.name} as the initial path", ((f"traffic.{number}.{kind}.via", name),))


def _without_other_traffic(suspect: Suspect) -> Remedy | None:
    if suspect.entry is None or len(suspect.scenario.traffic) < 2:
        return None
    number, _ = suspect.entry
    entry = suspect.scenario.traffic[number].model_dump(mode="json", by_alias=True, exclude_unset=True)
    return Remedy("no other traffic", (("traffic", [entry]),))


def _in_order(suspect: Suspect) -> Remedy | None:
    """Return links without anything that lets packets overtake others, in both directions."""
    calm, straight = (
        _for_links(field, value, "packets in order on {links}")(suspect)
        for field, value in (("jitter", "0ms"), ("reorder", None))
    )
    if calm is None or straight is None:
        return None
    return Remedy(calm.description, (*calm.fields, *straight.fields))


_REMEDIES: dict[Cause, Callable[[Suspect], Remedy | None]] = {
    Cause.RECEIVE_WINDOW: _receive_buffer,
    Cause.HEAD_OF_LINE: _both_buffers,
    Cause.SEND_BUFFER: _send_buffer,
    Cause.RECEIVE_MEMORY: _buffer_at_once,
    Cause.MEMORY_PRESSURE: _smaller_buffers,
    Cause.LOSS_RECOVERY: _for_links("loss", "0%", "no random loss on {links}"),
    Cause.QUEUE_FULL: _for_links("queue", "2bdp", "a queue of two bandwidth-delay products on {links}"),
    Cause.REORDERING: _in_order,
    Cause.SHARED_BOTTLENECK: _for_links("rate", None, "no rate limit on {links}"),
    Cause.BUCKET_EMPTY: _bucket,
    Cause.SCHEDULER_IDLE_PATH: _scheduler,
    Cause.DUPLICATES: _scheduler,
    Cause.LAST_BYTES: _scheduler,
    Cause.TOO_SHORT: _longer_transfer,
    Cause.SUBFLOW_NEVER: _subflow,
    Cause.SUBFLOW_LATE: _late_subflow,
    Cause.BACKUP: _regular_paths,
    Cause.ACK_PATH: _return_path,
    Cause.SUBFLOW_CLOSED: _without_events,
    Cause.PATH_DOWN: _without_events,
    Cause.NAGLE: _without_nagle,
    Cause.RATE_TOO_HIGH: _for_links("rate", None, "no rate limit on {links}"),
    Cause.JITTER: _for_links("jitter", "0ms", "no jitter on {links}"),
    Cause.RATE_CHANGED: _without_events,
    Cause.SENDER_IDLE: _always_sending,
    Cause.INITIAL_PATH_POOR: _start_on_best_path,
    Cause.COMPETING_TRAFFIC: _without_other_traffic,
}
