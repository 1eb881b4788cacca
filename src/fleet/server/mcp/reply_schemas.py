"""What a tool replies, as JSON Schema: made from the types of its operations' replies."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from fleet.domain.data import NamedTuple
from fleet.server.http.codec import named
from fleet.server.http.limits import choose, mark
from fleet.server.mcp.tool_table import TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fleet.server.mcp.tool_table import Tool

DEFINED = "#/$defs/"
SPOKEN_OF = ("title", "default")  # keys that no validator needs


def output_schema(tool: Tool) -> dict[str, Any]:
    """Return the schema of a successful call's structured content, with all that it refers to."""
    schemas = _schemas()
    replies = [schemas.replies[name] for name in tool.operations]
    data = _by_key(tool.keys, replies) if tool.keys else _any_of(replies)
    needed = schemas.records_of(data)
    return {
        "type": "object",
        "properties": {"data": data},
        "required": ["data"],
        **({"$defs": {name: schemas.records[name] for name in sorted(needed)}} if needed else {}),
    }


class _Schemas(NamedTuple):
    """The schemas of replies by operation, and of the records in them by name."""

    replies: dict[str, Any]
    records: dict[str, Any]

    def records_of(self, schema: Any) -> set[str]:
        """Return the names of all records that the schema refers to, also through other records."""
        known: set[str] = set()
        ahead = set(_named_in(schema))
        while ahead:
            known |= ahead
            ahead = {name for one in ahead for name in _named_in(self.records[one])} - known
        return known


@cache
def _schemas() -> _Schemas:
    """Make the schemas of all tools' operations at once: most share the same few records."""
    names = sorted({name for tool in TOOLS for name in tool.operations})
    replies = [named(name).reply for name in names]
    made, records = msgspec.json.schema_components(replies, ref_template=f"{DEFINED}{{name}}")
    for reply in replies:
        mark(reply, records, {"type": "object"})
    choose(records)
    short = {name: _short(record) for name, record in records.items()}
    return _Schemas(dict(zip(names, map(_short, made), strict=True)), short)


def _by_key(keys: Iterable[str], replies: list[Any]) -> dict[str, Any]:
    properties = dict(zip(keys, replies, strict=True))
    return {"type": "object", "properties": properties, "required": list(properties)}


def _any_of(replies: list[Any]) -> Any:
    different = [reply for number, reply in enumerate(replies) if reply not in replies[:number]]
    return different[0] if len(different) == 1 else {"anyOf": different}


def _short(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_short(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {word: _short_part(word, part) for word, part in schema.items() if word not in SPOKEN_OF}


def _short_part(word: str, part: Any) -> Any:
    if word == "properties":
        return {name: _short(field) for name, field in part.items()}
    if word == "description":
        return " ".join(part.split())  # a docstring is indented
    return _short(part)


def _named_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for part in schema:
            yield from _named_in(part)
    elif isinstance(schema, dict):
        if isinstance(name := schema.get("$ref"), str):
            yield name.removeprefix(DEFINED)
        for part in schema.values():
            yield from _named_in(part)
