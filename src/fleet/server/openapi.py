"""The description of the HTTP face, made from the declared operations."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from fleet import __version__
from fleet.server.speech import encode, is_read, path_of, spoken

if TYPE_CHECKING:
    from fleet.operations.catalogue import Operation

REF = "#/components/schemas/{name}"
PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "description": "Stable; see the list of codes."},
        "fix": {"type": "string", "description": "The next step."},
    },
}


@cache
def document() -> bytes:
    return encode(described())


def described() -> dict[str, Any]:
    found = list(spoken().values())
    types = [t for operation in found for t in (operation.request, operation.reply)]
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    pairs = dict(
        zip([o.name for o in found], zip(schemas[::2], schemas[1::2], strict=True), strict=True)
    )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Fleet", "version": __version__, "summary": "Fleets of coding agents."},
        "security": [{"token": []}],
        "paths": {path_of(o): _path(o, *pairs[o.name]) for o in found} | _fixed(),
        "components": {
            "schemas": {**components, "Problem": PROBLEM},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
            },
        },
    }


def _path(operation: Operation, request: Any, reply: Any) -> dict[str, Any]:
    what = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.name.partition(".")[0]],
        "x-permission": str(operation.permission),
        "responses": _responses(operation, reply),
    }
    body = {"required": True, "content": {"application/json": {"schema": request}}}
    post = {"post": {**what, "requestBody": body}}
    if not is_read(operation):
        return post
    return {**post, "get": {**what, "operationId": f"{operation.name}.get"}}


def _responses(operation: Operation, reply: Any) -> dict[str, Any]:
    done = {
        "type": "object",
        "required": ["fleet", "kind", "data"],
        "properties": {
            "fleet": {"const": 1},
            "kind": {"const": operation.name},
            "data": reply,
        },
    }
    said = {"description": operation.summary, "content": {"application/json": {"schema": done}}}
    wrong = {
        "description": "What is wrong, and the next step.",
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        },
    }
    return {"200": said, "default": wrong}


def _fixed() -> dict[str, Any]:
    text = {"200": {"description": "Events, as they happen.", "content": {"text/event-stream": {}}}}
    well = {"200": {"description": "It is there.", "content": {"application/json": {}}}}
    return {
        "/health": {"get": {"operationId": "health", "security": [], "responses": well}},
        "/events": {"get": {"operationId": "events", "responses": text}},
    }


@cache
def page() -> str:
    """For people: every operation, what it takes and who may ask for it."""
    rows = "".join(
        f"<tr><td><code>{'GET, ' if is_read(o) else ''}POST {escape(path_of(o))}</code></td>"
        f"<td>{escape(o.summary)}</td><td>{escape(str(o.permission))}</td>"
        f"<td>{escape(', '.join(o.request.__dataclass_fields__))}</td></tr>"  # type: ignore[attr-defined]
        for o in spoken().values()
    )
    head = "<tr><th>path</th><th>what it does</th><th>permission</th><th>fields</th></tr>"
    style = "body{font:16px/1.5 system-ui;margin:2rem auto;max-width:70rem}td,th{padding:.3rem .8rem;text-align:left;vertical-align:top}tr:nth-child(even){background:#8881}"
    return (
        f"<!doctype html><meta charset=utf-8><title>Fleet {__version__}</title>"
        f"<style>{style}</style><h1>Fleet {__version__}</h1>"
        f'<p>As data: <a href="/openapi.json">/openapi.json</a>.</p><table>{head}{rows}</table>'
    )
