"""Instances of a cloud: a client and a server with two interfaces each, two Internet paths, and a burst allowance.

The study (bulk transfers between instances, MPTCP on Linux 6.12) published five mean goodputs. Everything else here is
an assumption: rates are those with which TCP reaches the published goodput, delays are half of usual RTTs from Japan.
In the regions where MPTCP gained nothing, single transfers took much longer; its authors suspected the provider's burst
allowance, a token bucket of the instance, of unknown size. With a baseline of half of a path's rate and a bucket of 240
MB, ten transfers of 45 MB by TCP (471 MB with headers) just empty it, and ten by MPTCP, twice as fast at first, take
as long as TCP in total: 2/3 of the bytes at twice the rate, 1/3 at half of it.
"""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

from plait.parts import Delay
from plait.scenario.generators.base import Description, Generator, Options
from plait.scenario.mistakes import FieldMistake
from plait.units import Rate, Size


class _Region(NamedTuple):
    """The paths between a client and an instance in a region, and the published goodputs."""

    rate: str
    """Rate of each of two paths."""
    delay: str
    """One-way delay."""
    published: tuple[float, float] | None
    """Mean goodput in Mbit/s of ten transfers of 45 MB by TCP and by MPTCP; None if not published."""
    spent: bool = False
    """Whether the burst allowance keeps MPTCP from a gain."""


REGIONS: dict[str, _Region] = {
    "fixed-10m": _Region("10mbit", "500us", (9.4, 18.4)),
    "ap-northeast-1": _Region("58mbit", "3ms", (55.5, 55.7), spent=True),
    "us-west-2": _Region("14600kbit", "55ms", (13.9, 26.3)),
    "us-east-1": _Region("9500kbit", "80ms", (8.9, 19.7)),
    "sa-east-1": _Region("16100kbit", "130ms", (15.2, 14.5), spent=True),
    "ap-southeast-1": _Region("20mbit", "35ms", None),
    "ap-south-1": _Region("15mbit", "65ms", None),
    "ap-southeast-2": _Region("15mbit", "55ms", None),
    "eu-central-1": _Region("10mbit", "115ms", None),
    "eu-west-1": _Region("10mbit", "105ms", None),
}
"""Regions by the cloud's name, and the local network of the same study."""
RegionName = Literal[
    "fixed-10m", "ap-northeast-1", "us-west-2", "us-east-1", "sa-east-1", "ap-southeast-1", "ap-south-1",
    "ap-southeast-2", "eu-central-1", "eu-west-1",
]  # fmt: skip


class Regions(Generator):
    """A `client` and a `server` in a region of a cloud, with two interfaces each and an Internet path between them.

    The server's interfaces may share one token bucket.
    """

    SIZE: ClassVar[str] = "region"
    TRAFFIC: ClassVar[list[Options]] = [{"transfer": {"from": "client", "to": "server", "bytes": "45MB"}}]

    generator: Literal["regions"] = "regions"
    region: RegionName = "fixed-10m"
    """Region of the server."""
    rate: Rate | None = None
    """Rate of each path. Default: the region's."""
    delay: Delay | None = None
    """One-way delay. Default: the region's."""
    burst: Size | None = None
    """Capacity of the instance's bucket. Default: 240 MB in regions where MPTCP gained nothing, no bucket elsewhere."""
    baseline: Rate | None = None
    """Fill rate of the bucket. Default: half of a path's rate."""

    def mistakes(self) -> list[FieldMistake]:
        """Return a mistake for a baseline without a bucket."""
        if self.baseline is not None and self.burst is None and not REGIONS[self.region].spent:
            message = f"{self.region} has no bucket, which baseline needs; add burst, or remove baseline"
            return [(("baseline",), message)]
        return []

    def describe(self) -> Description:
        """Return the network; the bucket limits the server in each direction, with both paths' rate as its peak."""
        region = REGIONS[self.region]
        rate, delay = self.rate or Rate.parse(region.rate), self.delay or Delay.parse(region.delay)
        net = Description()
        net.add_hosts("client", "server")
        if self.burst is not None or region.spent:
            net.hosts["server"]["bucket"] = {
                "baseline": str(self.baseline or Rate.parse(f"{int(rate) // 2}bit")),
                "peak": str(Rate.parse(f"{2 * int(rate)}bit")),
                "burst": str(self.burst or Size.parse("240MB")),
            }
        net.add_routers("isp1", "isp2")
        for isp in net.routers:
            net.join("client", isp, rate=rate, delay=delay)
            net.join(isp, "server")
        return net
