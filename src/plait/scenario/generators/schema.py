"""Generators in the JSON Schema: networks, entries of the traffic, and programs of several nodes."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from plait.parts import Part
from plait.scenario.fields.network import NetworkSpec
from plait.scenario.fields.programs import ProgramSpec
from plait.scenario.generators.kinds import KINDS
from plait.scenario.generators.traffic import KINDS as TRAFFIC
from plait.scenario.generators.written import plain


def with_generators(body: dict[str, Any]) -> dict[str, Any]:
    """Add all generators to the schema of scenarios, in place, and return it."""
    _, definitions = models_json_schema(
        [(kind, "validation") for kind in (*KINDS.values(), *TRAFFIC.values())], by_alias=True
    )
    body["$defs"] |= definitions["$defs"]
    network = body["$defs"][NetworkSpec.__name__]["properties"]
    for kind in KINDS.values():
        made = body["$defs"][kind.__name__]
        made["required"] = ["generator"]
        for name, field in kind.model_fields.items():
            if isinstance(field.default, (list, Part)):
                made["properties"][name]["default"] = plain(field.default)
        made["properties"] |= {
            name: _optional(network[name]) for name in network if name not in made["properties"]
        }
    networks = [NetworkSpec.__name__, *(kind.__name__ for kind in KINDS.values())]
    body["properties"]["network"] = {"anyOf": [_reference(name) for name in networks]}
    body["properties"]["traffic"]["items"] = {
        "anyOf": [
            _reference("Traffic"),
            *(
                {
                    "type": "object",
                    "properties": {name: _reference(kind.__name__)},
                    "required": [name],
                    "additionalProperties": False,
                }
                for name, kind in TRAFFIC.items()
            ),
        ]
    }
    program = body["$defs"][ProgramSpec.__name__]["properties"]
    program["node"] = {
        "anyOf": [program["node"], {"type": "array", "items": {"type": "string"}, "minItems": 1}]
    }
    transport = {key: program["transport"]["anyOf"][0][key] for key in ("enum", "type")}
    program["transport"]["anyOf"].append({"type": "array", "items": transport, "minItems": 1})
    body["required"] = [name for name in body["required"] if name != "traffic"]
    return body


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/$defs/{name}"}


def _optional(part: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field that a generator fills: the file may leave it empty."""
    return {key: value for key, value in part.items() if key not in ("minProperties", "default", "minItems")}
