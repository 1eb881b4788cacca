"""Fill the columns by which tasks and posts are found, from their JSON as it was then."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = 500
TASKS = "SELECT seq, body FROM task WHERE seq > :seq ORDER BY seq LIMIT :page"
POSTS = """
SELECT seq, body FROM message WHERE kind = 'post' AND seq > :seq ORDER BY seq LIMIT :page
"""
FIND_TASK = """
UPDATE task SET attended = :attended, assignee = :assignee, backwards = :backwards WHERE seq = :seq
"""
MEMBERS = """
SELECT seq, body FROM entry WHERE kind = 'member' AND seq > :seq ORDER BY seq LIMIT :page
"""
FIND_MEMBER = "UPDATE entry SET words = :words, body = :body WHERE seq = :seq"
FIND_POST = "UPDATE message SET type = :type WHERE seq = :seq"
# A server of before may still run: what it added could not be found.
GUARD = {
    "sqlite": """
CREATE TRIGGER task_is_found BEFORE INSERT ON task WHEN new.attended IS NULL
BEGIN SELECT RAISE(ABORT, 'this store was upgraded: restart fleet'); END
""",
    "postgres": """
ALTER TABLE task ADD CONSTRAINT this_store_has_a_newer_schema_restart_fleet
CHECK (attended IS NOT NULL)
""",
}


def fill(execute: Callable[..., Any]) -> None:
    for seq, body in _each(execute, TASKS):
        spec = body.get("spec", {})
        attended = bool(spec.get("mode")) and not body.get("join")
        values = {
            "seq": seq,
            "attended": int(attended),
            "assignee": spec.get("assignee", ""),
            "backwards": spec.get("branch", "")[::-1],
        }
        execute(FIND_TASK, values)
    for seq, body in _each(execute, POSTS):
        execute(FIND_POST, {"seq": seq, "type": body.get("data", {}).get("type")})
    for seq, body in _each(execute, MEMBERS):
        named = f"{body['team']}:{body['owner']}".encode("utf-8", "replace")
        body["text"] = hashlib.sha256(named).hexdigest()[:24]
        values = {
            "seq": seq,
            "words": body["text"],
            "body": json.dumps(body, separators=(",", ":")),
        }
        execute(FIND_MEMBER, values)


def _each(execute: Callable[..., Any], query: str) -> Any:
    seq = -1 << 63
    while some := execute(query, {"seq": seq, "page": PAGE}).fetchall():
        for seq, body in some:
            yield seq, json.loads(body)
