"""Networks between two sides: n disjoint paths, and a dumbbell with one bottleneck."""

from __future__ import annotations

from math import exp
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from plait.parts import Delay, Part, Whole
from plait.scenario.generators.base import (
    MAX_PATHS,
    Delays,
    Description,
    Generator,
    Options,
    numbered,
    of_path,
    one_for_all,
)
from plait.scenario.mistakes import FieldMistake
from plait.units import Queue, Rate, Ratio


class Sigmoid(Part):
    """Delays that follow a sigmoid over the paths x = 1, 2, ..: min + max / (1 + exp((x - half) / slope))."""

    min: Delay = Delay.parse("10ms")
    """Limit of the delay for a large x."""
    max: Delay = Delay.parse("200ms")
    """Range of the delay above `min`."""
    half: float = 3.0
    """The x with a delay of min + max / 2."""
    slope: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Scale of x; the delay falls slower for a larger slope."""

    def delay_of(self, x: int) -> Delay:
        """Return the delay of path x, to the nanosecond."""
        power = min((x - self.half) / self.slope, 700.0)
        return Delay(round(int(self.min) + int(self.max) / (1 + exp(power))))


class NPaths(Generator):
    """Hosts `h1` and `h2` with n paths between them, each with a switch: links `h1-s1` and `s1-h2` are path 1."""

    SIZE: ClassVar[str] = "n"
    TRAFFIC: ClassVar[list[Options]] = [{"bulk": {"from": "h1", "to": "h2", "duration": "10s"}}]

    generator: Literal["n-paths"] = "n-paths"
    n: Annotated[Whole, Field(ge=1, le=MAX_PATHS)] = 2
    """Number of paths; the kernel opens 8 subflows in addition to the initial one."""
    rates: Annotated[list[Rate], BeforeValidator(one_for_all, json_schema_input_type=Rate | list[Rate])] = [
        Rate.parse("10mbit")
    ]
    """Rate of each path, or one for all."""
    delays: Annotated[
        list[Delay] | Sigmoid,
        BeforeValidator(one_for_all, json_schema_input_type=Delay | list[Delay] | Sigmoid),
    ] = [Delay.parse("10ms")]
    """One-way delay of each path, one for all, or a sigmoid; each of the path's two links has half of it."""
    jitters: Delays | None = None
    """Jitter of each path, or one for all, on the first link of each direction."""
    losses: (
        Annotated[list[Ratio], BeforeValidator(one_for_all, json_schema_input_type=Ratio | list[Ratio])]
        | None
    ) = None
    """Loss ratio of each path in each direction, or one for all."""
    queues: (
        Annotated[list[Queue], BeforeValidator(one_for_all, json_schema_input_type=Queue | list[Queue])]
        | None
    ) = None
    """Queue length of each path, or one for all."""

    def mistakes(self) -> list[FieldMistake]:
        """Return mistakes of lists without one value, or one for each path, and of jitters above the delay."""
        mistakes = self.not_for_each(self.n, "paths", "rates", "delays", "jitters", "losses", "queues")
        if mistakes or self.jitters is None:
            return mistakes
        for i in range(self.n):
            most, jitter = self._halves(i)[0], of_path(self.jitters, i)
            if jitter > most:
                message = f"a jitter of {jitter} is more than half of path {i + 1}'s delay ({most}); lower it"
                return [(("jitters",), message)]
        return []

    def describe(self) -> Description:
        """Return the network; the first link of a path in each direction has its jitter, loss and queue."""
        net = Description()
        net.add_hosts("h1", "h2")
        switches = numbered("s", self.n)
        net.add_switches(*switches)
        for i, switch in enumerate(switches):
            first, second = self._halves(i)
            entered = {"jitter": self.jitters, "loss": self.losses, "queue": self.queues}
            conditions = {key: of_path(values, i) for key, values in entered.items() if values is not None}
            rate = of_path(self.rates, i)
            net.join("h1", switch, rate=rate, delay=first, forward=conditions or None)
            net.join(switch, "h2", rate=rate, delay=second, backward=conditions or None)
        return net

    def _halves(self, i: int) -> tuple[Delay, Delay]:
        """Return the path's delay on its two links."""
        delay = self.delays.delay_of(i + 1) if isinstance(self.delays, Sigmoid) else of_path(self.delays, i)
        half = int(delay) // 2
        return Delay(half), Delay(int(delay) - half)


class Dumbbell(Generator):
    """n senders and n receivers behind routers `left` and `right`, which one link joins: the bottleneck."""

    SIZE: ClassVar[str] = "n"
    TRAFFIC: ClassVar[list[Options]] = [
        {"pairs": {"from": "sender*", "to": "receiver*", "each": {"bulk": {"duration": "10s"}}}}
    ]

    generator: Literal["dumbbell"] = "dumbbell"
    n: Annotated[Whole, Field(ge=1)] = 2
    """Number of senders (`sender1`, ..) and of receivers (`receiver1`, ..)."""
    rate: Rate = Rate.parse("10mbit")
    """Rate of the bottleneck `left-right`."""
    delay: Delay = Delay.parse("10ms")
    """One-way delay of the bottleneck."""
    queue: Queue | None = None
    """Queue length of the bottleneck."""
    access_rate: Rate | None = None
    """Rate of the links between hosts and routers. Default: unlimited."""
    access_delays: Delays = [Delay.parse("1ms")]
    """One-way delay of the senders' and the receivers' links; one for each pair, or one for all."""

    def mistakes(self) -> list[FieldMistake]:
        """Return a mistake unless there is one delay, or one for each pair."""
        return self.not_for_each(self.n, "pairs", "access_delays")

    def describe(self) -> Description:
        """Return the network, with senders on the left and receivers on the right."""
        net = Description()
        senders, receivers = numbered("sender", self.n), numbered("receiver", self.n)
        net.add_hosts(*senders, *receivers)
        net.add_routers("left", "right")
        net.join("left", "right", rate=self.rate, delay=self.delay, queue=self.queue)
        for i, sender in enumerate(senders):
            net.join(sender, "left", rate=self.access_rate, delay=of_path(self.access_delays, i))
        for i, receiver in enumerate(receivers):
            net.join("right", receiver, rate=self.access_rate, delay=of_path(self.access_delays, i))
        return net
