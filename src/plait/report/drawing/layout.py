"""Where the nodes of a network go in its drawing: from the clients at the left to the servers at the right.

    across: a node's place is its distance from the nearest client, as a share of the way on to the nearest server
    down:   every path has a lane of its own; a node is in the middle of the lanes of the paths through it

So paths of different lengths run beside each other, and what they share lies between them. What no path crosses
is drawn too when there is little of it, and otherwise left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plait.plan.model.links import Link
from plait.plan.model.plan import Flow, Path, Plan

SPREAD_ROUNDS = 4
FEW_IDLE = 3
"""Largest number of nodes off all paths that are drawn; more would hide what matters."""


@dataclass(frozen=True)
class Layout:
    """The places of all nodes: `across` from 0 to 1, `down` in lanes from 0."""

    across: dict[str, float]
    down: dict[str, float]
    columns: int
    """Nodes along the longest path."""
    lanes: float
    """The lowest place down."""
    left_out: int
    """Nodes that no path crosses and that are not drawn."""


def layout(plan: Plan) -> Layout:
    """Return the places of the nodes of the plan; `wire` is none."""
    everything = list(roles_of(plan))
    crossed = {node for _, path in distinct_paths(plan) for node in node_path(plan, path)}
    idle = [node for node in everything if node not in crossed]
    nodes = [node for node in everything if node in crossed or not crossed or len(idle) <= FEW_IDLE]
    near = neighbours(nodes, map(ends_of, plan.links))
    left, right = sides(plan, nodes)
    columns = across(nodes, distances(near, left), distances(near, right))
    down = _lanes_of(plan, nodes, near)
    _spread(columns, down)
    top = min(down.values(), default=0.0)
    down = {node: place - top for node, place in down.items()}
    longest = max((len(node_path(plan, path)) for _, path in distinct_paths(plan)), default=2)
    return Layout(columns, down, longest, max(down.values(), default=0.0), len(everything) - len(nodes))


def roles_of(plan: Plan) -> dict[str, str]:
    """Return the role of each node of the plan by name; `wire` is none."""
    return {space.name: space.role for space in plan.network.namespaces if space.role != "wire"}


def ends_of(link: Link) -> tuple[str, str]:
    """Return the nodes at the ends of a link, the source of its first direction first."""
    return link.directions[0].source, link.directions[0].target


def neighbours(nodes: Iterable[str], pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the neighbours of each of these nodes among them, once for each pair."""
    near: dict[str, list[str]] = {node: [] for node in nodes}
    for a, b in pairs:
        if a in near and b in near:
            near[a].append(b)
            near[b].append(a)
    return near


def node_path(plan: Plan, path: Path) -> list[str]:
    """Return the nodes along a path, from the sending side to the receiving one."""
    steps = [plan.directions[name] for name in path.forward]
    return [steps[0].source, *(step.target for step in steps)] if steps else []


def distinct_paths(plan: Plan) -> list[tuple[Flow, Path]]:
    """Return every flow with each of its paths, without those that only repeat the same links."""
    distinct: dict[frozenset[str], tuple[Flow, Path]] = {}
    for flow in plan.flows:
        for path in flow.paths:
            distinct.setdefault(frozenset((*path.forward, *path.backward)), (flow, path))
    return list(distinct.values())


def sides(plan: Plan, nodes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the hosts at the left and at the right: clients and servers, as the first flow has them.

    A flow that runs against an earlier one has its server at the left.
    """
    if not plan.flows:
        return list(nodes[:1]), list(nodes[-1:])
    left: list[str] = []
    right: list[str] = []
    for flow in plan.flows:
        left_end, right_end = flow.client.netns, flow.server.netns
        if left_end in right or right_end in left:
            left_end, right_end = right_end, left_end
        if left_end not in right:
            left.append(left_end)
        if right_end not in left:
            right.append(right_end)
    return left, right


def distances(near: dict[str, list[str]], sources: Iterable[str]) -> dict[str, int]:
    """Return each node's number of links to the nearest source (breadth first)."""
    steps = dict.fromkeys(sources, 0)
    edge = list(steps)
    while edge:
        edge = [
            n
            for node in edge
            for n in near.get(node, ())
            if n not in steps and steps.setdefault(n, steps[node] + 1)
        ]
    return steps


def across(
    nodes: Sequence[str], from_clients: dict[str, int], from_servers: dict[str, int]
) -> dict[str, float]:
    """Return places from 0 (clients) to 1 (servers); what is connected to neither is in the middle."""
    places = {}
    for node in nodes:
        total = from_clients.get(node, 0) + from_servers.get(node, 0)
        is_inner = node in from_clients and node in from_servers and total > 0
        places[node] = (
            round(from_clients[node] / total, 3) if is_inner else (0.0 if node in from_clients else 0.5)
        )
    return places


def _lanes_of(plan: Plan, nodes: Sequence[str], near: dict[str, list[str]]) -> dict[str, float]:
    """Return each node's lane: the mean of the paths through it, else one beyond them, on its neighbours' side."""
    lanes: dict[str, list[int]] = {node: [] for node in nodes}
    paths = distinct_paths(plan)
    for lane, (_, path) in enumerate(paths):
        for node in node_path(plan, path):
            lanes[node].append(lane)
    down = {node: sum(used) / len(used) for node, used in lanes.items() if used}
    middle = (len(paths) - 1) / 2
    for extra, node in enumerate(node for node in nodes if node not in down):
        lanes_near = [down[n] for n in near[node] if n in down]
        is_upper = bool(lanes_near) and sum(lanes_near) / len(lanes_near) < middle
        down[node] = -0.9 if is_upper else len(paths) - 0.1 + (0 if lanes_near else extra)
    return down


def _spread(across: dict[str, float], down: dict[str, float]) -> None:
    """Move nodes of a column that are closer than a lane apart, about their common middle."""
    for _ in range(SPREAD_ROUNDS):
        for place in sorted(set(across.values())):
            column = sorted((node for node in across if across[node] == place), key=lambda node: down[node])
            if len(column) < 2:
                continue
            middle_before = sum(down[node] for node in column) / len(column)
            for upper, lower in pairwise(column):
                down[lower] = max(down[lower], down[upper] + 0.9)
            shift = sum(down[node] for node in column) / len(column) - middle_before
            for node in column:
                down[node] -= shift
