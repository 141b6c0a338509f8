"""Entries that expand to several: traffic generators, and groups of programs.

    permutation: {seed: 1, hosts: "*", each: ENTRY}     every host sends to one other and receives from one other
    pairs: {from: "sender*", to: "receiver*", each: ENTRY}   the first to the first, the second to the second, ..
    {name: download, node: "peer*", transport: [mptcp, tcp], run: ..}   `download-peer1` over MPTCP, ..

ENTRY is an entry of the traffic without its ends: `{bulk: {duration: 10s}}`. The result are plain entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from plait.scenario.generators.data_centre import AllToAll, Arrivals, Hotspot, Incast
from plait.scenario.generators.patterns import FlowGenerator, Names, Seed, chosen


class Permutation(FlowGenerator):
    """Each host sends to exactly one other and receives from exactly one other, none to itself."""

    seed: Seed = 1
    hosts: Names = ["*"]

    def ends(self, hosts: Sequence[str]) -> list[tuple[str, str]]:
        """Return (from, to) of every flow. Raises ValueError with the problem and the remedy."""
        named = chosen(self.hosts, hosts)
        if len(named) < 2:
            raise ValueError(
                f"a permutation needs two hosts, but {named[0]} is the only one; name more hosts"
            )
        return list(zip(named, derangement(named, self.seed), strict=True))


class Pairs(FlowGenerator):
    """Pairs of a host of one side and a host of the other, in the order of the file; a single host pairs with all."""

    from_: Names = Field(alias="from")
    """Sending hosts."""
    to: Names
    """Receiving hosts."""

    def ends(self, hosts: Sequence[str]) -> list[tuple[str, str]]:
        """Return (from, to) of every flow. Raises ValueError with the problem and the remedy."""
        senders, receivers = chosen(self.from_, hosts), chosen(self.to, hosts)
        if len(senders) == 1:
            senders = senders * len(receivers)
        if len(receivers) == 1:
            receivers = receivers * len(senders)
        if len(senders) != len(receivers):
            raise ValueError(
                f"there are {len(senders)} sending hosts and {len(receivers)} receiving hosts; "
                "write equal numbers, or a single host on one side"
            )
        return list(zip(senders, receivers, strict=True))


KINDS: dict[str, type[FlowGenerator]] = {
    "permutation": Permutation,
    "pairs": Pairs,
    "all-to-all": AllToAll,
    "incast": Incast,
    "hotspot": Hotspot,
    "arrivals": Arrivals,
}


def derangement(names: Sequence[str], seed: int) -> list[str]:
    """Return a random permutation of the names without fixed points, from a uniform distribution.

    It repeats Fisher-Yates shuffles until there is no fixed point: 2.7 times on average, because a fraction 1/e of all
    permutations has none. The order depends only on the seed (SHA-256), on every machine.
    """
    round_ = 0
    while True:
        order = list(names)
        for last in range(len(order) - 1, 0, -1):
            other = _number(seed, round_, last) % (last + 1)
            order[last], order[other] = order[other], order[last]
        if all(a != b for a, b in zip(names, order, strict=True)):
            return order
        round_ += 1


def _number(seed: int, round_: int, step: int) -> int:
    """Return 64 pseudo-random bits that depend only on the arguments."""
    from hashlib import sha256

    return int.from_bytes(sha256(f"permutation {seed} {round_} {step}".encode()).digest()[:8], "big")


MAX_PROGRAMS = 256


def is_group(entry: Any) -> bool:
    """Return whether an entry describes several programs."""
    node = entry.get("node") if isinstance(entry, dict) else None
    return isinstance(node, list) or (isinstance(node, str) and any(sign in node for sign in "*?["))


def programs_of(entry: dict[str, Any], nodes: Sequence[str]) -> list[dict[str, Any]]:
    """Return an entry for each program of a group; a list of transports applies to the programs in turn.

    Raises ValueError with the problem and the remedy.
    """
    patterns = entry["node"] if isinstance(entry["node"], list) else [entry["node"]]
    if not patterns:
        raise ValueError("the list is empty; write nodes, or a pattern such as peer*")
    names = chosen([str(pattern) for pattern in patterns], nodes, "host or router")
    if len(names) > MAX_PROGRAMS:
        raise ValueError(
            f"these are {len(names)} programs, and at most {MAX_PROGRAMS} are possible; name fewer nodes"
        )
    out = []
    for i, node in enumerate(names):
        program = {**entry, "node": node}
        if isinstance(entry.get("transport"), list) and entry["transport"]:
            program["transport"] = entry["transport"][i % len(entry["transport"])]
        if entry.get("name") is not None:
            program["name"] = f"{entry['name']}-{node}"
        out.append(program)
    return out


def after_groups(entry: Any, groups: Mapping[str, Sequence[str]]) -> Any:
    """Return the entry, with each name of a group under `after` replaced by the names of its programs."""
    after = entry.get("after") if isinstance(entry, dict) else None
    names = [after] if isinstance(after, str) else after
    if not isinstance(names, list) or not any(str(name) in groups for name in names):
        return entry
    return {**entry, "after": [member for name in names for member in groups.get(str(name), [name])]}
