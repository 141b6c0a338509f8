"""The distinct link settings of a study.

A setting is the conditions of one link direction, without its location and its seed, and the link's MTU. Plans that
differ in names, seeds or traffic have the same settings.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from plait.frames import ETHERNET_HEADER, frame_bytes
from plait.plan.links.chain import qdiscs
from plait.plan.links.changes import link_changes
from plait.plan.model.links import EFFECTS, LinkDirection
from plait.plan.model.plan import Plan
from plait.plan.model.qdiscs import Netem, Qdisc, Tbf

LEAST_DELAY_NS = 1000
"""A netem with this delay has no configured delay; it only passes packets on."""
LOCATION = {"name": "", "source": "", "target": "", "ifname": "link", "interface": None}
"""The names of a direction that is in no network."""


@dataclass(frozen=True)
class Setting:
    """The configuration of one link direction."""

    mtu: int
    conditions: LinkDirection
    """Its names are `LOCATION`, and its seeds are 0."""

    @property
    def qdiscs(self) -> tuple[Qdisc, ...]:
        """The chain that has these conditions; parents come before children, and netns and ifname are empty."""
        return tuple(
            qdisc.model_copy(update={"netns": "", "ifname": ""}) for qdisc in qdiscs(self.conditions)
        )

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
            "jitter_distribution": None,
            "jitter_factor_ns": 0,
            "loss_ratio": 0.0,
            "loss_burst_packets": None,
            "gemodel": None,
            **dict.fromkeys(EFFECTS, 0.0),
        }
        return dataclasses.replace(self, conditions=self.conditions.model_copy(update=constant))

    @property
    def settling_frames(self) -> int:
        """Full frames at five quarters of the rate until the bucket (a fifth of them) is empty, and a margin."""
        return 0 if self.tbf is None else 10 + 6 * (self.tbf.burst_bytes // self.frame_bytes)

    @property
    def steady(self) -> bool:
        """Whether its rate is constant: no recorded trace, and no token bucket with a peak rate."""
        return self.conditions.trace is None and self.conditions.baseline_bps is None


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
    for side in (side for link in plan.links for side in link.directions):
        yield side.name, _setting(side)
    changes = (change.now for change in link_changes(plan) if change.event.name == "link_set")
    for side in changes:
        yield side.name, _setting(side)


def _setting(side: LinkDirection) -> Setting:
    manager = side.manager
    if manager is not None and hasattr(manager, "seed"):
        manager = manager.model_copy(update={"seed": 0})
    conditions = side.model_copy(update={**LOCATION, "seed": 0, "manager": manager})
    return Setting(side.frame_bytes - ETHERNET_HEADER, conditions)
