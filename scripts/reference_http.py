"""Write docs/reference/http.md from the table of paths; `--check` only says whether it is stale."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin

import msgspec

from fleet.server.claude_fleet.described import described

if TYPE_CHECKING:
    from fleet.server.http.compat import Described

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "http.md"
HEAD = """\
# Paths of the server

Made from the table of paths by `scripts/reference_http.py`; do not edit.

Every [operation](operations.md) is at `POST /v1/<noun>/<verb>` with its own fields; an operation that only reads is also at `GET`, unless a field of it is an object.
The server also accepts the paths and bodies of claude-fleet's clients, listed below; each one calls one of those operations.
Fields in brackets are optional, and unknown fields are refused. `/openapi.json` describes everything with types.

| for | paths |
|---|---|
| events of forges, signed by them ([how](../how-to/forges.md#let-a-label-queue-a-task)) | `POST /hooks/{forge}` |
| health and metrics | `GET /health`, `GET /ready`, `GET /metrics`, `GET /metrics/json` |
| live events | `GET /events`, `/ws` |
| tools for agents | `POST /mcp` |
| the API description | `GET /openapi.json`, `GET /docs` |
| the dashboard | `GET /`, `GET /ui/<hash>/…` |

| path | what it does | takes | replies with |
|---|---|---|---|
"""


def reference() -> str:
    return HEAD + "".join(map(row, described()))


def row(path: Described) -> str:
    where = path.path.replace(":path", "")
    taken = fields(path.body) or fields(path.query)
    how = "`?` " if path.query else ""
    return f"| `{path.method} {where}` | {path.about} | {how if taken else ''}{taken} | {shown(path.reply)} |\n"


def fields(kind: Any) -> str:
    if kind is None:
        return ""
    return ", ".join(
        f"`{f.encode_name}`" if f.required else f"[`{f.encode_name}`]"
        for f in sorted(msgspec.structs.fields(kind), key=lambda f: not f.required)
    )


def shown(reply: Any) -> str:
    if get_origin(reply) is list:
        return f"a list of {shown(get_args(reply)[0])}"
    return ", ".join(f"`{f.encode_name}`" for f in msgspec.structs.fields(reply))


if __name__ == "__main__":
    from write_page import main

    sys.exit(main(PAGE, reference()))
