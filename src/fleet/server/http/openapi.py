"""The description of the HTTP face, made from the declared operations."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from fleet import __version__
from fleet.domain.data import NamedTuple
from fleet.server.http import idempotency
from fleet.server.http.codec import encode, methods_of, path_of, spoken, status_of_done
from fleet.server.http.limits import PASSED_ON, PLAIN_TEXT, bound, choose, keywords, mark
from fleet.server.http.pages import PAGES, has_rows, is_list

if TYPE_CHECKING:
    from fleet.operations.catalogue import Operation
    from fleet.server.http.compat import Compat, Described

REF = "#/components/schemas/{name}"
PROBLEM = {
    "type": "object",
    "description": "What is wrong, and the next step (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code", "fix"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable: programs may compare it."},
        "fix": {"type": "string", "description": "The next step."},
        "error": {"type": "string", "description": "On the paths of claude-fleet's clients."},
    },
    "examples": [
        {
            "type": "urn:fleet:error:not_found",
            "title": "Not found",
            "status": 404,
            "detail": "There is no task 't-99'.",
            "code": "not_found",
            "fix": "`fleet tasks --all` lists them.",
        }
    ],
}
WRONG = {
    "description": "What is wrong, and the next step.",
    "content": {"application/problem+json": {"schema": {"$ref": REF.format(name="Problem")}}},
}
WRONG_THERE = {  # on the paths of another program's clients
    "description": "What is wrong, and the next step; `error` is the same as `detail`.",
    "content": {
        kind: {"schema": {"$ref": REF.format(name="Problem")}}
        for kind in ("application/json", "application/problem+json")
    },
}
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A request repeated with the same key within a day is executed once and gets the same reply.",
    "schema": {"type": "string"} | keywords(str, idempotency.KEY),
}
TEXT = {"type": "string"}
IN_PATH = {"type": "string", "minLength": 1, "pattern": PLAIN_TEXT}
LOCATION = {"Location": {"description": "Where it is shown.", "schema": TEXT}}
LINK = {"Link": {"description": "The next page, as rel=next, if there is one.", "schema": TEXT}}
NEXT = {
    "description": "The `before` of the next page; null: this is the last.",
    "anyOf": [{"type": "string"}, {"type": "null"}],
}
SAMPLES: dict[str, Any] = {  # what a field of this name may hold
    "task": "t-31", "needs": "t-30", "swarm": "t-7", "name": "bob", "handle": "fix-login",
    "title": "Fix the login", "prompt": "The form forgets the name.", "text": "Mind the tests.",
    "message": "m-12", "question": "m-12", "posts": ["m-12"], "mail": "m-5", "checkpoint": "m-6",
    "key": "db/port", "value": "It is 5433.", "query": "port", "path": "src/login.py", "to": "bob",
    "token": "bob", "status": "done", "payload": {"tests": "green"}, "host": "desk",
    "summary": {"goal": "Login", "now": "Half done"}, "subject": "Fix the login", "body": "Look.",
    "goal": "Login", "now": "Half done", "chat": "3f2a9c04d1e8b765",
}  # fmt: skip


@cache
def document(compat: Compat) -> bytes:
    return encode(described(compat))


def described(compat: Compat) -> dict[str, Any]:
    operations, others = list(spoken().values()), compat.described
    types = [t for operation in operations for t in (operation.request, operation.reply)]
    types += [
        t for other in others for t in (other.reply, other.body, other.query) if t is not None
    ]
    made, components = msgspec.json.schema_components(types, ref_template=REF)
    known = _Known(dict(zip(map(_word, types), made, strict=True)), components)
    for operation in operations:
        mark(operation.request, components)
        mark(operation.reply, components)
        bound(operation.request, components)
        if has_rows(operation):
            known.fields(operation.request)["properties"]["limit"] |= keywords(int, PAGES)
    choose(components)
    for other in others:
        for kind in (other.body, other.query):
            if kind is not None:
                bound(kind, components)
        if other.body is not None:
            _let_be_null(known.fields(other.body))
    paths = {path_of(operation): _path(operation, known) for operation in operations}
    for other in others:
        where = other.path.replace(":path}", "}")
        paths.setdefault(where, {})[other.method.lower()] = _other(other, where, compat.name, known)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fleet", "version": __version__, "summary": "Fleets of coding agents."},
        "security": [{"token": []}],
        "paths": paths | _fixed(),
        "components": {
            "schemas": {**components, **PASSED_ON, "Problem": PROBLEM},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            },
        },
    }


def _let_be_null(schema: dict[str, Any]) -> None:
    """Allow null in optional fields: claude-fleet's clients send it for what they leave out."""
    for name, field in schema["properties"].items():
        if name in schema["required"]:
            continue
        if isinstance(field.get("type"), str) and "enum" not in field:
            schema["properties"][name] = field | {"type": [field["type"], "null"]}
        else:
            schema["properties"][name] = {"anyOf": [field, {"type": "null"}]}


def _word(kind: Any) -> str:
    """Return a key for a type that also tells composed types (unions, generics) apart."""
    return f"{getattr(kind, '__module__', '')} {kind!r}"


class _Known(NamedTuple):
    schemas: dict[str, Any]
    components: dict[str, Any]

    def schema(self, kind: Any) -> Any:
        return self.schemas[_word(kind)]

    def fields(self, kind: Any) -> dict[str, Any]:
        schema: dict[str, Any] = self.components[self.schema(kind)["$ref"].rpartition("/")[2]]
        return schema


def _path(operation: Operation, known: _Known) -> dict[str, Any]:
    fields = known.fields(operation.request)
    what: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.name.partition(".")[0]],
        "x-permission": str(operation.permission),
        "responses": _responses(
            operation.summary,
            _data(operation, known.schema(operation.reply)),
            status_of_done(operation),
            LOCATION if operation.shown_by else {},
        ),
    }
    if operation.is_open:
        what["security"] = []
    post = {**what, "requestBody": _body(known, operation.request)}
    if not operation.is_read:
        return {"post": {**post, "parameters": [KEY]}}
    if "GET" not in methods_of(operation):
        return {"post": post}
    get = {"operationId": f"{operation.name}.get", "parameters": _parameters(fields)}
    return {"post": post, "get": {**what, **get}}


def _body(known: _Known, kind: Any) -> dict[str, Any]:
    fields = known.fields(kind)
    needed = fields["required"]
    content = {"schema": known.schema(kind)}
    samples = {name: _sample(name, schema) for name, schema in fields["properties"].items()}
    example = {name: samples[name] for name in needed if samples[name] is not None}
    if len(example) == len(needed):
        content["example"] = example
    return {"required": bool(needed), "content": {"application/json": content}}


def _sample(name: str, schema: dict[str, Any]) -> Any:
    """Return an example: from the field's schema, else by the field's name, else None."""
    return schema["examples"][0] if "examples" in schema else SAMPLES.get(name)


def _parameters(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a request's fields as query parameters, with lists separated by commas."""
    return [
        {
            "name": name,
            "in": "query",
            "required": name in fields["required"],
            "schema": _in_query(schema),
            **({"style": "form", "explode": False} if schema.get("type") == "array" else {}),
            **({"example": sample} if (sample := _sample(name, schema)) is not None else {}),
        }
        for name, schema in fields["properties"].items()
    ]


def _in_query(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a field's schema in a query, where a list has at least one item, and none is empty."""
    if schema.get("type") != "array":
        return schema
    some = {name: value for name, value in schema.items() if name != "default"} | {"minItems": 1}
    if "enum" in schema["items"]:
        return some
    return some | {"items": schema["items"] | {"pattern": "^[^,\\u0000]+$"}}


def _data(operation: Operation, reply: Any) -> dict[str, Any]:
    more = {"next": NEXT} if is_list(operation) else {}
    return {
        "type": "object",
        "required": ["fleet", "kind", "data", *more],
        "properties": {
            "fleet": {"const": 1},
            "kind": {"const": operation.name},
            "data": reply,
            **more,
        },
    }


def _responses(
    summary: str, schema: Any, status: int = 200, headers: dict[str, Any] | None = None
) -> dict[str, Any]:
    done = {"description": summary, "content": {"application/json": {"schema": schema}}}
    return {str(status): done | ({"headers": headers} if headers else {}), "default": WRONG}


def _name_there(other: Described, where: str) -> str:
    """Return an operationId: `post_checkpoints_by_id_accept` for this method and path."""
    words = re.sub(r"\{(\w+)\}", r"by_\1", where).strip("/")
    return f"{other.method.lower()}_{re.sub(r'[^a-z_]+', '_', words.lower())}"


def _other(other: Described, where: str, tag: str, known: _Known) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": IN_PATH}
        for name in re.findall(r"\{(\w+)\}", where)
    ]
    paged = other.query is not None and "before" in known.fields(other.query)["properties"]
    if other.method != "GET" and not other.open:
        parameters.append(KEY)
    if other.query is not None:
        parameters += _parameters(known.fields(other.query))
    what: dict[str, Any] = {
        "operationId": _name_there(other, where),
        "summary": other.about,
        "tags": [tag],
        "parameters": parameters,
        "responses": {
            **_responses(other.about, known.schema(other.reply), headers=LINK if paged else {}),
            "default": WRONG_THERE,
        },
    }
    if other.open:
        what["security"] = []
    if other.body is not None:
        what["requestBody"] = _body(known, other.body)
    return what


def _fixed() -> dict[str, Any]:
    number = {"type": "string", "pattern": "^[0-9]{1,18}$"}
    after = {
        "name": "after",
        "in": "query",
        "description": "The number of the last event you have seen.",
        "schema": number,
    }
    counts = ["agents", "chats", "messages", "workers", "streams"]
    health = {
        "type": "object",
        "required": ["status", "version", "persistence", *counts],
        "properties": {
            "status": {"enum": ["ok", "degraded"]},
            **{name: {"type": "integer"} for name in counts},
        },
    }
    text = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
    rows = {"type": "object", "required": ["fleet", "kind", "data"]}
    plain = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    stream = {"200": {"description": "Events, as they happen.", **text}, "default": WRONG}
    measured = {"200": {"description": "For Prometheus.", **plain}, "default": WRONG}
    return {
        "/health": _get(
            "health",
            "Check that the server answers.",
            _responses("It answers.", health),
            open_=True,
        ),
        "/ready": _get(
            "ready",
            "Check that the server can do its work: it writes to the store, and its supervisor is awake.",
            _responses("It can.", {"type": "object", "required": ["status"]}),
            open_=True,
        ),
        "/metrics": _get("metrics", "The metrics.", measured, open_=True),
        "/metrics/json": _get("metrics.json", "The metrics.", _responses("As JSON.", rows)),
        "/events": _get("events", "Events, as they happen.", stream, parameters=[after]),
    }


def _get(
    name: str, summary: str, responses: Any, *, open_: bool = False, **more: Any
) -> dict[str, Any]:
    what = {"operationId": name, "summary": summary, "tags": ["server"], "responses": responses}
    return {"get": {**what, **({"security": []} if open_ else {}), **more}}
