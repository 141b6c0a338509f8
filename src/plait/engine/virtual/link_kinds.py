"""Which links of a plan stay chains of qdiscs where the laboratory kernel has links as devices.

`agent/src/apply/devices/choice.rs` decides by the same rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait.plan.model.plan import Plan


def chains(plan: Plan) -> set[str]:
    """Return the names of links with a middlebox, a shared token bucket, or the replay of a recorded trace."""
    network = plan.network
    kept = {redirect.source for redirect in network.redirects if redirect.hook == "egress"}
    kept |= {qdisc.ifname for qdisc in network.qdiscs if qdisc.options.kind == "plait_trace"}
    targets = {
        redirect.source: redirect.target for redirect in network.redirects if redirect.hook == "ingress"
    }
    names = set()
    for link in plan.links:
        ends = [direction.ifname for direction in link.directions]
        joined = targets.get(ends[0]) == ends[1] and targets.get(ends[1]) == ends[0]
        if not joined or kept & set(ends):
            names.add(link.name)
    return names
