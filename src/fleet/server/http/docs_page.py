"""`/docs`: every path for people, with what it takes."""

from __future__ import annotations

from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from fleet import __version__
from fleet.server.http.codec import methods_of, path_of, spoken

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.server.http.compat import Compat

STYLE = (
    "body{font:16px/1.5 system-ui;margin:2rem auto;max-width:70rem;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{padding:.3rem .8rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
    "tr:nth-child(even){background:#8881}"
)
FIXED = (
    ("GET /health", "Check that the server answers. Needs no token.", ""),
    ("GET /ready", "Check that the server can do its work. Needs no token.", ""),
    ("GET /metrics", "The metrics, for Prometheus. Needs no token.", ""),
    ("GET /metrics/json", "The metrics.", ""),
    ("GET /events", "A stream of events, as they happen.", "after"),
    ("GET /ws", "The events over a WebSocket. The first frame authenticates.", ""),
    ("POST /mcp", "The MCP tools for agents.", ""),
    ("GET /", "The dashboard, for browsers. Its files need no token.", ""),
    ("GET /openapi.json", "This page for programs. Needs no token.", ""),
)


@cache
def page(compat: Compat) -> str:
    heads = ("path", "what it does", "permission", "fields")
    own = (
        (
            f"{', '.join(methods_of(o))} {path_of(o)}",
            o.summary,
            str(o.permission),
            ", ".join(o.request.__dataclass_fields__),  # type: ignore[attr-defined]  # it is one
        )
        for o in spoken().values()
    )
    others = (
        (f"{d.method} {d.path.replace(':path}', '}')}", d.about, _names(d.body) or _names(d.query))
        for d in compat.described
    )
    short = ("path", "what it does", "fields")
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Fleet {__version__}</title>"
        '<meta name=viewport content="width=device-width">'
        f"<style nonce={{nonce}}>{STYLE}</style><h1>Fleet {__version__}</h1>"
        "<p>Send <code>Authorization: Bearer TOKEN</code> and JSON; "
        "<code>fleet token create NAME</code> makes a token. "
        'For programs: <a href="/openapi.json">/openapi.json</a>.</p>'
        f"<h2>The server</h2>{_table(short, FIXED)}"
        f"<h2>Operations</h2>{_table(heads, own)}"
        f"<h2>For clients of {compat.name}</h2>{_table(short, others)}"
    )


def _names(kind: Any) -> str:
    return ", ".join(f.encode_name for f in msgspec.structs.fields(kind)) if kind else ""


def _table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        f"<tr><td><code>{escape(first)}</code></td>{''.join(f'<td>{escape(t)}</td>' for t in rest)}</tr>"
        for first, *rest in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
