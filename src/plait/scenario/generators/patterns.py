"""What generators of traffic share: the names of hosts, and entries between pairs of them."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import Field

from plait.parts import Listed, Part, Whole
from plait.scenario.wording import nearest

MAX_FLOWS = 4096
_NAME_MAX = 56

Names = Annotated[list[str], Listed, Field(min_length=1)]
"""Names of hosts, or patterns of names such as `sender*`."""
Seed = Annotated[Whole, Field(ge=0, lt=2**53)]
"""Seed of what is drawn; it is independent of the study's seed, so all trials of a case have the same."""


class FlowGenerator(Part):
    """Several flows that one entry of the traffic describes."""

    each: dict[str, Any]
    """Entry of the traffic without `from` and `to`: `{bulk: {duration: 10s}}`."""

    def ends(self, hosts: Sequence[str]) -> list[tuple[str, str]]:
        """Return (from, to) of every flow. Raises ValueError with the problem and the remedy."""
        raise NotImplementedError

    def flows(self, hosts: Sequence[str]) -> list[tuple[str, str, dict[str, Any]]]:
        """Return (from, to, fields of its own) of every flow. Raises ValueError with the problem and the remedy."""
        return [(a, b, {"name": f"{a}-{b}"[:_NAME_MAX]}) for a, b in self.ends(hosts)]

    def entries(self, kind: str, hosts: Sequence[str]) -> list[dict[str, Any]]:
        """Return the entries of the traffic that this generator of the kind `kind` makes.

        Raises ValueError with the problem and the remedy.
        """
        if len(self.each) != 1 or not isinstance(next(iter(self.each.values())), dict):
            raise ValueError(
                f"each must be one entry of the traffic without its ends, not {str(self.each)[:60]}; "
                "write for example each: {bulk: {duration: 10s}}"
            )
        ((entry, common),) = self.each.items()
        flows = self.flows(hosts)
        if len(flows) > MAX_FLOWS:
            raise ValueError(
                f"this {kind} has more than {MAX_FLOWS} flows; name fewer hosts, or ask for less traffic"
            )
        given = next((name for name in ("from", "to") if name in common), None)
        if given is not None:
            raise ValueError(f"the {kind} sets '{given}' itself; remove it from each")
        return [{entry: {**own, **common, "from": a, "to": b}} for a, b, own in flows]


def chosen(patterns: Sequence[str], hosts: Sequence[str], kind: str = "host") -> list[str]:
    """Return the matching names, each once, in the order of patterns and then of `hosts`.

    Raises ValueError for a pattern without a match.
    """
    names: dict[str, None] = {}
    for pattern in patterns:
        fitting = [host for host in hosts if fnmatchcase(host, pattern)]
        if not fitting:
            raise ValueError(f"no {kind} matches '{pattern[:40]}'; {nearest(pattern, hosts)}".rstrip("; "))
        names |= dict.fromkeys(fitting)
    return list(names)
