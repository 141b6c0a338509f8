"""The distinct link settings of a study.

A setting is the chain of qdiscs of one link direction, without its location and its seed, and the link's MTU. Plans
that differ in names, seeds or traffic have the same settings.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from plait.frames import frame_bytes
from plait.plan.model.plan import ChangeQdisc
from plait.plan.model.qdiscs import Netem, Tbf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plait.plan.model.plan import Plan
    from plait.plan.model.qdiscs import Qdisc

LEAST_DELAY_NS = 1000
"""A netem with this delay has no configured delay; it only passes packets on."""


@dataclass(frozen=True)
class Setting:
    """The configuration of one link direction."""

    mtu: int
    qdiscs: tuple[Qdisc, ...]
    """Parents come before children; netns and ifname are empty, and seeds are 0."""

    @property
    def identity(self) -> str:
        """A hash of 64 hexadecimal digits; equal settings have equal hashes."""
        value = {"mtu": self.mtu, "qdiscs": [q.model_dump(mode="json") for q in self.qdiscs]}
        return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

    @property
    def frame_bytes(self) -> int:
        """The length of the longest frame as tc counts it."""
        return frame_bytes(self.mtu)

    @property
    def netem(self) -> Netem | None:
        """The options of its netem qdisc: delay, jitter, loss and more."""
        return next((q.options for q in self.qdiscs if isinstance(q.options, Netem)), None)

    @property
    def tbf(self) -> Tbf | None:
        """The options of its tbf qdisc: the rate."""
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
        """Full frames at five quarters of the rate until the bucket (a fifth of them) is empty, and a margin."""
        return 0 if self.tbf is None else 10 + 6 * (self.tbf.burst_bytes // self.frame_bytes)

    @property
    def steady(self) -> bool:
        """Whether its rate is constant: no recorded trace, and no token bucket with a peak rate."""
        kinds = {qdisc.options.kind for qdisc in self.qdiscs}
        return "plait_trace" not in kinds and (self.tbf is None or self.tbf.peak_bps is None)


@dataclass
class Users:
    """The users of a setting."""

    links: list[str] = dataclasses.field(default_factory=list)
    """The link directions that have it."""
    cases: list[str] = dataclasses.field(default_factory=list)


def settings_of(plans: Iterable[tuple[str, Plan]]) -> dict[Setting, Users]:
    """Return the distinct settings of links, and those that events set, from plans with the names of their cases."""
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
