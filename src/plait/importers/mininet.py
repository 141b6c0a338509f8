"""Convert a Mininet topology, as `recorder.py` prints it, to a scenario."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from plait.importers.draft import Draft, node_name, number

_SILENT = {"node1", "node2", "port1", "port2", "isSwitch", "use_htb", "cls"}
_DELAY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|usecs?|msecs?|secs?)?\s*")
_QUEUE_PACKETS = 1000
"""Mininet's queue without `max_queue_size`: the limit of netem, and the transmit queue below its HTB."""
_UNITS = {"": "us", "usec": "us", "usecs": "us", "msec": "ms", "msecs": "ms", "sec": "s", "secs": "s"}


def looks_like(text: str) -> bool:
    """Return whether `text` is a Python file that imports Mininet."""
    return re.search(r"^\s*(from|import)\s+mininet", text, re.MULTILINE) is not None


_Options = dict[str, bool | int | float | str | None]


class _Recorded(BaseModel):
    """The output of `recorder.py`. The imported file runs in the same process, so it can print this as well."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
    classes: list[str] | None = None
    nodes: list[tuple[str, bool, _Options]] = []
    links: list[tuple[str, str, _Options]] = []


def recorded(printed: bytes) -> dict[str, Any]:
    """Return the topology, or the classes, in the last line that was printed (ValueError without one)."""
    lines = printed.splitlines()
    try:
        record = _Recorded.model_validate_json(lines[-1] if lines else b"")
    except ValidationError as error:
        raise ValueError("its last line is no topology") from error
    names = {name for name, _, _ in record.nodes}
    for node, peer, _ in record.links:
        if not {node, peer} <= names:
            raise ValueError(f"a link joins {node!r} and {peer!r}, which are not both nodes")
    return record.model_dump()


def draft(recorded: Mapping[str, Any], source: str) -> Draft:
    """Return the topology as a scenario."""
    topology = Draft(f"{source}, imported from Mininet")
    names = {}
    for name, is_switch, options in recorded["nodes"]:
        names[name] = node_name(name)
        (topology.switches if is_switch else topology.hosts).append(names[name])
        if names[name] != name:
            topology.remarks.append(f"the name {name}: the node is called {names[name]}")
        for option, value in options.items():
            if option not in _SILENT and value is not None:
                topology.remarks.append(f"{name}: {option}={value}")
    for node, peer, options in recorded["links"]:
        conditions, rest = _conditions(options)
        topology.links.append((names[node], names[peer], conditions, ""))
        topology.remarks.extend(f"link {node}-{peer}: {text}" for text in rest)
    if any("rate" in conditions and "queue" not in conditions for _, _, conditions, _ in topology.links):
        topology.remarks.append(
            f"queues: without max_queue_size, a link of Mininet queues up to {_QUEUE_PACKETS} packets; "
            "plait's queue is the larger of 100 packets and one bandwidth-delay product; "
            f"write queue: {_QUEUE_PACKETS}pkt for Mininet's"
        )
    topology.remarks.append("addresses: plait assigns its own, one subnet for each segment")
    return topology


def _figure(value: object) -> float | None:
    """Return an option of a link as a number; None if it is none."""
    try:
        figure = float(str(value))
    except ValueError:
        return None
    return figure if math.isfinite(figure) else None


def _conditions(options: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the conditions of a TCLink, and its unsupported options."""
    conditions: dict[str, str] = {}
    unsupported = []
    for option, value in options.items():
        if value is None or option in _SILENT or (option == "loss" and not value):
            continue
        figure = _figure(value) if option in {"bw", "loss", "max_queue_size"} else None
        if option == "bw" and figure is not None:
            conditions["rate"] = f"{number(figure)}mbit"
        elif option == "loss" and figure is not None:
            conditions["loss"] = f"{number(figure)}%"
        elif option == "max_queue_size" and figure is not None:
            conditions["queue"] = f"{int(figure)}pkt"
        elif option in {"delay", "jitter"} and (delay := _DELAY.fullmatch(str(value))):
            unit = delay[2] or ""
            conditions[option] = f"{delay[1]}{_UNITS.get(unit, unit)}"
        else:
            unsupported.append(f"{option}={value}")
    if "queue" in conditions and "rate" not in conditions:
        unsupported.append(
            f"max_queue_size={conditions.pop('queue')[:-3]} (a link without bw has no queue in plait)"
        )
    return conditions, unsupported
