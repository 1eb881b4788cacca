"""Write src/fleet/web/api.d.ts from the operations; `--check` only says whether it is stale."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from fleet.server.claude_fleet.mount import CLAUDE_FLEET
from fleet.server.http.codec import path_of, spoken
from fleet.server.http.openapi import document

PAGE = Path(__file__).parent.parent / "src" / "fleet" / "web" / "api.d.ts"
HEAD = "// Made from the operations by scripts/reference_web_types.py; do not edit.\n"
NAMES = {"integer": "number", "number": "number", "string": "string", "boolean": "boolean"}
REQUEST, REPLY = "requestBody", "responses"


def types() -> str:
    described = json.loads(document(CLAUDE_FLEET))
    schemas = described["components"]["schemas"]
    pairs = {name: _pair(described, path_of(op)) for name, op in sorted(spoken().items())}
    needed: dict[str, None] = {}
    for pair in pairs.values():
        for kind in pair:
            _collect(kind, schemas, needed)
    records = (f"export type {name} = {_type(schemas[name])};\n" for name in sorted(needed))
    rows = (
        f"  {name!r}: [{_type(asks)}, {_type(gets)}];\n" for name, (asks, gets) in pairs.items()
    )
    lines = "".join(rows).replace("'", '"')
    return f"{HEAD}{''.join(records)}export interface Operations {{\n{lines}}}\n"


def _pair(described: dict[str, Any], path: str) -> tuple[Any, Any]:
    post = described["paths"][path]["post"]
    done = next(reply for status, reply in post[REPLY].items() if status.startswith("2"))
    data = _content(done)["properties"]["data"]
    return _content(post[REQUEST]) if REQUEST in post else {"type": "object"}, data


def _content(part: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = part["content"]["application/json"]["schema"]
    return schema


def _collect(schema: Any, schemas: dict[str, Any], needed: dict[str, None]) -> None:
    if isinstance(schema, list):
        for each in schema:
            _collect(each, schemas, needed)
    elif isinstance(schema, dict):
        name = _name(schema)
        if name and name not in needed:
            needed[name] = None
            _collect(schemas[name], schemas, needed)
        for each in schema.values():
            _collect(each, schemas, needed)


def _name(schema: dict[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _type(schema: dict[str, Any]) -> str:
    if name := _name(schema):
        return name
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " | ".join(dict.fromkeys(map(_type, schema[several])))
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type(schema | {"type": each}) for each in kind)
    if kind == "array":
        return f"Array<{_type(schema.get('items') or {})}>"
    if kind == "object":
        return _object(schema)
    return "null" if kind == "null" else NAMES.get(str(kind), "unknown")


def _object(schema: dict[str, Any]) -> str:
    if "properties" not in schema:
        values = schema.get("additionalProperties")
        # Not a Record, which may not refer to itself.
        return f"{{ [name: string]: {_type(values) if isinstance(values, dict) else 'unknown'} }}"
    required = schema.get("required", ())
    fields = (
        f"{json.dumps(name)}{'' if name in required else '?'}: {_type(each)}"
        for name, each in schema["properties"].items()
    )
    return "{ " + "; ".join(fields) + " }"


if __name__ == "__main__":
    from write_page import main

    sys.exit(main(PAGE, types()))
