"""Convert minitopo topology files: `path_c2r_0:10,50,5` is a path's one-way delay in ms, queue in packets and Mbit/s.

The format is that of core/topo.py in qdeconinck/minitopo. A router connects client and server. Each path has a link
between client and router (`c2r`) or between router and server (`r2s`).
"""

from __future__ import annotations

import math
import re

from plait.errors import Mistake, ScenarioError
from plait.importers.draft import Draft, number

_FRAME = 1500
_TOPOLOGIES = ("MultiIf",)
_FIELDS = ("delay", "queueSize", "bandwidth", "loss", "backup")
_PATH = re.compile(r"path_(?:(?P<type>[a-z0-9]+)_)?(?P<id>\d+)")
_ENDS = {"c2r": ("Client", "Router"), "r2s": ("Router", "Server")}


def looks_like(text: str) -> bool:
    """Return whether `text` is a minitopo topology file."""
    return re.search(r"^\s*(topoType\s*:|path_\S+\s*:)", text, re.MULTILINE) is not None


def draft(text: str, source: str) -> Draft:
    """Return the topology as a scenario; ScenarioError with all mistakes and their locations."""
    topology = Draft(f"{source}, imported from minitopo")
    mistakes: list[Mistake] = []
    paths: list[tuple[str, int, dict[str, float]]] = []
    for line_number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key, colon, value = (part.strip() for part in line.partition(":"))
        try:
            _read(key, value if colon else None, topology, paths)
        except ValueError as error:
            mistakes.append(Mistake(source, line_number, 1, key, str(error)))
    if not paths and not mistakes:
        mistakes.append(Mistake(source, None, None, "", "the file has no path, such as path_c2r_0:10,50,5"))
    if mistakes:
        raise ScenarioError(mistakes)
    _build(topology, paths)
    return topology


def _read(
    key: str, value: str | None, topology: Draft, paths: list[tuple[str, int, dict[str, float]]]
) -> None:
    if value is None:
        raise ValueError("write the line as KEY:VALUE")
    path = _PATH.fullmatch(key)
    if path:
        kind = path["type"] or "c2r"
        if kind not in _ENDS:
            topology.remarks.append(f"{key}: links of type {kind}; only c2r and r2s are supported")
            return
        paths.append((kind, int(path["id"]), _characteristics(value)))
    elif key == "topoType":
        if value not in _TOPOLOGIES:
            raise ValueError(f"topology {value} is not supported; supported: {', '.join(_TOPOLOGIES)}")
    elif key in {"leftSubnet", "rightSubnet"}:
        topology.remarks.append(f"{key} {value}: plait assigns its own addresses")
    elif key.startswith("netemAt_"):
        topology.remarks.append(f"{key}: {value} (write it under `events:`)")
    elif key != "changeNetem":
        topology.remarks.append(f"{key}: {value}")


def _characteristics(value: str) -> dict[str, float]:
    """Read `delay,queueSize,bandwidth[,loss[,backup]]` or `delay,bandwidth`."""
    try:
        numbers = [float(part) for part in value.split(",")]
    except ValueError:
        raise ValueError(f"{value} is not a list of numbers") from None
    if len(numbers) == 2:
        delay, bandwidth = numbers
        queue = math.ceil(2 * delay / 1000 * bandwidth * 125_000 / _FRAME)
        numbers = [delay, queue, bandwidth]
    if not 3 <= len(numbers) <= len(_FIELDS):
        raise ValueError(
            f"{value} has {len(numbers)} numbers; write delay,queueSize,bandwidth[,loss[,backup]]"
        )
    return dict(zip(_FIELDS, numbers, strict=False))


def _build(topology: Draft, paths: list[tuple[str, int, dict[str, float]]]) -> None:
    topology.hosts, topology.routers = ["Client", "Server"], ["Router"]
    for kind, _, path in sorted(paths, key=lambda entry: entry[:2]):
        node, peer = _ENDS[kind]
        name = topology.link_name(node, peer)
        conditions = {"rate": f"{number(path['bandwidth'])}mbit", "delay": f"{number(path['delay'])}ms"}
        conditions["queue"] = f"{_buffer_bytes(path)}B"
        if path.get("loss"):
            conditions["loss"] = f"{number(path['loss'])}%"
        topology.links.append((node, peer, conditions, f"queueSize {number(path['queueSize'])}"))
        if path.get("backup"):
            topology.endpoints.append(("Client" if kind == "c2r" else "Server", name, ["subflow", "backup"]))
    if not any(kind == "r2s" for kind, _, _ in paths):
        topology.links.append(("Router", "Server", {}, "unlimited, as in minitopo"))
    topology.remarks.append("a policer's burst of 15000 bytes on every link")


def _buffer_bytes(path: dict[str, float]) -> int:
    """Return minitopo's buffer: a bandwidth-delay product, and queueSize packets as whole ms at the rate."""
    product = math.ceil(2 * path["delay"] / 1000 * path["bandwidth"] * 125_000 / _FRAME)
    waiting_ms = max(int(path["queueSize"] * _FRAME * 8000 / (path["bandwidth"] * 1024 * 1024)), 1)
    return max(int(_FRAME * product + path["bandwidth"] * 1000 * waiting_ms / 8), 2 * _FRAME)
