"""Equal peers, each with a link to each of a few switches."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plait.parts import Delay, Whole
from plait.scenario.generators.base import Description, Generator, Options
from plait.units import Rate


class Swarm(Generator):
    """Hosts `seeder`, and `peer1`, `peer2`, ..: each has a link to every one of the switches `s1`, `s2`, .."""

    SIZE: ClassVar[str] = "n"
    TRAFFIC: ClassVar[list[Options]] = [{"permutation": {"each": {"bulk": {"duration": "10s"}}}}]

    generator: Literal["swarm"] = "swarm"
    n: Annotated[Whole, Field(ge=1)] = 8
    """Number of peers, without the seeder."""
    lines: Annotated[Whole, Field(ge=1, le=8)] = 2
    """Number of links of each host, and of switches; a host has at most 8 endpoints."""
    rate: Rate = Rate.parse("20mbit")
    """Rate of each link, in each direction."""
    delay: Delay = Delay.parse("5ms")
    """One-way delay of each link; between two peers it is twice as much."""

    def count_links(self) -> int:
        """Return the links of all hosts."""
        return (self.n + 1) * self.lines

    def describe(self) -> Description:
        """Return the network, with the first link of each host as its initial path."""
        out = Description()
        out.add_hosts("seeder", *(f"peer{i + 1}" for i in range(self.n)))
        out.add_switches(*(f"s{i + 1}" for i in range(self.lines)))
        for host in out.hosts:
            for switch in out.switches:
                out.join(host, switch, rate=self.rate, delay=self.delay)
        return out
