"""Networks of multihomed devices: a phone, a home with two lines, hosts behind a NAT gateway."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plait.parts import Delay, Whole
from plait.scenario.generators.base import Delays, Description, Generator, Options, numbered, of_path
from plait.scenario.mistakes import FieldMistake
from plait.units import Queue, Rate, Ratio


class WifiCellular(Generator):
    """A `phone` with Wi-Fi (router `wifi`) and a cellular link (router `cell`), and a `server` behind both."""

    SIZE: ClassVar[str] = "generator"
    TRAFFIC: ClassVar[list[Options]] = [
        {"bulk": {"from": "server", "to": "phone", "reverse": True, "duration": "20s"}}
    ]

    generator: Literal["wifi-cellular"] = "wifi-cellular"
    wifi_rate: Rate = Rate.parse("30mbit")
    """Rate of the Wi-Fi link, in each direction."""
    wifi_delay: Delay = Delay.parse("10ms")
    """One-way delay of the Wi-Fi link."""
    wifi_jitter: Delay | None = None
    """Jitter of the Wi-Fi link."""
    wifi_loss: Ratio | None = None
    """Loss ratio of the Wi-Fi link."""
    cellular_rate: Rate = Rate.parse("20mbit")
    """Downlink rate of the cellular link, to the phone."""
    cellular_up_rate: Rate = Rate.parse("8mbit")
    """Uplink rate of the cellular link."""
    cellular_delay: Delay = Delay.parse("35ms")
    """One-way delay of the cellular link."""
    cellular_queue: Queue = Queue.parse("1MB")
    """Downlink queue of the cellular link; cellular networks have long queues."""
    core_delay: Delay = Delay.parse("5ms")
    """One-way delay between the access networks and the server."""

    def describe(self) -> Description:
        """Return the network, with Wi-Fi as the initial path."""
        net = Description()
        net.add_hosts("phone", "server")
        net.add_routers("wifi", "cell", "core")
        net.join(
            "wifi",
            "phone",
            rate=self.wifi_rate,
            delay=self.wifi_delay,
            jitter=self.wifi_jitter,
            loss=self.wifi_loss,
        )
        net.join(
            "cell",
            "phone",
            rate=self.cellular_rate,
            delay=self.cellular_delay,
            forward={"queue": self.cellular_queue},
            backward={"rate": self.cellular_up_rate},
        )
        net.join("core", "wifi")
        net.join("core", "cell")
        net.join("server", "core", delay=self.core_delay)
        return net


class TwoWans(Generator):
    """A `home` with two lines (routers `fibre` and `vdsl`), and a host `cloud` with one address."""

    SIZE: ClassVar[str] = "generator"
    TRAFFIC: ClassVar[list[Options]] = [{"bulk": {"from": "home", "to": "cloud", "duration": "20s"}}]

    generator: Literal["two-wans"] = "two-wans"
    fibre_rate: Rate = Rate.parse("230mbit")
    """Downlink rate of the fibre line, to the home."""
    fibre_up_rate: Rate | None = None
    """Uplink rate of the fibre line. Default: as downlink."""
    fibre_delay: Delay = Delay.parse("5ms")
    """One-way delay of the fibre line."""
    vdsl_rate: Rate = Rate.parse("80mbit")
    """Downlink rate of the VDSL line, to the home."""
    vdsl_up_rate: Rate | None = None
    """Uplink rate of the VDSL line. Default: as downlink."""
    vdsl_delay: Delay = Delay.parse("12ms")
    """One-way delay of the VDSL line."""
    cloud_delay: Delay = Delay.parse("1ms")
    """One-way delay between the lines and the cloud."""

    def describe(self) -> Description:
        """Return the network, with the fibre line as the initial path."""
        net = Description()
        net.add_hosts("home", "cloud")
        net.add_routers("fibre", "vdsl", "internet")
        for line in ("fibre", "vdsl"):
            up = getattr(self, f"{line}_up_rate")
            net.join(
                "home",
                line,
                rate=getattr(self, f"{line}_rate"),
                delay=getattr(self, f"{line}_delay"),
                forward={"rate": up} if up is not None else None,
            )
        net.join("fibre", "internet")
        net.join("vdsl", "internet")
        net.join("internet", "cloud", delay=self.cloud_delay)
        return net


class BehindNat(Generator):
    """Hosts `ns1` and `ns2`: local paths through routers `r1`, `r2`, .., and one through their default gateway `nat`.

    The gateway represents the global Internet, with a low rate and a long delay, and a NAT: `tracker` is a host
    outside, which sees both hosts under the gateway's address and cannot connect to them. Between `ns1` and `ns2`,
    both inside, the gateway only forwards.
    """

    SIZE: ClassVar[str] = "local_paths"
    TRAFFIC: ClassVar[list[Options]] = [{"bulk": {"from": "ns1", "to": "ns2", "duration": "10s"}}]

    generator: Literal["behind-nat"] = "behind-nat"
    local_paths: Annotated[Whole, Field(ge=1, le=7)] = 2
    """Number of local paths."""
    local_rate: Rate = Rate.parse("50mbit")
    """Rate of each local path."""
    local_delays: Delays = [Delay.parse("2ms")]
    """One-way delay of each local path, or one for all; each of its two links has half of it."""
    global_rate: Rate = Rate.parse("5mbit")
    """Rate of the path through the gateway."""
    global_delay: Delay = Delay.parse("50ms")
    """One-way delay of the path through the gateway; each of its two links has half of it."""
    tracker_delay: Delay = Delay.parse("10ms")
    """One-way delay between the gateway and the host outside."""

    def mistakes(self) -> list[FieldMistake]:
        """Return a mistake unless there is one delay, or one for each local path."""
        return self.not_for_each(self.local_paths, "local paths", "local_delays")

    def describe(self) -> Description:
        """Return the network, with the first local path as the initial one; `via: ns1-nat` selects the global one."""
        net = Description()
        net.add_hosts("ns1", "ns2", "tracker")
        net.add_routers(*numbered("r", self.local_paths))
        net.add_routers("nat", nat=["nat-tracker"])
        for i, router in enumerate(numbered("r", self.local_paths)):
            whole = int(of_path(self.local_delays, i))
            net.join("ns1", router, rate=self.local_rate, delay=Delay(whole // 2))
            net.join(router, "ns2", rate=self.local_rate, delay=Delay(whole - whole // 2))
        whole = int(self.global_delay)
        net.join("ns1", "nat", rate=self.global_rate, delay=Delay(whole // 2))
        net.join("nat", "ns2", rate=self.global_rate, delay=Delay(whole - whole // 2))
        net.join("nat", "tracker", delay=self.tracker_delay)
        return net
