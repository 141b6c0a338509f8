"""The JSON Schema of scenario files, with which editors complete and check fields.

`python -m plait.scenario.schema` prints the schema, which docs/reference keeps.
"""

from __future__ import annotations

import ast
import inspect
import json
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

from plait.parts import Part
from plait.scenario.generators.schema import with_generators
from plait.scenario.scenario import Scenario

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema() -> dict[str, Any]:
    """Return the schema as JSON values, with the docstrings of fields as descriptions."""
    body = with_generators(Scenario.model_json_schema(by_alias=True, mode="validation"))
    kinds = {kind.__name__: kind for kind in _kinds(Part)}
    meanings = _meanings({kind.__module__ for kind in kinds.values()})
    for name, part in [("Scenario", body), *body["$defs"].items()]:
        _describe(kinds[name], part, meanings)
    _share_fields(body)
    return {"$schema": DRAFT, **body, "title": "plait scenario"}


def schema_text() -> str:
    """Return the text of the schema file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _kinds(kind: type[Part]) -> Iterator[type[Part]]:
    """Yield a class and all its subclasses."""
    yield kind
    for derived in kind.__subclasses__():
        yield from _kinds(derived)


def _describe(kind: type[Part], part: dict[str, Any], meanings: dict[tuple[str, str], str]) -> None:
    """Replace the title of each field, which only repeats its name, by its description."""
    bases = [base.__name__ for base in kind.__mro__]
    for field, body in part.get("properties", {}).items():
        body.pop("title", None)
        attribute = "from_" if field == "from" else field.replace("-", "_")
        meaning = next((meanings[base, attribute] for base in bases if (base, attribute) in meanings), None)
        if meaning is not None:
            body["description"] = f"{meaning} ({body['description']})" if "description" in body else meaning


def _share_fields(body: dict[str, Any]) -> None:
    """Move each field that several records have to `$defs`, under its name, and refer to it."""
    holders = [part["properties"] for part in (body, *body["$defs"].values()) if "properties" in part]
    users: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for holder in holders:
        for field, content in holder.items():
            users.setdefault((field, json.dumps(content, sort_keys=True)), []).append(holder)
    for (field, _), alike in users.items():
        if len(alike) == 1 or len(alike[0][field]) == 1:
            continue
        versions = (f"{field}.{number}" if number > 1 else field for number in count(1))
        name = next(version for version in versions if version not in body["$defs"])
        body["$defs"][name] = alike[0][field]
        for holder in alike:
            holder[field] = {"$ref": f"#/$defs/{name}"}


def _meanings(modules: set[str]) -> dict[tuple[str, str], str]:
    """Return the docstring below each field, by (class, field); parsing takes too long for the model itself."""
    out: dict[tuple[str, str], str] = {}
    for kind in (
        part for module in modules for part in ast.parse(inspect.getsource(sys.modules[module])).body
    ):
        if not isinstance(kind, ast.ClassDef):
            continue
        for field, below in zip(kind.body, kind.body[1:], strict=False):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    out[kind.name, name] = " ".join(text.split())
    return out


if __name__ == "__main__":
    sys.stdout.write(schema_text())
