"""Traffic of data centres: everybody to everybody, many to one, towards hot spots, and transfers that arrive at random.

    all-to-all: {each: ENTRY}                     every host sends to every other
    incast: {senders: 32, each: ENTRY}            32 drawn hosts send to one at the same time
    hotspot: {spots: 2, share: 50%, each: ENTRY}  every host sends; half of them send to one of two drawn hosts
    arrivals: {load: 40%, rate: 100mbit, sizes: web-search, duration: 1s}

The draws depend on the seed alone (SHA-256), on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import islice, pairwise, permutations
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from plait.parts import Length, Part, Whole
from plait.scenario.generators.patterns import MAX_FLOWS, FlowGenerator, Names, Seed, chosen
from plait.seeds import SEED_BITS, derived
from plait.units import Rate, Ratio, Size

WEB_SEARCH = (
    ("10kB", 0.15), ("20kB", 0.2), ("30kB", 0.3), ("50kB", 0.4), ("80kB", 0.53), ("200kB", 0.6), ("1MB", 0.7),
    ("2MB", 0.8), ("5MB", 0.9), ("10MB", 0.97), ("30MB", 1.0),
)  # fmt: skip
"""Sizes of the background flows of a cluster for web search: Alizadeh et al., "Data Center TCP" (SIGCOMM 2010),
figure 4, in the points that most later papers use. Their mean is 1.7 MB."""
DATA_MINING = (
    ("180B", 0.1), ("216B", 0.2), ("560B", 0.3), ("900B", 0.4), ("1100B", 0.5), ("1870B", 0.6), ("3160B", 0.7),
    ("10kB", 0.8), ("400kB", 0.9), ("3160kB", 0.95), ("100MB", 0.98), ("1GB", 1.0),
)  # fmt: skip
"""Sizes of the flows of a cluster for data mining: Greenberg et al., "VL2" (SIGCOMM 2009), figure 2, in the points
that most later papers use. Their mean is 12.7 MB, because a fiftieth of the flows has 100 MB and more."""
CLASSES = ((100_000, "small"), (10_000_000, "medium"), (None, "large"))
"""The largest size of each class in bytes: Alizadeh et al., "pFabric" (SIGCOMM 2013), section 5."""


def _uniform(seed: int, *purpose: object) -> float:
    """Return a number from 0 to below 1."""
    return derived(seed, *purpose) / float(2**SEED_BITS)


def _one_of(names: Sequence[str], seed: int, *purpose: object) -> str:
    return names[derived(seed, *purpose) % len(names)]


def _another(names: Sequence[str], own: int, seed: int, *purpose: object) -> str:
    """Return one of the names but the one at the place `own`."""
    place = derived(seed, *purpose) % (len(names) - 1)
    return names[place + (place >= own)]


class AllToAll(FlowGenerator):
    """Each host sends to each other host."""

    hosts: Names = ["*"]

    def ends(self, hosts: Sequence[str]) -> list[tuple[str, str]]:
        """Return (from, to) of every flow; where there are too many, one more than the limit allows."""
        return list(islice(permutations(chosen(self.hosts, hosts), 2), MAX_FLOWS + 1))


class Incast(FlowGenerator):
    """Several hosts send to one host at the same time."""

    seed: Seed = 1
    hosts: Names = ["*"]
    to: str | None = None
    """Receiving host. Default: the seed draws it."""
    senders: Annotated[Whole, Field(ge=1)] | None = None
    """Number of sending hosts, which the seed draws. Default: all but the receiver."""

    def ends(self, hosts: Sequence[str]) -> list[tuple[str, str]]:
        """Return (from, to) of every flow. Raises ValueError with the problem and the remedy."""
        named = chosen(self.hosts, hosts)
        receiver = chosen([self.to], hosts)[0] if self.to is not None else _one_of(named, self.seed, "incast")
        others = [name for name in named if name != receiver]
        if not others or (self.senders or 0) > len(others):
            raise ValueError(
                f"{len(others)} hosts can send to {receiver}, and the incast needs {self.senders or 1}; "
                "name more hosts, or write fewer senders"
            )
        drawn = sorted(others, key=lambda name: derived(self.seed, "incast", name))[: self.senders]
        return [(name, receiver) for name in others if name in set(drawn)]


class Hotspot(FlowGenerator):
    """Each host sends to one other, which is often one of a few hot spots."""

    seed: Seed = 1
    hosts: Names = ["*"]
    spots: Annotated[Whole, Field(ge=1)] = 1
    """Number of hot spots, which the seed draws from the hosts."""
    share: Ratio = Ratio.parse("50%")
    """Probability that a host sends to a hot spot; else it sends to any other host, all equally likely."""

    def ends(self, hosts: Sequence[str]) -> list[tuple[str, str]]:
        """Return (from, to) of every flow. Raises ValueError with the problem and the remedy."""
        named = chosen(self.hosts, hosts)
        if len(named) < 2 or self.spots > len(named):
            raise ValueError(
                f"{len(named)} hosts are too few for {self.spots} hot spots and flows between two hosts; "
                "name more hosts, or write fewer spots"
            )
        spots = sorted(named, key=lambda name: derived(self.seed, "spot", name))[: self.spots]
        return list(self._drawn(named, spots))

    def _drawn(self, named: Sequence[str], spots: Sequence[str]) -> Iterator[tuple[str, str]]:
        for place, host in enumerate(named):
            hot = [spot for spot in spots if spot != host]
            if hot and _uniform(self.seed, "hot", host) < self.share:
                yield host, _one_of(hot, self.seed, "to", host)
            else:
                yield host, _another(named, place, self.seed, "to", host)


class SizePoint(Part):
    """A point of a distribution of sizes."""

    bytes: Size
    share: Ratio
    """Share of the flows that have at most this many bytes."""


class Arrivals(FlowGenerator):
    """Transfers of random sizes between random hosts, which start at random times, at a given load.

    The times are a Poisson process. Each flow's ends are any two hosts, all pairs equally likely. Sizes are linear
    between the points of their distribution, below the first one from 1 byte on. So n hosts start
    n * load * rate / (8 * mean size) flows a second. Each flow belongs to a group by its size: `small` (to 100 kB),
    `medium` (to 10 MB), `large`.
    """

    NAMED: ClassVar[dict[str, Sequence[tuple[str, float]]]] = {
        "web-search": WEB_SEARCH,
        "data-mining": DATA_MINING,
    }

    seed: Seed = 1
    hosts: Names = ["*"]
    load: Annotated[Ratio, Field(gt=0)]
    """Mean traffic that a host sends, as a share of `rate`; headers do not count."""
    rate: Rate
    """Rate of the link of each host."""
    sizes: (
        Literal["web-search", "data-mining"] | Annotated[list[SizePoint], Field(min_length=1, max_length=100)]
    ) = "web-search"
    """Distribution of the sizes: a published one, or points `{bytes: 10kB, share: 15%}`."""
    duration: Length
    """Time in which flows start."""
    each: dict[str, Any] = {"transfer": {}}
    """Entry of the traffic without `from`, `to`, `bytes` and `start`: `{transfer: {transport: tcp}}`."""

    @field_validator("sizes")
    @classmethod
    def _ascending(cls, value: str | list[SizePoint]) -> str | list[SizePoint]:
        if isinstance(value, str):
            return value
        rising = all(a.bytes < b.bytes and a.share < b.share for a, b in pairwise(value))
        if not rising or float(value[-1].share) != 1 or value[0].bytes < 1:
            raise ValueError(
                "sizes and shares must rise from point to point, from 1 byte on and up to 100 %; order the points"
            )
        return value

    def points(self) -> list[tuple[int, float]]:
        """Return the points of the distribution: the size in bytes, and the share of flows of at most this size."""
        if isinstance(self.sizes, str):
            return [(1, 0.0), *((int(Size.parse(size)), share) for size, share in self.NAMED[self.sizes])]
        return [(1, 0.0), *((int(point.bytes), float(point.share)) for point in self.sizes)]

    @property
    def mean_bytes(self) -> float:
        """The mean size in bytes: the area left of the distribution, linear between its points."""
        return sum((a + b) / 2 * (q - p) for (a, p), (b, q) in pairwise(self.points()))

    def flows(self, hosts: Sequence[str]) -> list[tuple[str, str, dict[str, Any]]]:
        """Return (from, to, {name, bytes, start, group}) of every flow; see FlowGenerator."""
        if list(self.each) != ["transfer"]:
            raise ValueError(
                "each must be a transfer, whose size is drawn; write for example each: {transfer: {}}"
            )
        own = [name for name in ("name", "bytes", "file", "start") if name in self.each["transfer"]]
        if own:
            raise ValueError(
                f"the arrivals set names, sizes and starts themselves; remove {own[0]} from each"
            )
        named = chosen(self.hosts, hosts)
        if len(named) < 2:
            raise ValueError(f"{named[0]} is the only host, and flows need two; name more hosts")
        flows = [
            self._flow(named, number, start_us)
            for number, start_us in enumerate(islice(self._starts_us(len(named)), MAX_FLOWS + 1))
        ]
        if not flows:
            raise ValueError(
                "no flow starts in this time; write a longer duration, a higher load or another seed"
            )
        return flows

    def _flow(self, named: Sequence[str], number: int, start_us: int) -> tuple[str, str, dict[str, Any]]:
        place = derived(self.seed, "from", number) % len(named)
        sender, receiver = named[place], _another(named, place, self.seed, "to", number)
        size = self._size(_uniform(self.seed, "size", number))
        group = next(name for most, name in CLASSES if most is None or size <= most)
        fields = {"name": f"arrival{number + 1}", "bytes": f"{size}B", "group": group}
        return sender, receiver, {**fields, "start": f"{start_us}us", "start_jitter": "0s"}

    def _starts_us(self, hosts: int) -> Iterator[int]:
        """Yield the starts, in microseconds; the mean time between two of them is 8 * mean size / (n * load * rate)."""
        mean_us = Decimal(8e6 * self.mean_bytes / (hosts * float(self.load) * int(self.rate)))
        now, number = Decimal(0), 0
        while True:
            # Decimal.ln is rounded correctly everywhere, and a C library's log is not
            now -= mean_us * (1 - Decimal(_uniform(self.seed, "start", number))).ln()
            if now >= self.duration.us:
                return
            yield int(now)
            number += 1

    def _size(self, share: float) -> int:
        """Return the size that this share of the flows does not exceed."""
        for (a, p), (b, q) in pairwise(self.points()):
            if share <= q:
                return max(1, round(a + (b - a) * (share - p) / (q - p)))
        raise AssertionError("the last share is 1")
