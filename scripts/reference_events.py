"""Write docs/reference/events.md from the kinds of events; `--check` only says whether it is stale."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import NamedTuple

from fleet.domain.event import Kind

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "events.md"
HEAD = """\
# Events

Made from the kinds of events by `scripts/reference_events.py`; do not edit.

Whatever changes is recorded as an event in the same commit. You can follow events with `GET /events`
(server-sent events, see [HTTP](http.md)), in `tasks/ID/log.jsonl` and in the log of each day (see
[Files](files.md)). `GET /ws` sends them as the clients of claude-fleet expect, with the event itself in
`event`.

Every event has these fields:

| field | |
|---|---|
| `number` | events are numbered in the order in which they were recorded; a reader that has seen N sees no new one below N |
| `type` | the kind, from the table below |
| `task`, `run` | the task and the run that it is about; empty where the table names none |
| `actor` | who caused it: a person, an agent or the supervisor |
| `at` | when: RFC 3339 over the server, UTC microseconds in the store |
| `data` | an object with the fields in the table, all of them text |

An event *about a team* has no task: `data.team` is the team, and `data.entry` or `data.message` what changed.
Messages are named, not quoted: read one with its own operation, which checks who may.

A newer release can add kinds and fields. Ignore the ones that you do not know.
"""
SHAPE = re.compile(r"(?P<sentence>[^\[]+\.) \[(?P<about>[^:\]]+)(?:: (?P<data>[^\]]+))?\]")


class About(NamedTuple):
    """What is said under one member of `Kind`."""

    sentence: str
    about: str
    data: tuple[str, ...]


def reference() -> str:
    rows = [
        f"| `{kind}` | {said.sentence} | {said.about} | {', '.join(f'`{d}`' for d in said.data)} |"
        for kind, said in described().items()
    ]
    return "\n".join([HEAD, "| kind | | about | data |", "|---|---|---|---|", *rows]) + "\n"


def described() -> dict[Kind, About]:
    """Raise `ValueError` for a kind without its sentence."""
    body = ast.parse(inspect.getsource(Kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    words: dict[Kind, About] = {}
    for member, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name):
            words[Kind[member.targets[0].id]] = _about(member.targets[0].id, below)
    return words


def _about(name: str, below: ast.stmt) -> About:
    text = below.value.value if isinstance(below, ast.Expr) and _is_text(below.value) else ""
    if not (found := SHAPE.fullmatch(text)):
        raise ValueError(f"Kind.{name} needs a sentence under it, as the others have: {text!r}")
    data = tuple((found["data"] or "").split(", ")) if found["data"] else ()
    return About(found["sentence"], found["about"], data)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


if __name__ == "__main__":
    from write_page import main

    sys.exit(main(PAGE, reference()))
