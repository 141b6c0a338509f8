"""Two access networks of one device: a phone, a home with two lines, hosts behind a gateway, instances of a cloud."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from plait.scenario.generators.base import Description, Generator, Options
from plait.scenario.parts import Delay, Whole
from plait.units import Queue, Rate, Ratio


class WifiCellular(Generator):
    """A `phone` with Wi-Fi (router `wifi`) and a mobile line (router `cell`), and a `server` behind both."""

    SIZE: ClassVar[str] = "generator"
    TRAFFIC: ClassVar[list[Options]] = [
        {"bulk": {"from": "server", "to": "phone", "reverse": True, "duration": "20s"}}
    ]

    generator: Literal["wifi-cellular"] = "wifi-cellular"
    wifi_rate: Rate = Rate.parse("30mbit")
    wifi_delay: Delay = Delay.parse("10ms")
    """One way."""
    wifi_jitter: Delay | None = None
    wifi_loss: Ratio | None = None
    cellular_rate: Rate = Rate.parse("20mbit")
    """Down, to the phone."""
    cellular_up_rate: Rate = Rate.parse("8mbit")
    cellular_delay: Delay = Delay.parse("35ms")
    """One way."""
    cellular_queue: Queue = Queue.parse("1MB")
    """Down: mobile networks keep long queues."""
    core_delay: Delay = Delay.parse("5ms")
    """One way, between the access networks and the server."""

    def count_links(self) -> int:
        """Two of the phone, two of the access networks, one of the server."""
        return 5

    def describe(self) -> Description:
        """Wi-Fi is the initial path."""
        out = Description()
        out.add_hosts("phone", "server")
        out.add_routers("wifi", "cell", "core")
        out.join(
            "wifi",
            "phone",
            rate=self.wifi_rate,
            delay=self.wifi_delay,
            jitter=self.wifi_jitter,
            loss=self.wifi_loss,
        )
        out.join(
            "cell",
            "phone",
            rate=self.cellular_rate,
            delay=self.cellular_delay,
            forward={"queue": self.cellular_queue},
            backward={"rate": self.cellular_up_rate},
        )
        out.join("core", "wifi")
        out.join("core", "cell")
        out.join("server", "core", delay=self.core_delay)
        return out


class TwoWans(Generator):
    """A `home` with two lines (routers `fibre` and `vdsl`) and a machine in the `cloud`, which has one address."""

    SIZE: ClassVar[str] = "generator"
    TRAFFIC: ClassVar[list[Options]] = [{"bulk": {"from": "home", "to": "cloud", "duration": "20s"}}]

    generator: Literal["two-wans"] = "two-wans"
    fibre_rate: Rate = Rate.parse("230mbit")
    """Down, to the home."""
    fibre_up_rate: Rate | None = None
    """Without, as down."""
    fibre_delay: Delay = Delay.parse("5ms")
    """One way."""
    vdsl_rate: Rate = Rate.parse("80mbit")
    """Down, to the home."""
    vdsl_up_rate: Rate | None = None
    """Without, as down."""
    vdsl_delay: Delay = Delay.parse("12ms")
    """One way."""
    cloud_delay: Delay = Delay.parse("1ms")
    """One way, between the lines and the cloud."""

    def count_links(self) -> int:
        """Two lines, what joins them, and the cloud."""
        return 5

    def describe(self) -> Description:
        """The faster line is the initial path."""
        out = Description()
        out.add_hosts("home", "cloud")
        out.add_routers("fibre", "vdsl", "internet")
        for line in ("fibre", "vdsl"):
            up = getattr(self, f"{line}_up_rate")
            out.join(
                "home",
                line,
                rate=getattr(self, f"{line}_rate"),
                delay=getattr(self, f"{line}_delay"),
                forward={"rate": up} if up is not None else None,
            )
        out.join("fibre", "internet")
        out.join("vdsl", "internet")
        out.join("internet", "cloud", delay=self.cloud_delay)
        return out


def _listed(value: object) -> object:
    return value if isinstance(value, (list, tuple)) or value is None else [value]


class BehindNat(Generator):
    """Hosts `ns1` and `ns2`: local paths through routers `r1`, `r2`, .., and one through their default gateway `nat`.

    The gateway stands for the global Internet: a low rate, and a long delay.
    """

    SIZE: ClassVar[str] = "local_paths"
    TRAFFIC: ClassVar[list[Options]] = [{"bulk": {"from": "ns1", "to": "ns2", "duration": "10s"}}]

    generator: Literal["behind-nat"] = "behind-nat"
    local_paths: Annotated[Whole, Field(ge=1, le=7)] = 2
    local_rate: Rate = Rate.parse("50mbit")
    local_delays: Annotated[
        list[Delay], BeforeValidator(_listed, json_schema_input_type=Delay | list[Delay])
    ] = [Delay.parse("2ms")]
    """One way, of each local path, or one for all; each of its two links has half of it."""
    global_rate: Rate = Rate.parse("5mbit")
    global_delay: Delay = Delay.parse("50ms")
    """One way, from host to host; each of the gateway's two links has half of it."""

    def mistakes(self) -> list[tuple[tuple[str | int, ...], str]]:
        """A list of delays has one value, or one for each local path."""
        if len(self.local_delays) in (1, self.local_paths):
            return []
        what = (
            f"there are {len(self.local_delays)} values for {self.local_paths} local paths; give one for each, "
            "or a single one"
        )
        return [(("local_delays",), what)]

    def count_links(self) -> int:
        """Two for each path."""
        return 2 * self.local_paths + 2

    def describe(self) -> Description:
        """The first local path is the initial one; `via: ns1-nat` chooses the global one."""
        out = Description()
        out.add_hosts("ns1", "ns2")
        out.add_routers(*(f"r{i + 1}" for i in range(self.local_paths)), "nat")
        for i in range(self.local_paths):
            whole = int(self.local_delays[i if len(self.local_delays) > 1 else 0])
            out.join("ns1", f"r{i + 1}", rate=self.local_rate, delay=Delay(whole // 2))
            out.join(f"r{i + 1}", "ns2", rate=self.local_rate, delay=Delay(whole - whole // 2))
        whole = int(self.global_delay)
        out.join("ns1", "nat", rate=self.global_rate, delay=Delay(whole // 2))
        out.join("nat", "ns2", rate=self.global_rate, delay=Delay(whole - whole // 2))
        return out


class Region(NamedTuple):
    """What joins a client with instances of a region: of each of two paths, and of the instance as a whole."""

    rate: str
    delay: str
    cap: str | None
    """The instance's baseline rate, where both interfaces together had no more than one; None where they had twice."""
    published: tuple[float, float] | None
    """Goodput in Mbit/s by TCP and by MPTCP, mean of ten transfers of 45 MB; None where none is at hand."""


REGIONS: dict[str, Region] = {
    "fixed-10m": Region("10mbit", "500us", None, (9.4, 18.4)),
    "ap-northeast-1": Region("58mbit", "3ms", "60mbit", (55.5, 55.7)),
    "us-west-2": Region("14600kbit", "55ms", None, (13.9, 26.3)),
    "us-east-1": Region("9500kbit", "80ms", None, (8.9, 19.7)),
    "sa-east-1": Region("16100kbit", "130ms", "16500kbit", (15.2, 14.5)),
    "ap-southeast-1": Region("20mbit", "35ms", None, None),
    "ap-south-1": Region("15mbit", "65ms", None, None),
    "ap-southeast-2": Region("15mbit", "55ms", None, None),
    "eu-central-1": Region("10mbit", "115ms", None, None),
    "eu-west-1": Region("10mbit", "105ms", None, None),
}
"""By the cloud's name. Rates of a path are those with which TCP reaches the published goodput. Where none is at
hand, and for all delays (half of usual round-trip times from Japan), the conditions are assumptions, to be replaced by
what was measured."""
RegionName = Literal[
    "fixed-10m", "ap-northeast-1", "us-west-2", "us-east-1", "sa-east-1", "ap-southeast-1", "ap-south-1",
    "ap-southeast-2", "eu-central-1", "eu-west-1",
]  # fmt: skip


class Regions(Generator):
    """A `client` with two interfaces, and a `server` in a region of a cloud, joined by two Internet paths.

    The paths have the region's rate and delay; where the published measurement saw no gain, they share the instance's.
    """

    SIZE: ClassVar[str] = "region"
    TRAFFIC: ClassVar[list[Options]] = [{"transfer": {"from": "client", "to": "server", "bytes": "45MB"}}]

    generator: Literal["regions"] = "regions"
    region: RegionName = "fixed-10m"
    rate: Rate | None = None
    """Of each path; without, the region's."""
    delay: Delay | None = None
    """One way; without, the region's."""
    cap: Rate | None = None
    """Of the instance, both interfaces together; without, the region's, if it has one."""

    def count_links(self) -> int:
        """Two paths and the instance's link."""
        return 3

    def describe(self) -> Description:
        """Both paths meet before the instance's link."""
        region = REGIONS[self.region]
        out = Description()
        out.add_hosts("client", "server")
        out.add_routers("internet")
        for _ in range(2):
            out.join("client", "internet", rate=self.rate or region.rate, delay=self.delay or region.delay)
        out.join("internet", "server", rate=self.cap or region.cap)
        return out
