"""Names of interfaces, shortened where they exceed the kernel's 15 characters.

Interfaces of node `h1` are `h1-eth0`, `h1-eth1`, .. in the order of its links. Where that is too long, all
interfaces of the node have a shortened name: `a-very-long-name` with two of them has `a-very-lon-eth0` and
`a-very-lon-eth1`. No two nodes have the same short name, so that an interface's name identifies its node in a
capture as in a table: of several nodes with the same first characters, the second one gets `a-very-l_2-eth0`.
"""

from __future__ import annotations

from collections.abc import Mapping

from plait.plan.model.plan import Plan

IFNAME_MAX = 15
"""Characters (IFNAMSIZ of linux/if.h, without the terminator)."""


def ifname(stem: str, index: int) -> str:
    """Return an interface's name, such as `h1-eth0`."""
    return f"{stem}-eth{index}"


def stems(interfaces: Mapping[str, int]) -> dict[str, str]:
    """Return the prefix of the interface names of each node; `interfaces` is the number of them by node."""
    room = {node: IFNAME_MAX - len(ifname("", max(count - 1, 0))) for node, count in interfaces.items()}
    chosen = {node: node for node, most in room.items() if len(node) <= most}
    taken = set(chosen)
    for node, most in room.items():
        if node not in chosen:
            chosen[node] = _shortened(node, most, taken)
            taken.add(chosen[node])
    return chosen


def _shortened(node: str, most: int, taken: set[str]) -> str:
    """Return the first characters of a name, with a number if another node has the same ones."""
    stem, number = node[:most], 1
    while stem in taken:
        number += 1
        tail = f"_{number}"
        stem = node[: most - len(tail)] + tail
    return stem


def mapped(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return, by node, the interfaces of the nodes whose names are too long."""
    renamed: dict[str, list[str]] = {
        space.name: [] for space in plan.network.namespaces if space.role != "wire"
    }
    for end in (end for veth in plan.network.veths for end in (veth.a, veth.b)):
        if end.netns in renamed and not end.ifname.startswith(f"{end.netns}-eth"):
            renamed[end.netns].append(end.ifname)
    return {node: tuple(names) for node, names in renamed.items() if names}


def renamed_interfaces(plan: Plan) -> list[str]:
    """Return a line for each node whose interface names differ from its own name."""
    return [
        f"the interfaces of {node} are called {', '.join(names[:4])}{', ..' if len(names) > 4 else ''}: Linux allows "
        f"{IFNAME_MAX} characters"
        for node, names in mapped(plan).items()
    ]
