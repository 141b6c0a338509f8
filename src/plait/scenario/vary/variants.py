"""Variants of a scenario, with other values in some fields: each case is one, and each check of a varied value.

Only changed parts are validated. Variants share all other parts with the scenario, which is immutable, so a thousand
cases take neither a thousand times its memory nor its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import Any

from pydantic import BaseModel, ValidationError

from plait.errors import FieldMistakesError
from plait.scenario.generators.written import Written
from plait.scenario.messages import mistakes_in
from plait.scenario.scenario import Scenario
from plait.scenario.vary.overrides import assign
from plait.scenario.vary.text import field_path

WHOLE = ("vary", "baseline", "judge", "across", "figures", "labels", "published")
"""Fields of the whole study, which a case does not have."""
MAX_PARTS = 120_000
"""Most parts of all variants together; each takes some 10 us if only it changes."""
MAX_FORESEEN = 64
"""Most combinations of generated parts that `foresee_generated` counts before all variants are made."""


class NoSuchField(Exception):  # noqa: N818  # it carries the path
    """A varied path matches no field."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


class TooMany(Exception):  # noqa: N818  # the same
    """The variants together have more parts than MAX_PARTS."""


class Variants:
    """Makes variants of a scenario, up to MAX_PARTS in all."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._raw: dict[str, Any] = scenario.model_dump(
            mode="json", by_alias=True, exclude_unset=True, exclude=set(WHOLE)
        )
        self._parts = 0

    def foresee(self, cases: int) -> None:
        """Raise TooMany if a number of variants will exceed MAX_PARTS; for generated networks only `make` can."""
        if self._scenario.written is None:
            self._refuse_above(cases * _count_parts(self._scenario))

    def foresee_generated(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Raise TooMany if variants of generated networks will exceed MAX_PARTS, before making all of them.

        Only settings of generated parts change the number of parts, so it makes one variant for each combination of
        these. With more than MAX_FORESEEN combinations, only making all variants shows it.
        """
        written = self._scenario.written
        if written is None:
            return
        paths = {key: field_path(key) for row in rows for key in row}
        structural = [key for key, path in paths.items() if path.partition(".")[0] in written.asked]
        groups: dict[str, list[Mapping[str, Any]]] = {}
        for row in rows:
            groups.setdefault(repr([row.get(key) for key in structural]), []).append(row)
        if len(groups) > MAX_FORESEEN or len(groups) == len(rows):
            return
        total = 0
        for alike in groups.values():
            try:
                total += len(alike) * (_count_parts(self.make(alike[0])) + len(alike[0]))
            except (FieldMistakesError, NoSuchField):
                return  # making all variants reports it with its place
        self._parts = 0
        self._refuse_above(total)

    def make(self, settings: Mapping[str, Any]) -> Scenario:
        """Return the scenario with these values, by the paths of their fields.

        Raises FieldMistakesError; NoSuchField for a path without a match; TooMany if all variants together exceed
        MAX_PARTS.
        """
        self._parts += len(settings)
        paths = {key: field_path(key) for key in settings}
        fields, kept = self._fields([tuple(path.split(".")) for path in paths.values()])
        for key, path in paths.items():
            try:
                assign(fields, path, settings[key])
            except ValueError as error:
                raise NoSuchField(key, str(error)) from error
        try:
            variant = Scenario.model_validate(fields)
        except ValidationError as error:
            self._count(self._scenario)
            mistakes = mistakes_in(error, Scenario)
            raise FieldMistakesError(*(kept.relocated(mistakes) if kept is not None else mistakes)) from error
        self._count(variant)
        return variant.attached(source=self._scenario.source, files=self._scenario.files, written=kept)

    def _count(self, scenario: Scenario) -> None:
        self._parts += _count_parts(scenario)
        self._refuse_above(self._parts)

    @staticmethod
    def _refuse_above(parts: int) -> None:
        if parts > MAX_PARTS:
            message = f"all cases together have more than {MAX_PARTS} nodes, links, flows, events, programs and values"
            raise TooMany(f"{message}; vary less at once, or a smaller network")

    def _fields(self, paths: Sequence[tuple[str, ...]]) -> tuple[dict[str, Any], Written | None]:
        """Return the fields, validated where no path leads, and the result of generators unless a path changes it."""
        written = self._scenario.written
        asked = written.asked if written is not None else {}
        regenerated = any(fnmatchcase(key, path[0]) for key in asked for path in paths)
        fields = {
            key: deepcopy(value)
            if regenerated and key in asked
            else _shared(getattr(self._scenario, key), value, _below(paths, key))
            for key, value in self._raw.items()
        }
        return fields, None if regenerated else written


def _shared(part: Any, raw: Any, paths: Sequence[tuple[str, ...]]) -> Any:
    """Return a field with validated parts where no path leads, and plain values along the paths."""
    if isinstance(part, BaseModel) and not paths:
        return part
    if isinstance(part, BaseModel) and isinstance(raw, dict):
        names = {info.alias or name: name for name, info in type(part).model_fields.items()}
        inner: dict[Any, Any] = {key: getattr(part, names[key]) for key in raw if key in names}
    elif isinstance(part, dict) and isinstance(raw, dict):
        inner = part
    elif isinstance(part, list) and isinstance(raw, list) and len(part) == len(raw):
        return [_shared(item, raw[i], _below(paths, str(i))) for i, item in enumerate(part)]
    else:
        return deepcopy(raw)
    return {
        key: _shared(inner[key], value, _below(paths, str(key))) if key in inner else deepcopy(value)
        for key, value in raw.items()
    }


def _below(paths: Sequence[tuple[str, ...]], key: str) -> list[tuple[str, ...]]:
    return [path[1:] for path in paths if path and fnmatchcase(key, path[0])]


def _count_parts(scenario: Scenario) -> int:
    network = scenario.network
    nodes = len(network.hosts) + len(network.switches) + len(network.routers)
    return nodes + len(network.links) + len(scenario.traffic) + len(scenario.events) + len(scenario.programs)
