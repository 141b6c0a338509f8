"""Which settings of links a study has, and what each of them is meant to do. Pure.

A setting is the chain of qdiscs of one direction of a link, without its place and its seed, and the link's MTU. Plans
that differ in names, seeds or traffic have the same settings.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from plait.plan.model.plan import ChangeQdisc
from plait.plan.model.qdiscs import Netem, Tbf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plait.plan.model.plan import Plan
    from plait.plan.model.qdiscs import Qdisc

ETHERNET_BYTES = 14
LEAST_DELAY_NS = 1000
"""A netem with this delay is one that only takes packets over."""


@dataclass(frozen=True)
class Setting:
    """What one direction of a link does."""

    mtu: int
    qdiscs: tuple[Qdisc, ...]
    """Each parent before its child; netns and ifname are empty, seeds are 0."""

    @property
    def identity(self) -> str:
        """64 hexadecimal digits, the same for equal settings."""
        value = {"mtu": self.mtu, "qdiscs": [qdisc.model_dump(mode="json") for qdisc in self.qdiscs]}
        return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

    @property
    def frame_bytes(self) -> int:
        """The longest frame, counted as tc counts."""
        return self.mtu + ETHERNET_BYTES

    @property
    def netem(self) -> Netem | None:
        """What happens to packets under way."""
        return next((q.options for q in self.qdiscs if isinstance(q.options, Netem)), None)

    @property
    def tbf(self) -> Tbf | None:
        """The rate."""
        return next((q.options for q in self.qdiscs if isinstance(q.options, Tbf)), None)

    def without_randomness(self) -> Setting:
        """Return the setting with a constant delay and without loss, duplicates or corruption."""
        constant = {
            "jitter_ns": 0,
            "distribution": None,
            "loss_ratio": 0.0,
            "gemodel": None,
            "duplicate_ratio": 0.0,
            "reorder_ratio": None,
            "corrupt_ratio": None,
        }
        qdiscs = tuple(
            qdisc.model_copy(update={"options": qdisc.options.model_copy(update=constant)})
            if isinstance(qdisc.options, Netem)
            else qdisc
            for qdisc in self.qdiscs
        )
        return dataclasses.replace(self, qdiscs=qdiscs)

    @property
    def settling_frames(self) -> int:
        """Full frames at five quarters of the rate until its bucket is empty (it holds a fifth of them), and some."""
        return 0 if self.tbf is None else 10 + 6 * (self.tbf.burst_bytes // self.frame_bytes)

    @property
    def steady(self) -> bool:
        """Whether it passes packets by the clock, and not by a recorded trace or out of a bucket that empties."""
        kinds = {qdisc.options.kind for qdisc in self.qdiscs}
        return "plait_trace" not in kinds and (self.tbf is None or self.tbf.peak_bps is None)


@dataclass
class Users:
    """Where a setting is used."""

    links: list[str] = dataclasses.field(default_factory=list)
    """The directions that have it."""
    cases: list[str] = dataclasses.field(default_factory=list)


def settings_of(plans: Iterable[tuple[str, Plan]]) -> dict[Setting, Users]:
    """The distinct settings of links, and of what events set, of plans with the names of their cases."""
    users_by_setting: dict[Setting, Users] = {}
    for case, plan in plans:
        for name, setting in _settings_in(plan):
            users = users_by_setting.setdefault(setting, Users())
            if name not in users.links:
                users.links.append(name)
            if case not in users.cases[-1:]:
                users.cases.append(case)
    return users_by_setting


def _settings_in(plan: Plan) -> Iterator[tuple[str, Setting]]:
    names = {direction.ifname: direction.name for link in plan.links for direction in link.directions}
    mtus = {end.ifname: veth.mtu for veth in plan.network.veths for end in (veth.a, veth.b)}
    chains: dict[str, dict[str, Qdisc]] = {}
    for qdisc in plan.network.qdiscs:
        if qdisc.ifname in names:
            chains.setdefault(qdisc.ifname, {})[qdisc.handle] = qdisc
    for ifname, chain in chains.items():
        yield names[ifname], _setting(mtus[ifname], chain)
    for event in plan.events:
        changed = set()
        for action in event.actions:
            if isinstance(action, ChangeQdisc) and action.qdisc.ifname in chains:
                chains[action.qdisc.ifname][action.qdisc.handle] = action.qdisc
                changed.add(action.qdisc.ifname)
        if event.name == "link_set":
            for ifname in sorted(changed):
                yield names[ifname], _setting(mtus[ifname], chains[ifname])


def _setting(mtu: int, chain: dict[str, Qdisc]) -> Setting:
    qdiscs = []
    for qdisc in chain.values():
        options = qdisc.options
        if hasattr(options, "seed"):
            options = options.model_copy(update={"seed": 0})
        qdiscs.append(qdisc.model_copy(update={"netns": "", "ifname": "", "options": options}))
    return Setting(mtu, tuple(qdiscs))
