"""The suite: its networks and traffic, the classes of its cells, and the scenario of one entry.

A cell is a network with one kind of traffic. A class is a group of networks with one kind of traffic; it has one
metric. The suite itself is a scenario file, `scenarios/benchmark/plait-mptcp-1.yaml`, which never changes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from plait.errors import RequestError
from plait.scenario import Scenario, build, load
from plait.scenario.read import library

NAME = "plait-mptcp-1"
SHA256 = "467cd92d897d978848e10af71ba17f0ee155bb95c1527e9b2a263b2cdfb7fa94"
"""Of the suite's file. A file that differs is another suite."""
SEED = 1
SEEDS = 6
"""Seeds of a cell: the least number whose smallest and largest value enclose the median with 95 %."""
TRIAL_TIMEOUT_S = 120.0
"""Wall time of a trial. The dearest of them takes a few seconds."""
Subset = Literal["quick", "full"]
QUICK_DRAWN = ("01", "02", "03")
"""The drawn networks of each group that the subset `quick` has."""
_CHANGING = ("starlink-cellular", "train", "path-dies", "path-blackholed")
_DRAWN = re.compile(r"(?P<group>(low|high)-bdp(-lossy)?)-(?P<number>\d\d)")
GROUPS = {
    "low-bdp": "low BDP",
    "low-bdp-lossy": "low BDP, lossy",
    "high-bdp": "high BDP",
    "high-bdp-lossy": "high BDP, lossy",
    "everyday": "everyday",
    "changing": "changing",
    "shared": "shared",
}
"""The groups of networks, and their names in tables."""
TRAFFIC = {
    "bulk": ("goodput_bps", "goodput of 15 s"),
    "large": ("completion_s", "20 MB"),
    "small": ("completion_s", "256 KB"),
    "page": ("page_load_s", "web page"),
    "video": ("request_latency_p95_us", "video chunks"),
    "messages": ("message_delay_p95_us", "messages"),
    "mixed": ("request_latency_p95_us", "requests beside bulk"),
    "fairness": ("jain_index", "fairness to TCP"),
}
"""The kinds of traffic: the metric that judges each, and its name in tables."""
STALLS = {"bulk": "stall_max_s", "mixed": "beside.stall_max_s", "fairness": "flow.stall_max_s"}
"""By kind of traffic with a flow that always has data to send: the metric of its longest stall."""
STALLED_S = 7.5
"""A flow that delivers nothing for longer has stalled: half of the shortest one."""
_RECOVERY = ("message_delay_max_us", "recovery")
PARTS = (
    "efficiency", "aggregation_benefit", "reinjected_bytes", "duplicate_bytes", "out_of_order_max_bytes", "retransmits",
)  # fmt: skip
"""Metrics that a result has beside that of its class, as medians over the seeds."""


@dataclass(frozen=True)
class CellClass:
    """A group of networks with one kind of traffic, and how it is judged."""

    group: str
    traffic: str

    @property
    def metric(self) -> str:
        """The metric of a trial (`plait.metrics`)."""
        return self._judged[0]

    @property
    def title(self) -> str:
        """Its name in tables."""
        return f"{GROUPS[self.group]}: {self._judged[1]}"

    @property
    def _judged(self) -> tuple[str, str]:
        if (self.group, self.traffic) == ("changing", "messages"):
            return _RECOVERY
        return TRAFFIC[self.traffic]


@dataclass(frozen=True)
class Cell:
    """A network with one kind of traffic: a case of the suite's scenario."""

    network: str
    traffic: str

    @property
    def name(self) -> str:
        """Its name in results."""
        return f"{self.network}/{self.traffic}"

    @property
    def cell_class(self) -> CellClass:
        """The class that it belongs to."""
        return CellClass(group_of(self.network), self.traffic)


@dataclass(frozen=True)
class Settings:
    """What an entry sets: everything else is the suite's."""

    scheduler: str = "default"
    congestion_control: str = "cubic"
    transport: Literal["mptcp", "tcp"] = "mptcp"
    via: str | None = None
    """The client's link of every connection; None: its first one."""
    sysctls: Mapping[str, str] = field(default_factory=dict)


def group_of(network: str) -> str:
    """Return the group of a network."""
    drawn = _DRAWN.fullmatch(network)
    if drawn:
        return drawn["group"]
    if network.startswith("shared-"):
        return "shared"
    return "changing" if network in _CHANGING else "everyday"


def suite_file() -> Path:
    """Return the file of the suite (RequestError if this installation lacks it, or has another one)."""
    folder = library.folder()
    path = None if folder is None else folder / "benchmark" / f"{NAME}.yaml"
    if path is None or not path.is_file():
        raise RequestError(f"reading the suite {NAME}: this installation lacks it; install plait again")
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise RequestError(
            f"reading the suite {NAME}: {path} has changed, so its results would be those of another suite; "
            "install plait again"
        )
    return path


@cache
def _raw() -> dict[str, Any]:
    """Return the fields of the suite's scenario, unvaried."""
    return load(str(suite_file()), ()).model_dump(mode="json", by_alias=True, exclude_unset=True)


def cells(subset: Subset) -> tuple[Cell, ...]:
    """Return the cells of a subset, in the order of the suite."""
    vary = _raw()["vary"]
    return tuple(
        Cell(network, traffic)
        for network in vary["network"]
        if _belongs(network, subset)
        for traffic in vary["traffic"]
        if not any(network in left["network"] and traffic in left["traffic"] for left in vary["exclude"])
    )


def classes(subset: Subset) -> tuple[CellClass, ...]:
    """Return the classes of a subset's cells, in the order of the groups."""
    present = {cell.cell_class for cell in cells(subset)}
    return tuple(
        known for group in GROUPS for traffic in TRAFFIC if (known := CellClass(group, traffic)) in present
    )


def _belongs(network: str, subset: Subset) -> bool:
    drawn = _DRAWN.fullmatch(network)
    return subset == "full" or drawn is None or drawn["number"] in QUICK_DRAWN


def scenario_of(settings: Settings, chosen: tuple[Cell, ...]) -> Scenario:
    """Return the scenario of the cells with the settings of an entry (RequestError if plait refuses them)."""
    raw = {**_raw()}
    networks = tuple(dict.fromkeys(cell.network for cell in chosen))
    levels = {name: _with_path(level, settings.via) for name, level in raw["vary"]["traffic"].items()}
    traffic = {name: levels[name] for name in levels if any(cell.traffic == name for cell in chosen)}
    left_out = dict[tuple[str, ...], list[str]]()
    for network in networks:
        absent = tuple(name for name in traffic if Cell(network, name) not in chosen)
        left_out.setdefault(absent, []).append(network)
    exclude = [{"network": alike, "traffic": list(absent)} for absent, alike in left_out.items() if absent]
    raw["vary"] = {
        "network": {name: raw["vary"]["network"][name] for name in networks},
        "traffic": traffic,
        **({"exclude": exclude} if exclude else {}),
    }
    raw["engine"] = "virtual"
    raw["transport"] = settings.transport
    raw["mptcp"] = {"scheduler": settings.scheduler}
    raw["tcp"] = {"congestion_control": settings.congestion_control}
    if settings.sysctls:
        hosts = raw["network"]["hosts"]
        raw["network"] = {
            **raw["network"],
            "hosts": {name: {"sysctls": dict(settings.sysctls)} for name in hosts},
        }
    return build(raw)


def _with_path(level: Mapping[str, Any], via: str | None) -> dict[str, Any]:
    """Return a level of the traffic whose connections of the client begin on a link."""
    if via is None:
        return dict(level)
    items = []
    for item in level["traffic"]:
        ((kind, flow),) = item.items()
        items.append({kind: {**flow, "via": via} if "client" in (flow["from"], flow["to"]) else flow})
    return {**level, "traffic": items}
