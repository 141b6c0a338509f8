"""Variants of a scenario in which one field differs, to find fields without an effect and ask lint why.

The unit tests compare their plans.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plait.errors import PlaitError
from plait.plan.case_plan import resolve_case
from plait.plan.lint.lint import lint_cases
from plait.scenario import parse
from plait.scenario.read.inputs import input_files
from plait.scenario.vary.cases import expand

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plait.plan.case_plan import CasePlan
    from plait.scenario import Scenario
    from plait.scenario.mistakes import Where

ONLY_SHOWN = frozenset(
    {
        *("title", "description", "published", "label", "figures", "judge", "baseline", "vary", "measure"),
        *("repeat", "seed", "result", "background", "group", "user"),
    }
)
"""Fields that change what plait shows of the trials, not what they do."""
OTHER_WORDS = {
    "cubic": "reno",
    "reno": "cubic",
    "mptcp": "tcp",
    "tcp": "mptcp",
    "droptail": "codel",
    "each": "out",
    "all": "syn",
    "exit": "end",
    "machine": "virtual",
}
"""For a word, another one that fields with this word accept."""
ADDED: tuple[tuple[str, Any], ...] = (
    ("mptcp.scheduler", "redundant"),
    ("mptcp.limits.FROM", {"subflows": 0}),
    ("tcp.congestion_control", "reno"),
    ("tcp.receive_buffer_max", "100KB"),
    ("tcp.send_buffer_max", "64KiB"),
    ("sysctls", {"net.mptcp.checksum_enabled": 1}),
    ("network.links.LAST.loss", "1%"),
    ("network.links.LAST.middlebox", {"strip": "all"}),
    ("network.links.LAST.queue", "1000pkt"),
    ("network.links.LAST.bucket", {"baseline": "1mbit", "burst": "1GB"}),
    ("network.links.LAST.aqm", {"codel": {"ecn": True}}),
    ("events", [{"at": "1000s", "cut": "LAST"}]),
    ("traffic.0.KIND.dscp", 10),
    ("traffic.0.KIND.nodelay", True),
    ("traffic.0.KIND.send_buffer", "16KiB"),
    ("traffic.0.KIND.receive_buffer", "16KiB"),
)
"""Settings to add where a scenario lacks them.

FROM is the host that sends, LAST the last link, KIND the kind of the first entry.
"""
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z%]+)")


@dataclass(frozen=True)
class Variant:
    """A case in which one field has another value."""

    field: Where
    before: Any
    after: Any
    plan: CasePlan

    @property
    def name(self) -> str:
        """The field in the form of `--set`."""
        return ".".join(map(str, self.field))

    def differs_from(self, base: CasePlan) -> bool:
        """Return whether a trial of it does something else than one of the case before."""
        return self.plan.engine != base.engine or self.plan.plan(1) != base.plan(1)


def raw_case(scenario: Scenario, number: int = 0) -> dict[str, Any]:
    """Return one case of a scenario as a mapping with the fields that the scenario gives."""
    case = expand(scenario)[number].scenario
    raw: dict[str, Any] = case.model_dump(
        mode="json", by_alias=True, exclude_unset=True, exclude={"vary", "baseline"}
    )
    return raw


def planned(raw: dict[str, Any], base: Path) -> CasePlan:
    """Return the plan of a scenario without `vary`; its files are relative to `base`. Raise ScenarioError."""
    scenario = parse(json.dumps(raw), "a variant", ())
    scenario = scenario.attached(files=input_files(scenario, base))
    return resolve_case(expand(scenario)[0])


def variants(raw: dict[str, Any], base: Path) -> Iterator[Variant]:
    """Yield a variant for each field with a value that another value can replace; refused ones are left out.

    Of fields that differ by the name or number of what they belong to (`network.links.*.rate`), one is varied.
    """
    seen: set[str] = set()
    for field, value in _leaves(raw, ()):
        other = _other(value)
        pattern = ".".join("*" if isinstance(part, int) or "-" in part else part for part in field)
        if other is None or pattern in seen or ONLY_SHOWN & set(map(str, field)):
            continue
        seen.add(pattern)
        changed = copy.deepcopy(raw)
        place = changed
        for part in field[:-1]:
            place = place[part]
        place[field[-1]] = other
        try:
            yield Variant(field, value, other, planned(changed, base))
        except PlaitError:
            continue


def additions(raw: dict[str, Any], base: Path) -> Iterator[Variant]:
    """Yield a variant for each of ADDED that the scenario lacks and accepts."""
    kind, entry = next(iter(raw["traffic"][0].items())) if raw.get("traffic") else ("", {})
    links = raw["network"].get("links", {})
    words = {"FROM": entry.get("from", ""), "LAST": next(reversed(links), ""), "KIND": kind}
    for name, value in ADDED:
        if name.startswith("traffic") and not raw.get("traffic"):
            continue
        field = tuple(words.get(part, part) for part in name.split("."))
        changed = copy.deepcopy(raw)
        place: Any = changed
        for part in field[:-1]:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if "" in field or not isinstance(place, dict) or field[-1] in place or place.keys() == {"each"}:
            continue
        place[field[-1]] = json.loads(json.dumps(value).replace("LAST", words["LAST"]))
        try:
            yield Variant(field, None, place[field[-1]], planned(changed, base))
        except PlaitError:
            continue


def lint_knows(variant: Variant, base: CasePlan) -> bool:
    """Return whether a caution about the variant, or about the case before it, is about this field."""
    for plan in (variant.plan, base):
        for caution in lint_cases([plan], 1):
            about = caution.field or ""
            if about and (variant.name.startswith(about) or about.startswith(variant.name)):
                return True
            if caution.where is not None and caution.where.replace("->", "-") in map(str, variant.field):
                return True
    return False


def _leaves(value: Any, field: Where) -> Iterator[tuple[Where, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*field, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*field, number))
    else:
        yield field, value


def _other(value: Any) -> Any:
    """Return another value of the same kind; None if there is none to guess."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 or 1
    if isinstance(value, str):
        if number := _NUMBER.fullmatch(value):
            less = float(number[1]) / 2 or 1
            return f"{less:g}{number[2]}" if number[2] != "pkt" else f"{max(1, int(less))}pkt"
        return OTHER_WORDS.get(value)
    return None
