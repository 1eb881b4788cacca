"""The limits of requests and the words of replies, as JSON Schema."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from fleet.base.outside import Json, Time, is_marked
from fleet.domain.access import Role
from fleet.domain.limits import BLANK, Items, OneOf, TextLimit, Whole, limit_of
from fleet.domain.task import PRIORITIES, TaskState
from fleet.operations.messages.boards import TYPES
from fleet.operations.tasks.statuses import STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

PLAIN_TEXT = r"^[^\u0000]*$"
SOME_TEXT = rf"^[^\u0000]*[^\u0000{BLANK}][^\u0000]*$"
JSON_OBJECT = {"$ref": "#/components/schemas/JsonObject"}
JSON_VALUE = {"$ref": "#/components/schemas/JsonValue"}
PASSED_ON = {  # what we only pass on
    "JsonObject": {
        "type": "object",
        "propertyNames": {"pattern": PLAIN_TEXT},
        "additionalProperties": JSON_VALUE,
    },
    "JsonValue": {
        "anyOf": [
            {"type": "string", "pattern": PLAIN_TEXT},
            {"type": "number", "minimum": -(1 << 63), "maximum": (1 << 63) - 1},
            {"type": ["boolean", "null"]},
            {"type": "array", "items": JSON_VALUE},
            JSON_OBJECT,
        ]
    },
}
MOMENT = {"type": "string", "format": "date-time"}
KEPT: dict[Any, Any] = {str: TextLimit(), int: Whole()}
TYPES_OF = {str: "string", int: "integer", bool: "boolean", tuple: "array"}
CHOICES: dict[tuple[str, str], list[str]] = {  # the words in replies, by type and field
    ("TaskRow", "status"): list(STATUSES),
    ("TaskRow", "state"): [str(state) for state in TaskState],
    ("AgentRow", "status"): list(STATUSES),
    ("SwarmRow", "state"): [str(state) for state in TaskState],
    ("PostRow", "type"): list(TYPES),
    ("PostRow", "priority"): list(PRIORITIES),
    ("CheckpointRow", "status"): ["pending", "accepted", "rejected"],
    ("MemberRow", "role"): [str(role) for role in Role],
}


def mark(hint: Any, components: dict[str, Any], of_json: Mapping[str, Any] = JSON_OBJECT) -> None:
    """Describe what looks different outside: see `fleet.base.outside`."""
    outside = {Time: MOMENT, Json: of_json}
    for part in get_args(hint):
        mark(part, components, of_json)
    if not is_dataclass(hint) or hint.__name__ not in components:  # type: ignore[union-attr]  # a class
        return
    properties = components[hint.__name__]["properties"]  # type: ignore[union-attr]  # as above
    for name, kind in get_type_hints(hint, include_extras=True).items():
        schema = next((outside[t] for t in outside if t in (kind, *get_args(kind))), None)
        if schema is None:
            mark(kind, components, of_json)
        elif type(None) in get_args(kind):
            properties[name] = {"anyOf": [schema, {"type": "null"}]}
        else:
            properties[name] = schema


def choose(components: dict[str, Any]) -> None:
    """Name the words of a reply's field that has few."""
    for (kind, field), words in CHOICES.items():
        if (properties := components.get(kind, {}).get("properties", {})) and field in properties:
            properties[field]["enum"] = words


def bound(kind: Any, components: dict[str, Any]) -> None:
    """Bound the fields of a request, and of the records in it."""
    schema = components[kind.__name__]
    schema["additionalProperties"] = False
    names = _names_outside(kind)
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if name in names:
            field = schema["properties"][names[name]]
            schema["properties"][names[name]] = limited(hint, field, components)


def _names_outside(kind: Any) -> dict[str, str]:
    if is_dataclass(kind):
        return {name: name for name in kind.__dataclass_fields__}
    return {field.name: field.encode_name for field in msgspec.structs.fields(kind)}


def limited(hint: Any, schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field, with the limits of its type."""
    if is_marked(hint, Json) or get_origin(hint) is dict:
        return JSON_OBJECT
    if is_marked(hint, Time):
        return schema
    kind, limit = limit_of(hint)
    if type(None) in get_args(hint):
        inner = next(each for each in schema["anyOf"] if each != {"type": "null"})
        return schema | {"anyOf": [limited(kind_of(hint), inner, components), {"type": "null"}]}
    if get_origin(kind) is tuple:
        items = limited(get_args(kind)[0], schema["items"], components)
        schema = schema | {"items": items}
    elif is_dataclass(kind) or (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        bound(kind, components)
    return schema | keywords(kind, limit)


def schema_of(hint: Any) -> dict[str, Any]:
    """The schema of one field by itself, as short as may be: agents read it."""
    kind, limit = limit_of(hint)
    if is_dataclass(kind):
        fields = get_type_hints(kind, include_extras=True)
        return {"type": "object", "properties": {name: schema_of(fields[name]) for name in fields}}
    schema = {"type": TYPES_OF[get_origin(kind) or kind]} | keywords(kind, limit)
    if get_origin(kind) is tuple:
        schema["items"] = schema_of(get_args(kind)[0])
    if schema.get("pattern") in {PLAIN_TEXT, SOME_TEXT}:
        del schema["pattern"]
    return schema


def kind_of(hint: Any) -> Any:
    return next(kind for kind in get_args(hint) if kind is not type(None))


def keywords(kind: Any, limit: Any) -> dict[str, Any]:
    """The limit of a type in the words of JSON Schema, or what a store can keep of that type."""
    limit = limit or KEPT.get(kind)
    match limit:
        case TextLimit():
            return _of_text(limit)
        case OneOf(words):
            return {"enum": [str(word) for word in words]}
        case Whole(least, most):
            return {"minimum": least, "maximum": most}
        case Items(most, least):
            return {"maxItems": most} | ({"minItems": least} if least else {})
    return {}


def _of_text(limit: TextLimit) -> dict[str, Any]:
    length = {"maxLength": limit.most} if limit.most else {}
    patterns = [SOME_TEXT] if limit.some else [] if limit.pattern else [PLAIN_TEXT]
    patterns += [f"^(?:{limit.pattern})$".replace("\\0", "\\u0000")] if limit.pattern else []
    first, *others = patterns
    more = {"allOf": [{"pattern": pattern} for pattern in others]} if others else {}
    return length | ({"minLength": 1} if limit.some else {}) | {"pattern": first} | more
